// Routes that read the ledger: entries, their content, and the views of the inspector. The audit records a read of
// content before the content is sent.

import Type from 'typebox';
import { closed, RunId, Sha256 } from '../../../core/contract/shapes.js';
import type { ReadControl } from '../../../engine/ports/pace.js';
import { ENTRY_BYTES_MAX, ROWS_MAX, type InspectorSource } from '../../inspector/inspector-source.js';
import {
  etagOf,
  hasWeakMatch,
  createRouteFactory,
  type RouteResponse,
  type RouteRequest,
  type Route,
} from './route.js';
import { streamJson } from '../write-pieces.js';
import { RefusalError } from '../../service/problems.js';
import type { InspectionService } from '../http-service.js';
import {
  After,
  ChartShape,
  CoverageShape,
  CourseShape,
  EventShape,
  jsonResponse,
  LedgerInfoShape,
  Limit,
  LogIndex,
  textResponse,
  RowPageShape,
  SessionViewShape,
  StepStoryShape,
  ExplanationShape,
} from './route-shapes.js';
import { createEntryFormat, createRowFormat } from '../event-streams.js';

const EVENTS_DEFAULT = 100;
const EVENTS_MAX = 500;
const COVERAGE_DEFAULT = 10_000;
const OBSERVE = ['observe'] as const;
const BYTES = 'application/octet-stream';

const EntryRange = Type.Object({ from: LogIndex, to: LogIndex }, closed);
const EntryParams = Type.Object({ log_index: LogIndex }, closed);
const FORMATS = { entries: createEntryFormat, rows: createRowFormat } as const;

const route = createRouteFactory<InspectionService>();

export const LEDGER_ROUTES: readonly Route<InspectionService>[] = [
  route({
    method: 'GET',
    path: '/api/v1/events',
    isCompressed: true,
    summary: 'List complete entries of the log in order',
    rights: OBSERVE,
    query: Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(EVENTS_MAX)) }, closed),
    responses: {
      200: jsonResponse(
        'Continue with `after` = `next`.',
        Type.Object({ events: Type.Array(EventShape), next: After }, closed),
      ),
    },
    async handle(request, service) {
      const { after = -1, limit = EVENTS_DEFAULT } = request.query;
      const source = requireInspector(service);
      const size = await source.size();
      const to = Math.min(size, after + 1 + limit);
      await auditAccess(request, service, '/api/v1/events', { from: after + 1, to });
      const { control } = request;
      const next = Math.min(Math.max(after, to - 1), size - 1);
      const items = (async function* () {
        for (let at = after + 1; at < to; at += 1) {
          yield requireFound(await source.event(at));
          await control.pause();
        }
        return { next };
      })();
      return { chunks: streamJson({ name: 'events', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/events/{log_index}',
    summary: 'Get one complete entry of the log',
    rights: OBSERVE,
    params: EntryParams,
    responses: { 200: jsonResponse('The entry. Its leaf hash is the hash of `text`.', EventShape) },
    async handle(request, service) {
      const { log_index } = request.params;
      await auditAccess(request, service, '/api/v1/events/{log_index}', { log_index });
      return { json: requireFound(await requireInspector(service).event(log_index)) };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/events/{log_index}/artifacts/{sha256}',
    summary: 'Get content that an entry attached',
    rights: OBSERVE,
    params: Type.Object({ log_index: LogIndex, sha256: Sha256 }, closed),
    responses: { 200: textResponse('The bytes.', BYTES) },
    async handle(request, service) {
      const { log_index, sha256 } = request.params;
      const bytes = requireFound(await requireInspector(service).artifact(log_index, sha256));
      await auditAccess(request, service, '/api/v1/events/{log_index}/artifacts/{sha256}', { log_index, sha256 });
      return { bytes, type: BYTES, headers: { 'Content-Disposition': 'attachment', 'Cache-Control': 'no-store' } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/stream',
    summary: 'Stream the log as server-sent events, after `after` or Last-Event-ID; by default, new entries only',
    rights: OBSERVE,
    query: Type.Object(
      {
        format: Type.Optional(Type.Union([Type.Literal('entries'), Type.Literal('rows')])),
        after: Type.Optional(After),
      },
      closed,
    ),
    headers: ['last-event-id'],
    responses: { 200: textResponse('Events; the id of an event is the index of its last entry.', 'text/event-stream') },
    handle: (request, service) => streamEvents(request, service),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/ledger',
    summary: 'Get the identity of the ledger, and its checkpoint and key',
    rights: OBSERVE,
    responses: { 200: jsonResponse('The ledger.', LedgerInfoShape) },
    handle: async (_request, service) => ({ json: await requireInspector(service).info() }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/rows',
    isCompressed: true,
    summary: `List entries as rows, at most ${ROWS_MAX}`,
    rights: OBSERVE,
    query: EntryRange,
    responses: { 200: jsonResponse('The rows from `from` up to but not including `to`.', RowPageShape) },
    handle: async ({ query: { from, to }, control }, service) => ({
      json: await requireInspector(service).rows(from, to, control),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/entries',
    isCompressed: true,
    summary: 'Get the exact texts of entries, one per line; continue after the last one received',
    rights: OBSERVE,
    query: EntryRange,
    responses: { 200: textResponse('Canonical texts.', 'text/plain') },
    async handle(request, service) {
      const { from, to } = request.query;
      await auditAccess(request, service, '/api/v1/inspector/entries', { from, to });
      const chunks = streamEntryLines(requireInspector(service), request.query, request.control);
      return { chunks, type: 'text/plain; charset=utf-8' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/courses/{run_id}',
    isCompressed: true,
    summary: 'Get the transitions that a run, and each of its steps, took',
    rights: OBSERVE,
    params: Type.Object({ run_id: RunId }, closed),
    query: Type.Object({ after: Type.Optional(LogIndex) }, closed),
    responses: { 200: jsonResponse('The course of the run, with its moves after the entry `after`.', CourseShape) },
    handle: async ({ params, query, control }, service) => ({
      json: requireFound(await requireInspector(service).course(params.run_id, query.after ?? 0, control)),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/charts/{hash}',
    summary: 'Get the chart of a recorded state machine',
    rights: OBSERVE,
    params: Type.Object({ hash: Sha256 }, closed),
    headers: ['if-none-match'],
    responses: {
      200: jsonResponse('The chart, which never changes.', ChartShape),
      304: { description: 'If-None-Match names the present ETag.' },
    },
    async handle({ params: { hash }, headers }, service) {
      const ETag = etagOf(hash);
      const known = headers['if-none-match'];
      const cacheHeaders = { ETag, 'Cache-Control': 'private, max-age=31536000, immutable' };
      const chart = requireFound(await requireInspector(service).chart(hash));
      return known !== undefined && hasWeakMatch(known, ETag)
        ? { status: 304, headers: cacheHeaders }
        : { json: chart, headers: cacheHeaders };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/steps/{run_id}/{step}',
    summary: 'Get a step as its agent saw it, with the entries that record it',
    rights: OBSERVE,
    params: Type.Object({ run_id: RunId, step: Type.Integer({ minimum: 1 }) }, closed),
    responses: { 200: jsonResponse('The step.', StepStoryShape) },
    async handle(request, service) {
      const { run_id, step } = request.params;
      const story = requireFound(await requireInspector(service).step(run_id, step, request.control));
      await auditAccess(request, service, '/api/v1/inspector/steps/{run_id}/{step}', { run_id, step });
      return { json: story };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/why/{log_index}',
    summary: 'Explain a decision',
    rights: OBSERVE,
    params: EntryParams,
    responses: {
      200: jsonResponse('The checks in order, and the changes that would flip the decision.', ExplanationShape),
    },
    handle: async ({ params, control }, service) => ({
      json: requireFound(await requireInspector(service).why(params.log_index, control)),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/coverage',
    kind: 'task',
    summary: 'Count how often each element of the pinned policies decided in a range of the log',
    rights: OBSERVE,
    query: Type.Object({ from: Type.Optional(LogIndex), to: Type.Optional(LogIndex) }, closed),
    responses: {
      200: jsonResponse(`By default of the last ${COVERAGE_DEFAULT} entries.`, CoverageShape),
    },
    async handle({ query, control }, service) {
      const source = requireInspector(service);
      const size = await source.size();
      const to = Math.min(size, query.to ?? size);
      const from = Math.min(to, query.from ?? Math.max(0, to - COVERAGE_DEFAULT));
      return { json: await source.coverage(from, to, control) };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/inspector/sessions/{session_id}',
    summary: 'Get a session after an entry, or at present',
    rights: OBSERVE,
    params: Type.Object({ session_id: Type.String({ minLength: 1, maxLength: 160 }) }, closed),
    query: Type.Object({ at: Type.Optional(LogIndex) }, closed),
    responses: { 200: jsonResponse('The session.', SessionViewShape) },
    async handle(request, service) {
      const { session_id } = request.params;
      const view = requireFound(
        await requireInspector(service).session(session_id, request.query.at ?? null, request.control),
      );
      await auditAccess(request, service, '/api/v1/inspector/sessions/{session_id}', { session_id, at: view.at });
      return { json: view };
    },
  }),
];

/** How many bytes of the log are in memory at a time. */
const LINES_BYTES = 65_536;

/** Yields the texts of entries, one per line, up to about `ENTRY_BYTES_MAX` bytes and at least one entry. */
async function* streamEntryLines(
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

function requireInspector({ inspector }: InspectionService): InspectorSource {
  if (inspector === null) throw new RefusalError('NOT_FOUND');
  return inspector;
}

function requireFound<T>(value: T | null): T {
  if (value === null) throw new RefusalError('NOT_FOUND');
  return value;
}

const auditAccess = (
  { principal: { id: token, actor, role } }: Pick<RouteRequest<unknown, unknown, unknown>, 'principal'>,
  { audit }: InspectionService,
  path: string,
  subject: Readonly<Record<string, string | number>>,
): Promise<void> => audit({ token, actor, role, route: path, subject });

async function streamEvents(
  request: RouteRequest<unknown, { readonly format?: keyof typeof FORMATS; readonly after?: number }, unknown>,
  service: InspectionService,
): Promise<RouteResponse> {
  const { principal, query, headers } = request;
  const { streams } = service;
  const source = requireInspector(service);
  if (streams.isFull(principal.id)) throw new RefusalError('STREAMS_TAKEN', { 'Retry-After': '5' });
  const size = await source.size();
  const lastEventId = headers['last-event-id'];
  if (lastEventId !== undefined && !/^(?:-1|\d{1,15})$/.test(lastEventId)) throw new RefusalError('INVALID_REQUEST');
  const after = lastEventId === undefined ? (query.after ?? size - 1) : Number(lastEventId);
  // The client would receive nothing until the ledger has this size, and then would miss the entries before it.
  if (after >= size) throw new RefusalError('PLACE_AHEAD');
  const format = FORMATS[query.format ?? 'entries'](source);
  // A request for archived entries must fail now: the client would only reconnect a stream that breaks off.
  if (after + 1 < size) await format.next(after + 1, after + 2);
  const subject = { after, format: query.format ?? 'entries' };
  await auditAccess(request, service, '/api/v1/stream', subject);
  const held = principal.verified === undefined ? {} : { isHeld: () => service.identity?.holds(principal) === true };
  const start = { from: after + 1, token: principal.id, ...held, format };
  return { stream: (out, control) => streams.add(out, { ...start, control }) };
}
