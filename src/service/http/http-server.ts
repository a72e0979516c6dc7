// A service on a port of its own. By which names it may be called is known only when it listens: until then nothing is
// answered.

import { listenHttp } from '../../adapters/network/http-listener.js';
import type { Log } from '../../ports/log.js';
import { hostForUrl } from '../mcp/serve-http.js';
import type { Handler } from './http-handler.js';

export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Ends streams, takes nothing new, finishes what is under way. What is served stays open. */
  close(): Promise<void>;
}

/** What is served, as far as a server has to know it. */
export interface ServedHandler extends Handler {
  /** A stream would else keep the server from closing. */
  endStreams(): void;
}

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** How long what is under way may take when the server closes. */
  readonly closeMs: number;
  readonly log: Pick<Log, 'error'>;
}

/** @param serve makes what is served there @throws UsageError where the address cannot be listened on */
export async function startHttpServer(
  { host, port, closeMs, log }: HttpServerOptions,
  serve: (port: number) => ServedHandler,
): Promise<HttpServer> {
  let servedHandler: ServedHandler | null = null;
  const listener = await listenHttp({
    host,
    port,
    handle: async (request, response) => {
      if (servedHandler === null) response.destroy();
      else await servedHandler.handle(request, response);
    },
    onError: (error) => log.error('a request over HTTP failed', { error }),
  });
  const ready = serve(listener.port);
  servedHandler = ready;
  return {
    url: `http://${hostForUrl(host)}:${listener.port}`,
    port: listener.port,
    close: async () => {
      const closing = listener.close(closeMs);
      ready.endStreams();
      await closing;
      await ready.close();
    },
  };
}
