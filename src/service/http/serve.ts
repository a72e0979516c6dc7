// The HTTP service on a port of its own.

import { winstonLog } from '../../adapters/system/winston-log.js';
import { UsageError } from '../../errors.js';
import { loopbackNames } from '../request-guard.js';
import { hostForUrl } from '../mcp/serve-http.js';
import { startHttpServer, type HttpServer } from './http-server.js';
import { turnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';

/** How long steps that are under way may take when the server closes. */
const CLOSE_MS = 10_000;

export interface ServeOptions extends Omit<TurnpikeHttpOptions, 'hosts'> {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Further names by which the server is called, as they stand in Host. */
  readonly hosts?: readonly string[];
  /** Whether the tokens are ones that somebody has stored: else nothing but loopback is listened on. */
  readonly storedTokens: boolean;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** @throws UsageError where the address cannot be listened on, or may not be */
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
