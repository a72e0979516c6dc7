// Liveness, readiness and metrics on an address of their own, for programs that have no token and reach a process by
// its address: a kubelet, a scraper, a container's health check. Nothing else is served here. Every text is a constant
// or a number: no content, no name of a run, an agent or a file.

import { systemClock } from '../../../system/system-clock.js';
import { winstonLog } from '../../../system/winston-log.js';
import { listenHttp } from '../../../system/network/http-listener.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { Log } from '../../../engine/ports/log.js';
import { hostForUrl } from '../../mcp/serve-http.js';
import { AdminHandler, type MonitoredProcess } from './admin-handler.js';

/** Where the listener is. Any address: the texts are for everyone who reaches it. */
export interface AdminAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export interface AdminOptions extends AdminAddress {
  /** Default: a log of warnings on stderr. */
  readonly log?: Log;
}

/** A listener for operators and platforms: liveness, readiness and metrics. */
export interface AdminServer {
  readonly url: string;
  readonly port: number;
  /** The process is ready as soon as its checks hold. Until then only the check `startup` is listed, as failed. */
  begin(process: MonitoredProcess): void;
  /** From now on the process is not ready: it finishes what is in flight. */
  end(): void;
  /** Stops listening. */
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 64;
const HEADER_BYTES_MAX = 8_192;
/** How long requests in flight may take when the listener closes, in ms. */
const CLOSE_MS = 1_000;

/**
 * Listens before the process is ready, so that a slow start is seen as one.
 * @throws UsageError if the address cannot be listened on
 */
export async function serveAdmin(
  { host, port, log = winstonLog('warn') }: AdminOptions,
  clock: Clock = systemClock(),
): Promise<AdminServer> {
  const handler = new AdminHandler(clock, log);
  const listener = await listenHttp({
    host,
    port,
    connections: CONNECTIONS_MAX,
    headerBytes: HEADER_BYTES_MAX,
    handle: (request, response) => handler.handle(request, response),
    onError: (error) => log.error('a request to the admin listener failed', { error }),
  });
  let unwatch = (): void => undefined;
  return {
    url: `http://${hostForUrl(host)}:${listener.port}`,
    port: listener.port,
    begin: (process) => {
      unwatch();
      unwatch = process.readiness.watch();
      handler.begin(process);
    },
    end: () => {
      unwatch();
      handler.end();
    },
    close: async () => {
      unwatch();
      await listener.close(CLOSE_MS);
    },
  };
}
