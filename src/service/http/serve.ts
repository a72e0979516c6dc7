// The HTTP service on its own port.

import { winstonLog } from '../../adapters/system/winston-log.js';
import { UsageError } from '../../errors.js';
import { loopbackNames } from '../request-guard.js';
import { hostForUrl } from '../mcp/serve-http.js';
import { startHttpServer, type HttpServer } from './http-server.js';
import { turnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';

/** How long steps in flight may take when the server closes, in milliseconds. */
const CLOSE_MS = 10_000;

/** Options of an HTTP server of its own. */
export interface ServeOptions extends Omit<TurnpikeHttpOptions, 'hosts'> {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Further names of the server, as values of the Host header. */
  readonly hosts?: readonly string[];
  /** Whether the tokens are stored ones; if not, the server listens only on loopback. */
  readonly storedTokens: boolean;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** @throws UsageError if the server cannot, or must not, listen on the address */
export async function serveTurnpike({ host, port, storedTokens, ...options }: ServeOptions): Promise<HttpServer> {
  if (!isLoopback(host) && !storedTokens) {
    throw new UsageError({
      code: 'USAGE',
      message: `${host} is reached by other machines: make a token for them first, with \`turnpike token\``,
    });
  }
  const { log = winstonLog('warn') } = options;
  return startHttpServer({ host, port, closeMs: CLOSE_MS, log }, (bound) => {
    const names = loopbackNames(bound);
    const { handler, ...http } = turnpikeHttp({
      ...options,
      log,
      hosts: [...names.hosts, `${hostForUrl(host)}:${bound}`, ...(options.hosts ?? [])],
      origins: [...names.origins, ...(options.origins ?? [])],
    });
    return { ...http, handle: handler };
  });
}
