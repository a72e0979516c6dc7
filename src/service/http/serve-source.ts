// The inspector over a ledger to which nobody writes here: an exported bundle, looked at on this machine.

import { drawToken } from '../../adapters/access-token.js';
import { listenHttp } from '../../adapters/http-listener.js';
import type { PageFile } from '../../adapters/page-folder.js';
import { systemClock } from '../../adapters/system-clock.js';
import { singleToken } from '../../adapters/token-book.js';
import { winstonLog } from '../../adapters/winston-log.js';
import type { Log } from '../../ports/log.js';
import { frontDoor, loopbackNames } from '../front-door.js';
import type { InspectorSource } from '../inspector/source.js';
import { httpPlugin } from './app.js';
import { handler, type Handler } from './handler.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import { Metrics } from './metrics.js';
import type { HttpServer } from './serve.js';
import type { AccessAudit, LookingService } from './service.js';
import { Streams } from './stream.js';

const CLOSE_MS = 1_000;
const READER = { actor: 'reader', role: 'reader' } as const;

export interface SourceServing {
  readonly source: InspectorSource;
  readonly page: ReadonlyMap<string, PageFile>;
  /** 0: any that is free. */
  readonly port: number;
  /** The secret that every request has to bring. Default: one is drawn. */
  readonly token?: string;
  /** Who has it, for `audit`. Default: somebody. */
  readonly reader?: { readonly actor: string; readonly role: string };
  /** Default: nothing is written down, since there is nothing to write to. */
  readonly audit?: AccessAudit;
  readonly log?: Log;
}

/** Serves a ledger on loopback, to whoever has the token. Nothing can be done to it. @throws UsageError */
export async function serveSource(serving: SourceServing): Promise<HttpServer & { readonly token: string }> {
  const { source, page, port, token = drawToken(), reader = READER, log = winstonLog('warn') } = serving;
  const clock = systemClock();
  const tokens = singleToken(token, { ...reader, rights: ['observe'] }, clock);
  const size = (): Promise<number> => source.size();
  const streams = new Streams({ size, tokens, clock, log });
  const metrics = new Metrics({ size, streams: () => streams.count });
  const service: LookingService = {
    inspector: source,
    audit: serving.audit ?? (() => Promise.resolve()),
    metrics,
    streams,
    log,
  };
  let own: Handler | null = null;
  const listener = await listenHttp({
    host: '127.0.0.1',
    port,
    handle: async (request, response) => {
      // Only then is it known by which names the server may be called.
      if (own === null) response.destroy();
      else await own.handle(request, response);
    },
    failed: (error) => log.error('a request over HTTP failed', { error }),
  });
  const isOpen = (method: string, path: string): boolean => method === 'GET' && page.has(path);
  const door = frontDoor({ ...loopbackNames(listener.port), tokens, isOpen });
  const ready = handler({ door, page, plugin: (admit) => httpPlugin({ service, routes: LEDGER_ROUTES, admit }) });
  own = ready;
  return {
    url: `http://127.0.0.1:${listener.port}`,
    port: listener.port,
    token,
    close: async () => {
      const closing = listener.close(CLOSE_MS);
      streams.close();
      await closing;
      await ready.close();
    },
  };
}
