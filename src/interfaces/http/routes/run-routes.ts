// Routes for runs and their records.

import Type, { type Static } from 'typebox';
import { canonicalJson } from '../../../core/contract/json.js';
import { RunRecord } from '../../../core/contract/run/run-record.js';
import { closed, Nullable, OneOf, RunId, Timestamp } from '../../../core/contract/shapes.js';
import type { RunTree } from '../../../runtime/ledger/ledger-reader.js';
import type { Turnpike } from '../../../host/turnpike.js';
import { etagOf, hasStrongMatch, hasWeakMatch, route, type Route } from './route.js';
import { streamJson } from '../write-pieces.js';
import { RefusalError } from '../../service/problems.js';
import { checkTokenCase } from './run-access.js';
import { After, Ending, jsonResponse, Limit, RunParams } from './route-shapes.js';

/** A run record as HTTP shows it. What is recorded in `metadata` are texts (C59); a client counts with numbers. */
export const RunView = Type.Object(
  {
    ...RunRecord.properties,
    /** Which retry of its first attempt the run is; absent for a first attempt. */
    retry_count: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type RunView = Static<typeof RunView>;

function toRunView(record: RunRecord): RunView {
  const count = record.metadata?.['retry_count'];
  return count === undefined ? record : { ...record, retry_count: Number(count) };
}

const LIMIT_DEFAULT = 20;
/** How many trees one page scans, including those that the caller may not see. */
const TREES_SCANNED_MAX = 200;
/** Limits of the records of one tree: in a list, and in one page of `/tree`. */
const RUNS_SHOWN = 100;
const TREE_RUNS = 500;

const RunListShape = Type.Object(
  {
    trees: Type.Array(
      Type.Object({ root_run_id: RunId, runs: Type.Array(RunView), more: Type.Integer({ minimum: 0 }) }, closed),
    ),
    next: Nullable(After),
  },
  closed,
);
const SettlementShape = Type.Object(
  {
    outcome: OneOf(['done', 'not_executed']),
    actor_id: Type.String(),
    role_id: Type.String(),
    at: Timestamp,
    note: Nullable(Type.String()),
  },
  closed,
);
const TreeShape = Type.Object(
  {
    root_run_id: RunId,
    runs: Type.Array(RunView),
    unknown_outcomes: Type.Record(Type.String(), Nullable(SettlementShape)),
    next: Nullable(After),
  },
  closed,
);
const RunListQuery = Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(100)) }, closed);
/** `after` is an index into the runs of the tree. */
const TreeQuery = Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(1_000)) }, closed);
const CancelBody = Type.Object({ reason: Type.String({ minLength: 1, maxLength: 160 }) }, closed);
const OutcomeBody = Type.Object(
  { outcome: OneOf(['done', 'not_executed']), note: Type.Optional(Type.String({ maxLength: 1_000 })) },
  closed,
);

export const RUN_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/runs',
    isCompressed: true,
    summary: 'List the run trees in the order of their creation; an agent sees only its own runs',
    rights: ['observe', 'govern', 'act'],
    query: RunListQuery,
    responses: { 200: jsonResponse('Continue with `after` = `next`; null: there are no more.', RunListShape) },
    handle: ({ principal, query, control }, { turnpike, access }) => {
      const trees = turnpike.ledger.treesAfter(query.after ?? -1, control);
      const isSeen = (run: RunRecord): boolean => access.canSee(principal, run);
      const items = listTrees(trees, query.limit ?? LIMIT_DEFAULT, isSeen);
      return { chunks: streamJson({ name: 'trees', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/runs/{run_id}',
    summary: 'Get the record of one run',
    rights: ['observe', 'govern', 'act'],
    params: RunParams,
    headers: ['if-none-match'],
    responses: {
      200: jsonResponse('The record, with a strong ETag.', RunView),
      304: { description: 'If-None-Match names the present ETag.' },
    },
    async handle({ principal, params, headers, control }, { turnpike, access }) {
      const record = await turnpike.ledger.run(params.run_id, control);
      if (record === null || !access.canSee(principal, record)) throw new RefusalError('RUN_UNKNOWN');
      const ETag = etagOf(canonicalJson(record));
      const known = headers['if-none-match'];
      if (known !== undefined && hasWeakMatch(known, ETag)) return { status: 304, headers: { ETag } };
      return { bytes: canonicalJson(toRunView(record)), type: 'application/json', headers: { ETag } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/runs/{run_id}/tree',
    isCompressed: true,
    summary: 'Get the run tree of a run: parents before their children',
    rights: ['observe', 'govern', 'act'],
    params: RunParams,
    query: TreeQuery,
    responses: {
      200: jsonResponse(
        'The runs, and the unknown outcomes with their settlements. Continue with `after` = `next`; null: no more.',
        TreeShape,
      ),
    },
    async handle({ principal, params: { run_id }, query, control }, { turnpike, access }) {
      const { after = -1, limit = TREE_RUNS } = query;
      const tree = await turnpike.ledger.treeOf(run_id, control);
      const visible = tree?.runs.filter((run) => access.canSee(principal, run)) ?? [];
      if (tree === null || !visible.some((run) => run.run_id === run_id)) throw new RefusalError('RUN_UNKNOWN');
      const end = Math.min(visible.length, after + 1 + limit);
      const runs = visible.slice(after + 1, end);
      const unknown_outcomes = Object.fromEntries(
        runs.flatMap(({ run_id: id }) => {
          const settled = tree.unknown.get(id);
          return settled === undefined ? [] : [[id, settled]];
        }),
      );
      const next = end < visible.length ? end - 1 : null;
      // eslint-disable-next-line @typescript-eslint/require-await
      const items = (async function* () {
        yield* runs.map(toRunView);
        return { unknown_outcomes, next };
      })();
      const before = { root_run_id: tree.root_run_id };
      return { chunks: streamJson({ before, name: 'runs', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/runs/{run_id}/cancel',
    summary: 'Cancel the tree of an agent, promotion or export run that has not ended, children first',
    rights: ['govern', 'act'],
    params: RunParams,
    body: CancelBody,
    headers: ['if-match'],
    responses: { 200: jsonResponse('How the run has ended.', Ending) },
    async handle({ principal, params: { run_id }, body, headers }, { turnpike, access }) {
      const mayCancel = principal.rights.has('govern') || (await access.isOwn(principal, run_id));
      const run = await turnpike.ledger.run(run_id);
      if (!mayCancel) throw new RefusalError('RUN_UNKNOWN');
      // The response for a run that does not exist is the same.
      if (principal.case !== null) checkTokenCase(principal, run?.case_id);
      if (run === null) throw new RefusalError('RUN_UNKNOWN');
      await checkIfMatch(run_id, headers['if-match'], turnpike);
      const active = (await turnpike.agent(run_id)) ?? (await turnpike.highRiskRun(run_id));
      if (active === null) throw new RefusalError('INVALID_STATE_TRANSITION');
      const { state, reason } = await active.cancel(body.reason);
      return { json: { state, reason } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/runs/{run_id}/outcome',
    summary: 'Settle an action with an unknown outcome',
    rights: ['govern'],
    params: RunParams,
    body: OutcomeBody,
    responses: { 200: jsonResponse('The outcome is recorded.', Type.Object({ run_id: RunId }, closed)) },
    async handle({ principal, params: { run_id }, body: { outcome, note } }, { turnpike }) {
      if (principal.case !== null) checkTokenCase(principal, (await turnpike.ledger.run(run_id))?.case_id);
      const { actor, role } = principal;
      const resolution = { run: run_id, outcome, actor, role };
      await turnpike.resolve(note === undefined ? resolution : { ...resolution, note });
      return { json: { run_id } };
    },
  }),
];

/** @throws RefusalError PRECONDITION_FAILED if If-Match does not name the present record */
export async function checkIfMatch(run_id: string, expected: string | undefined, turnpike: Turnpike): Promise<void> {
  if (expected === undefined) return;
  const record = await turnpike.ledger.run(run_id);
  if (record === null || !hasStrongMatch(expected, etagOf(canonicalJson(record))))
    throw new RefusalError('PRECONDITION_FAILED');
}

type ListedTree = Static<typeof RunListShape>['trees'][number];

async function* listTrees(
  found: AsyncIterable<RunTree & { readonly log_index: number }>,
  limit: number,
  isSeen: (run: RunRecord) => boolean,
): AsyncGenerator<ListedTree, Pick<Static<typeof RunListShape>, 'next'>> {
  let [scanned, yielded, next] = [0, 0, -1];
  for await (const tree of found) {
    // There is a further tree, so there is a next page.
    if (yielded >= limit || scanned >= TREES_SCANNED_MAX) return { next };
    scanned += 1;
    next = tree.log_index;
    const listing = visiblePartOf(tree, isSeen);
    if (listing === null) continue;
    yielded += 1;
    yield listing;
  }
  return { next: null };
}

function visiblePartOf(
  { root_run_id, runs }: RunTree,
  isSeen: (run: RunRecord) => boolean,
): Static<typeof RunListShape>['trees'][number] | null {
  const visible = runs.filter(isSeen);
  if (visible.length === 0) return null;
  return {
    root_run_id,
    runs: visible.slice(0, RUNS_SHOWN).map(toRunView),
    more: Math.max(0, visible.length - RUNS_SHOWN),
  };
}
