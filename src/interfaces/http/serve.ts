// The HTTP service on its own port.

import { TlsCertificate, type TlsFiles } from '../../system/network/tls-certificate.js';
import { systemClock } from '../../system/system-clock.js';
import { winstonLog } from '../../system/winston-log.js';
import { isLoopback } from '../../core/contract/safe-url.js';
import { UsageError } from '../../core/errors.js';
import { loopbackNames } from '../service/request-guard.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { IdentityService } from '../service/identity-service.js';
import { createIdentity, turnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';
import { hostForUrl } from '../mcp/serve-http.js';
import type { Log } from '../../engine/ports/log.js';
import type { ReadinessCheck } from '../../host/readiness/readiness.js';
import type { Turnpike } from '../../host/turnpike.js';
import { serveAdmin, type AdminAddress, type AdminServer } from './admin/serve-admin.js';
import { startHttpServer, type HttpServer } from './http-server.js';

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
  /** Whether the tokens are stored ones; if not, and without an issuer, the server listens only on loopback. */
  readonly storedTokens: boolean;
  /**
   * A listener of its own for `/livez`, `/readyz` and `/metrics`, without a token: an address, or a listener that is
   * open already, which the caller closes. Default: none.
   */
  readonly admin?: AdminAddress | AdminServer;
}

/** An HTTP server, and its admin listener. */
export interface TurnpikeServer extends HttpServer {
  /** Null without one. */
  readonly admin: Pick<AdminServer, 'url' | 'port'> | null;
}

/**
 * @throws UsageError if the server cannot, or must not, listen on the address, and for a certificate that cannot be
 *   used
 */
export async function serveTurnpike({ storedTokens, ...options }: ServeOptions): Promise<TurnpikeServer> {
  const { host, log = winstonLog('warn'), admin: place } = options;
  if (!isLoopback(host) && !storedTokens && options.identity === undefined) {
    throw new UsageError({
      code: 'USAGE',
      message: `${host} is reached by other machines: make a token for them first, with \`turnpike token\``,
    });
  }
  const admin = place === undefined || 'begin' in place ? (place ?? null) : await serveAdmin({ ...place, log });
  const closeAdmin = async (): Promise<void> => (admin === place ? undefined : admin?.close());
  try {
    const server = await startServer({ ...options, log }, admin);
    const unwatch = admin === null ? options.turnpike.readiness.watch() : null;
    const close = async (): Promise<void> => {
      unwatch?.();
      admin?.end();
      await server.close();
      await closeAdmin();
    };
    return { ...server, admin, close };
  } catch (error) {
    await closeAdmin();
    throw error;
  }
}

async function startServer(
  { host, port, tls = null, ...options }: Omit<ServeOptions, 'storedTokens'> & { readonly log: Log },
  admin: AdminServer | null,
): Promise<HttpServer> {
  const { log, turnpike, clock = systemClock() } = options;
  const identity = await openIdentity(options.identity, clock, log);
  const certificate = tls === null ? undefined : new TlsCertificate(tls, clock, log);
  let begin = (): void => undefined;
  const server = await startHttpServer({ host, port, closeMs: CLOSE_MS, log, tls: certificate }, (bound) => {
    const names = loopbackNames(bound, certificate === undefined ? 'http' : 'https');
    const { handler, ...http } = turnpikeHttp({
      ...options,
      ...(identity === undefined ? {} : { identity }),
      hosts: [...names.hosts, `${hostForUrl(host)}:${bound}`, ...(options.hosts ?? [])],
      origins: [...names.origins, ...(options.origins ?? [])],
    });
    begin = () => admin?.begin(http.monitoring);
    return { ...http, handle: handler };
  });
  const removeChecks = await addChecks(turnpike.readiness, { certificate, identity }, server);
  begin();
  return {
    ...server,
    close: () => {
      removeChecks();
      return server.close();
    },
  };
}

/** What can make a server not ready, besides its Turnpike. */
interface ServerParts {
  readonly certificate: TlsCertificate | undefined;
  readonly identity: IdentityService | undefined;
}

/** Closes the server if another part of the service has taken a name. @throws UsageError */
async function addChecks(
  readiness: Turnpike['readiness'],
  { certificate, identity }: ServerParts,
  server: HttpServer,
): Promise<() => void> {
  const checks: ReadinessCheck[] = [];
  if (certificate !== undefined) checks.push(certificateCheck(certificate));
  if (identity !== undefined) checks.push({ name: 'identity-provider', run: () => identity.findUnreadiness() });
  try {
    return readiness.add(...checks);
  } catch (error) {
    await server.close();
    throw error;
  }
}

const certificateCheck = (certificate: TlsCertificate): ReadinessCheck => ({
  name: 'certificate',
  run: () => (certificate.isExpired ? 'the TLS certificate has expired' : null),
});

/** @throws PolicyError, UsageError if no issuer could identify a caller */
async function openIdentity(
  options: TurnpikeHttpOptions['identity'],
  clock: Clock,
  log: Log,
): Promise<IdentityService | undefined> {
  if (options === undefined) return undefined;
  const identity = createIdentity(options, clock, log);
  await identity.check();
  return identity;
}
