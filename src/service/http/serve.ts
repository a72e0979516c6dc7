// The HTTP service on a port of its own.

import { listenHttp } from '../../adapters/http-listener.js';
import { winstonLog } from '../../adapters/winston-log.js';
import { UsageError } from '../../errors.js';
import { loopbackNames } from '../front-door.js';
import { named } from '../mcp/serve-http.js';
import { turnpikeHttp, type TurnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';

/** How long steps that are under way may take when the server closes. */
const CLOSE_MS = 10_000;

export interface Serving extends Omit<TurnpikeHttpOptions, 'hosts'> {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Further names by which the server is called, as they stand in Host. */
  readonly hosts?: readonly string[];
  /** Whether the tokens are ones that somebody has stored: else nothing but loopback is listened on. */
  readonly storedTokens: boolean;
}

export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Ends streams, takes nothing new, finishes what is under way. The Turnpike stays open. */
  close(): Promise<void>;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** @throws UsageError where the address cannot be listened on, or may not be */
export async function serveTurnpike({ host, port, storedTokens, ...options }: Serving): Promise<HttpServer> {
  if (!isLoopback(host) && !storedTokens) {
    throw new UsageError({
      code: 'USAGE',
      message: `${host} is reached by other machines: make a token for them first, with \`turnpike token\``,
    });
  }
  const { log = winstonLog('warn') } = options;
  let http: TurnpikeHttp | null = null;
  const listener = await listenHttp({
    host,
    port,
    handle: async (request, response) => {
      // Only then is it known by which names the server may be called.
      if (http === null) response.destroy();
      else await http.handler(request, response);
    },
    failed: (error) => log.error('a request over HTTP failed', { error }),
  });
  const names = loopbackNames(listener.port);
  const ready = turnpikeHttp({
    ...options,
    log,
    hosts: [...names.hosts, `${named(host)}:${listener.port}`, ...(options.hosts ?? [])],
    origins: [...names.origins, ...(options.origins ?? [])],
  });
  http = ready;
  return {
    url: `http://${named(host)}:${listener.port}`,
    port: listener.port,
    close: async () => {
      const closing = listener.close(CLOSE_MS);
      ready.endStreams();
      await closing;
      await ready.close();
    },
  };
}
