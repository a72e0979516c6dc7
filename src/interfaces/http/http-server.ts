// A handler on its own port. Its host names are known only once it listens: until then no request is answered.

import { listenHttp, type HttpListener } from '../../system/network/http-listener.js';
import type { TlsCertificate } from '../../system/network/tls-certificate.js';
import type { Log } from '../../engine/ports/log.js';
import { hostForUrl } from '../mcp/serve-http.js';
import type { Handler } from './http-handler.js';

/** An HTTP server that listens. */
export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Ends streams, refuses new requests and finishes those in flight. The handler's resources stay open. */
  close(): Promise<void>;
}

/** A handler, as far as the server needs to know it. */
interface ServedHandler extends Handler {
  /** A stream would otherwise keep the server from closing. */
  endStreams(): void;
}

interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** How long requests in flight may take when the server closes, in milliseconds. */
  readonly closeMs: number;
  readonly log: Pick<Log, 'error'>;
  /** Serves HTTPS. Default: HTTP. */
  readonly tls?: TlsCertificate | undefined;
}

/**
 * @param serve creates the handler; if it throws, the address is free again
 * @throws UsageError if the server cannot listen on the address
 */
export async function startHttpServer(
  { host, port, closeMs, log, tls }: HttpServerOptions,
  serve: (port: number) => ServedHandler,
): Promise<HttpServer> {
  let servedHandler: ServedHandler | null = null;
  const listener = await listenHttp({
    host,
    port,
    tls,
    handle: async (request, response) => {
      if (servedHandler === null) response.destroy();
      else await servedHandler.handle(request, response);
    },
    onError: (error) => log.error('a request over HTTP failed', { error }),
  });
  const ready = await createOrClose(listener, serve);
  servedHandler = ready;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${hostForUrl(host)}:${listener.port}`,
    port: listener.port,
    close: async () => {
      const closing = listener.close(closeMs);
      ready.endStreams();
      await closing;
      await ready.close();
    },
  };
}

async function createOrClose(listener: HttpListener, serve: (port: number) => ServedHandler): Promise<ServedHandler> {
  try {
    return serve(listener.port);
  } catch (error) {
    await listener.close(0);
    throw error;
  }
}
