// The HTTP service on its own port.

import { TlsCertificate, type TlsFiles } from '../../adapters/network/tls-certificate.js';
import { systemClock } from '../../adapters/system/system-clock.js';
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
  /** Serves HTTPS with this certificate, which is read again when its files change. Default: HTTP. */
  readonly tls?: TlsFiles | null;
  /** Whether the tokens are stored ones; if not, the server listens only on loopback. */
  readonly storedTokens: boolean;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/**
 * @throws UsageError if the server cannot, or must not, listen on the address, and for a certificate that cannot be
 *   used
 */
export async function serveTurnpike(serveOptions: ServeOptions): Promise<HttpServer> {
  const { host, port, storedTokens, tls = null, ...options } = serveOptions;
  if (!isLoopback(host) && !storedTokens) {
    throw new UsageError({
      code: 'USAGE',
      message: `${host} is reached by other machines: make a token for them first, with \`turnpike token\``,
    });
  }
  const { log = winstonLog('warn') } = options;
  const certificate = tls === null ? undefined : new TlsCertificate(tls, options.clock ?? systemClock(), log);
  return startHttpServer({ host, port, closeMs: CLOSE_MS, log, tls: certificate }, (bound) => {
    const names = loopbackNames(bound, certificate === undefined ? 'http' : 'https');
    const { handler, ...http } = turnpikeHttp({
      ...options,
      log,
      hosts: [...names.hosts, `${hostForUrl(host)}:${bound}`, ...(options.hosts ?? [])],
      origins: [...names.origins, ...(options.origins ?? [])],
    });
    return { ...http, handle: handler };
  });
}
