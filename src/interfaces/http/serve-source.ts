// Serves the inspector for a ledger that is not written to here: an exported bundle, opened on this machine.

import { drawToken } from '../../stores/keys/access-token.js';
import type { PageFile } from '../inspector/page-folder.js';
import { systemClock } from '../../system/system-clock.js';
import { singleTokenBook } from '../../stores/keys/token-file.js';
import { winstonLog } from '../../system/winston-log.js';
import type { Log } from '../../engine/ports/log.js';
import { systemPace } from '../../system/system-pace.js';
import { AdmissionController } from '../admission/admission-controller.js';
import { RequestAdmission } from '../service/request-admission.js';
import { createRequestGuard, loopbackNames } from '../service/request-guard.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import { createHandler } from './http-handler.js';
import { LEDGER_ROUTES } from './routes/ledger-routes.js';
import { startHttpServer, type HttpServer } from './http-server.js';
import { createMetricRegistry } from './metric-registry.js';
import { Metrics } from './metrics.js';
import { createOpenCheck } from './served-page.js';
import type { AccessAudit, InspectionService } from './http-service.js';
import { EventStreams } from './event-streams.js';

const CLOSE_MS = 1_000;
const READER = { actor: 'reader', role: 'reader' } as const;

/** Options of a read-only server for one ledger or evidence bundle. */
export interface ServeSourceOptions {
  readonly source: InspectorSource;
  readonly page: ReadonlyMap<string, PageFile>;
  /** 0: any free port. */
  readonly port: number;
  /** The bearer token that every request must have. Default: a random one. */
  readonly token?: string;
  /** The reader that `audit` records. Default: an anonymous one. */
  readonly reader?: { readonly actor: string; readonly role: string };
  /** Default: reads are not recorded, because there is no ledger to write to. */
  readonly audit?: AccessAudit;
  readonly log?: Log;
}

/**
 * Serves a ledger on loopback to callers with the token, for reading only.
 * @throws UsageError
 */
export async function serveSource(options: ServeSourceOptions): Promise<HttpServer & { readonly token: string }> {
  const { source, page, port, token = drawToken(), reader = READER, log = winstonLog('warn') } = options;
  const clock = systemClock();
  const tokens = singleTokenBook(token, { ...reader, rights: ['observe'] }, clock);
  const size = (): Promise<number> => source.size();
  const streams = new EventStreams({ size, tokens, clock, log });
  const admission = new AdmissionController({ clock, pace: systemPace() });
  const sources = { size, streams: () => streams.count, admission: () => admission.counts };
  const metrics = new Metrics(sources, createMetricRegistry(log));
  const service: InspectionService = {
    inspector: source,
    audit: options.audit ?? (() => Promise.resolve()),
    metrics,
    streams,
    log,
  };
  const server = await startHttpServer({ host: '127.0.0.1', port, closeMs: CLOSE_MS, log }, (bound) => {
    const guard = createRequestGuard({ ...loopbackNames(bound), tokens, isOpen: createOpenCheck(page) });
    const requestAdmission = new RequestAdmission({ guard, admission });
    const own = createHandler({ service, routes: LEDGER_ROUTES, admission: requestAdmission, page });
    return { ...own, endStreams: () => streams.close() };
  });
  return { ...server, token };
}
