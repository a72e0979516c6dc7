// The inspector over a ledger to which nobody writes here: an exported bundle, looked at on this machine.

import { drawToken } from '../../adapters/access-token.js';
import type { PageFile } from '../../adapters/page-folder.js';
import { systemClock } from '../../adapters/system-clock.js';
import { singleToken } from '../../adapters/token-book.js';
import { winstonLog } from '../../adapters/winston-log.js';
import type { Log } from '../../ports/log.js';
import { systemPace } from '../../adapters/pace.js';
import { AdmissionController } from '../admission/controller.js';
import { frontDoor, loopbackNames } from '../front-door.js';
import type { InspectorSource } from '../inspector/source.js';
import { httpPlugin } from './app.js';
import { handler } from './handler.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import { listenFor, type HttpServer } from './listen.js';
import { Metrics } from './metrics.js';
import { isOpenOf } from './page.js';
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
  const admission = new AdmissionController({ clock, pace: systemPace() });
  const metrics = new Metrics({ size, streams: () => streams.count, admission: () => admission.counts });
  const service: LookingService = {
    inspector: source,
    audit: serving.audit ?? (() => Promise.resolve()),
    metrics,
    streams,
    log,
  };
  const server = await listenFor({ host: '127.0.0.1', port, closeMs: CLOSE_MS, log }, (bound) => {
    const door = frontDoor({ ...loopbackNames(bound), tokens, isOpen: isOpenOf(page) });
    const own = handler({
      door,
      page,
      admission,
      routes: LEDGER_ROUTES,
      metrics,
      log,
      plugin: (enter) => httpPlugin({ service, routes: LEDGER_ROUTES, enter }),
    });
    return { ...own, endStreams: () => streams.close() };
  });
  return { ...server, token };
}
