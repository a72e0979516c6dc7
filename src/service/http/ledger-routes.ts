// The ledger itself: its entries, what they brought, and how they are looked at. Everything is a reading; what shows
// content is written down before it is shown.

import Type from 'typebox';
import { closed, RunId, Sha256 } from '../../contract/shapes.js';
import type { ReadControl } from '../../ports/pace.js';
import { ENTRY_BYTES_MAX, ROWS_MAX, type InspectorSource } from '../inspector/source.js';
import { etagOf, namesWeakly } from './etag.js';
import { jsonPieces } from './json-pieces.js';
import { Refused } from './refused.js';
import { routeOn, type Answer, type Asked, type Route } from './route.js';
import type { LookingService } from './service.js';
import {
  After,
  ChartShape,
  CourseShape,
  EventShape,
  json,
  LedgerInfoShape,
  Limit,
  LogIndex,
  plain,
  RowPageShape,
  SessionViewShape,
  StepStoryShape,
  WhyShape,
} from './shapes.js';
import { entryEvents, rowEvents } from './stream-formats.js';

const EVENTS_DEFAULT = 100;
const EVENTS_MAX = 500;
const OBSERVE = ['observe'] as const;
const BYTES = 'application/octet-stream';

const Stretch = Type.Object({ from: LogIndex, to: LogIndex }, closed);
const OfEntry = Type.Object({ log_index: LogIndex }, closed);
const FORMATS = { entries: entryEvents, rows: rowEvents } as const;

const route = routeOn<LookingService>();

export const LEDGER_ROUTES: readonly Route<LookingService>[] = [
  route({
    method: 'GET',
    path: '/api/v1/events',
    packs: true,
    summary: 'Entries of the log in full, in their order',
    rights: OBSERVE,
    query: Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(EVENTS_MAX)) }, closed),
    answers: {
      200: json('Go on with `after` = `next`.', Type.Object({ events: Type.Array(EventShape), next: After }, closed)),
    },
    async handle(asked, service) {
      const { after = -1, limit = EVENTS_DEFAULT } = asked.query;
      const source = inspectorOf(service);
      const size = await source.size();
      const to = Math.min(size, after + 1 + limit);
      await audited(asked, service, '/api/v1/events', { from: after + 1, to });
      const { control } = asked;
      const next = Math.min(Math.max(after, to - 1), size - 1);
      const items = (async function* () {
        for (let at = after + 1; at < to; at += 1) {
          yield found(await source.event(at));
          await control.pause();
        }
        return { next };
      })();
      return { chunks: jsonPieces({ name: 'events', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/events/{log_index}',
    summary: 'One entry of the log in full',
    rights: OBSERVE,
    params: OfEntry,
    answers: { 200: json('Its text is what its leaf hash is of.', EventShape) },
    async handle(asked, service) {
      const { log_index } = asked.params;
      await audited(asked, service, '/api/v1/events/{log_index}', { log_index });
      return { json: found(await inspectorOf(service).event(log_index)) };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/events/{log_index}/artifacts/{sha256}',
    summary: 'Content that an entry brought',
    rights: OBSERVE,
    params: Type.Object({ log_index: LogIndex, sha256: Sha256 }, closed),
    answers: { 200: plain('The bytes.', BYTES) },
    async handle(asked, service) {
      const { log_index, sha256 } = asked.params;
      const bytes = found(await inspectorOf(service).artifact(log_index, sha256));
      await audited(asked, service, '/api/v1/events/{log_index}/artifacts/{sha256}', { log_index, sha256 });
      return { bytes, type: BYTES, headers: { 'Content-Disposition': 'attachment', 'Cache-Control': 'no-store' } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/stream',
    summary: 'The log as server-sent events, from behind `after` or Last-Event-ID on; else what comes from now on',
    rights: OBSERVE,
    query: Type.Object(
      {
        format: Type.Optional(Type.Union([Type.Literal('entries'), Type.Literal('rows')])),
        after: Type.Optional(After),
      },
      closed,
    ),
    headers: ['last-event-id'],
    answers: { 200: plain('Events with the id of the last entry in them.', 'text/event-stream') },
    handle: (asked, service) => streamed(asked, service),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/ledger',
    summary: 'Which ledger this is, and what vouches for it',
    rights: OBSERVE,
    answers: { 200: json('The ledger.', LedgerInfoShape) },
    handle: async (_asked, service) => ({ json: await inspectorOf(service).info() }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/rows',
    packs: true,
    summary: `Entries in one line each, at most ${ROWS_MAX} of them`,
    rights: OBSERVE,
    query: Stretch,
    answers: { 200: json('From `from` on, below `to`.', RowPageShape) },
    handle: async ({ query: { from, to }, control }, service) => ({
      json: await inspectorOf(service).rows(from, to, control),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/entries',
    packs: true,
    summary: 'The exact texts of entries, one a line; go on behind the last one that came',
    rights: OBSERVE,
    query: Stretch,
    answers: { 200: plain('Canonical texts.', 'text/plain') },
    async handle(asked, service) {
      const { from, to } = asked.query;
      await audited(asked, service, '/api/v1/inspector/entries', { from, to });
      const chunks = linesOf(inspectorOf(service), asked.query, asked.control);
      return { chunks, type: 'text/plain; charset=utf-8' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/courses/{run_id}',
    packs: true,
    summary: 'The way of a run through its machine, and of its steps through theirs',
    rights: OBSERVE,
    params: Type.Object({ run_id: RunId }, closed),
    query: Type.Object({ after: Type.Optional(LogIndex) }, closed),
    answers: { 200: json('Its moves after an entry.', CourseShape) },
    handle: async ({ params, query, control }, service) => ({
      json: found(await inspectorOf(service).course(params.run_id, query.after ?? 0, control)),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/charts/{hash}',
    summary: 'A recorded machine, drawn',
    rights: OBSERVE,
    params: Type.Object({ hash: Sha256 }, closed),
    headers: ['if-none-match'],
    answers: {
      200: json('It never changes.', ChartShape),
      304: { description: 'It is as If-None-Match has it.' },
    },
    async handle({ params: { hash }, headers }, service) {
      const ETag = etagOf(hash);
      const known = headers['if-none-match'];
      const keep = { ETag, 'Cache-Control': 'private, max-age=31536000, immutable' };
      const chart = found(await inspectorOf(service).chart(hash));
      return known !== undefined && namesWeakly(known, ETag)
        ? { status: 304, headers: keep }
        : { json: chart, headers: keep };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/steps/{run_id}/{step}',
    summary: 'A step as its agent saw it, beside what was recorded of it',
    rights: OBSERVE,
    params: Type.Object({ run_id: RunId, step: Type.Integer({ minimum: 1 }) }, closed),
    answers: { 200: json('The step.', StepStoryShape) },
    async handle(asked, service) {
      const { run_id, step } = asked.params;
      const story = found(await inspectorOf(service).step(run_id, step, asked.control));
      await audited(asked, service, '/api/v1/inspector/steps/{run_id}/{step}', { run_id, step });
      return { json: story };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/why/{log_index}',
    summary: 'Why a decision came out as it did',
    rights: OBSERVE,
    params: OfEntry,
    answers: { 200: json('The checks in their order, and what would flip it.', WhyShape) },
    handle: async ({ params, control }, service) => ({
      json: found(await inspectorOf(service).why(params.log_index, control)),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/sessions/{session_id}',
    summary: 'A session as it stood at an entry, or as it stands',
    rights: OBSERVE,
    params: Type.Object({ session_id: Type.String({ minLength: 1, maxLength: 160 }) }, closed),
    query: Type.Object({ at: Type.Optional(LogIndex) }, closed),
    answers: { 200: json('The session.', SessionViewShape) },
    async handle(asked, service) {
      const { session_id } = asked.params;
      const view = found(await inspectorOf(service).session(session_id, asked.query.at ?? null, asked.control));
      await audited(asked, service, '/api/v1/inspector/sessions/{session_id}', { session_id, at: view.at });
      return { json: view };
    },
  }),
];

/** So much of the log is in memory at a time. */
const LINES_BYTES = 65_536;

/** The texts of entries, one a line: about as many bytes as one answer may have, and at least one entry. */
async function* linesOf(
  source: InspectorSource,
  { from, to }: { readonly from: number; readonly to: number },
  { signal, pause }: ReadControl,
): AsyncGenerator<string> {
  let bytes = 0;
  for (let at = from; at < to && bytes < ENTRY_BYTES_MAX;) {
    const bytesMax = Math.min(LINES_BYTES, ENTRY_BYTES_MAX - bytes);
    const texts = await source.entries(at, to, { signal, pause, bytesMax });
    if (texts.length === 0) return;
    at += texts.length;
    const lines = texts.map((text) => `${text}\n`).join('');
    bytes += Buffer.byteLength(lines);
    yield lines;
  }
}

function inspectorOf({ inspector }: LookingService): InspectorSource {
  if (inspector === null) throw new Refused('NOT_FOUND');
  return inspector;
}

function found<T>(value: T | null): T {
  if (value === null) throw new Refused('NOT_FOUND');
  return value;
}

const audited = (
  { principal: { id: token, actor, role } }: Pick<Asked<unknown, unknown, unknown>, 'principal'>,
  { audit }: LookingService,
  path: string,
  subject: Readonly<Record<string, string | number>>,
): Promise<void> => audit({ token, actor, role, route: path, subject });

async function streamed(
  asked: Asked<unknown, { readonly format?: keyof typeof FORMATS; readonly after?: number }, unknown>,
  service: LookingService,
): Promise<Answer> {
  const { principal, query, headers } = asked;
  const { streams } = service;
  const source = inspectorOf(service);
  if (streams.isFull(principal.id)) throw new Refused('STREAMS_TAKEN', { 'Retry-After': '5' });
  const size = await source.size();
  const seen = headers['last-event-id'];
  if (seen !== undefined && !/^(?:-1|\d{1,15})$/.test(seen)) throw new Refused('INVALID_REQUEST');
  const after = seen === undefined ? (query.after ?? size - 1) : Number(seen);
  // It would be told nothing until the ledger is as long as that, and then not what was written before.
  if (after >= size) throw new Refused('PLACE_AHEAD');
  const format = FORMATS[query.format ?? 'entries'](source);
  // Whoever asks for what is archived must hear so now: a stream that breaks off is only asked for again.
  if (after + 1 < size) await format.next(after + 1, after + 2);
  const subject = { after, format: query.format ?? 'entries' };
  await audited(asked, service, '/api/v1/stream', subject);
  return { stream: (out, control) => streams.add(out, { from: after + 1, token: principal.id, format, control }) };
}
