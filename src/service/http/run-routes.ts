// Runs, as their records tell them.

import Type, { type Static } from 'typebox';
import { canonicalJson } from '../../contract/canonical-json.js';
import { RunRecord } from '../../contract/run-record.js';
import { closed, Nullable, OneOf, RunId, Timestamp } from '../../contract/shapes.js';
import type { RunTree } from '../../runtime/ledger-reader.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { etagOf, names, namesWeakly } from './etag.js';
import { jsonPieces } from './json-pieces.js';
import { Refused } from './refused.js';
import { mustBeOfItsCase } from './run-access.js';
import { route, type Route } from './route.js';
import { After, Ending, json, Limit, OfRun } from './shapes.js';

const LIMIT_DEFAULT = 20;
/** Trees that are looked through for one page, whoever of them may be seen. */
const LOOKED_AT_MAX = 200;
/** Records of one tree in a list; `/tree` has them all, so many at a time. */
const RUNS_SHOWN = 100;
const TREE_RUNS = 500;

const Listed = Type.Object(
  {
    trees: Type.Array(
      Type.Object({ root_run_id: RunId, runs: Type.Array(RunRecord), more: Type.Integer({ minimum: 0 }) }, closed),
    ),
    next: Nullable(After),
  },
  closed,
);
const Settlement = Type.Object(
  {
    outcome: OneOf(['done', 'not_executed']),
    actor_id: Type.String(),
    role_id: Type.String(),
    at: Timestamp,
    note: Nullable(Type.String()),
  },
  closed,
);
const Tree = Type.Object(
  {
    root_run_id: RunId,
    runs: Type.Array(RunRecord),
    unknown_outcomes: Type.Record(Type.String(), Nullable(Settlement)),
    next: Nullable(After),
  },
  closed,
);
const Page = Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(100)) }, closed);
/** `after` is a place among the runs of the tree. */
const TreePage = Type.Object({ after: Type.Optional(After), limit: Type.Optional(Limit(1_000)) }, closed);
const Cancel = Type.Object({ reason: Type.String({ minLength: 1, maxLength: 160 }) }, closed);
const Outcome = Type.Object(
  { outcome: OneOf(['done', 'not_executed']), note: Type.Optional(Type.String({ maxLength: 1_000 })) },
  closed,
);

export const RUN_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/runs',
    packs: true,
    summary: 'The run trees in the order in which they were opened; an agent sees its own runs',
    rights: ['observe', 'govern', 'act'],
    query: Page,
    answers: { 200: json('Go on with `after` = `next`; null: there are no more.', Listed) },
    handle: ({ principal, query, control }, { turnpike, access }) => {
      const trees = turnpike.ledger.treesAfter(query.after ?? -1, control);
      const isSeen = (run: RunRecord): boolean => access.sees(principal, run);
      const items = listed(trees, query.limit ?? LIMIT_DEFAULT, isSeen);
      return { chunks: jsonPieces({ name: 'trees', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/runs/{run_id}',
    summary: 'The record of one run',
    rights: ['observe', 'govern', 'act'],
    params: OfRun,
    headers: ['if-none-match'],
    answers: {
      200: json('With a strong ETag.', RunRecord),
      304: { description: 'It is as If-None-Match has it.' },
    },
    async handle({ principal, params, headers, control }, { turnpike, access }) {
      const record = await turnpike.ledger.run(params.run_id, control);
      if (record === null || !access.sees(principal, record)) throw new Refused('RUN_UNKNOWN');
      const text = canonicalJson(record);
      const ETag = etagOf(text);
      const known = headers['if-none-match'];
      if (known !== undefined && namesWeakly(known, ETag)) return { status: 304, headers: { ETag } };
      return { bytes: text, type: 'application/json', headers: { ETag } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/runs/{run_id}/tree',
    packs: true,
    summary: 'The run tree that a run belongs to: parents before their children',
    rights: ['observe', 'govern', 'act'],
    params: OfRun,
    query: TreePage,
    answers: {
      200: json(
        'Its runs, and what became of acts of which nobody knew. Go on with `after` = `next`; null: there are no more.',
        Tree,
      ),
    },
    async handle({ principal, params: { run_id }, query, control }, { turnpike, access }) {
      const { after = -1, limit = TREE_RUNS } = query;
      const tree = await turnpike.ledger.treeOf(run_id, control);
      const seen = tree?.runs.filter((run) => access.sees(principal, run)) ?? [];
      if (tree === null || !seen.some((run) => run.run_id === run_id)) throw new Refused('RUN_UNKNOWN');
      const end = Math.min(seen.length, after + 1 + limit);
      const runs = seen.slice(after + 1, end);
      const unknown_outcomes = Object.fromEntries(
        runs.flatMap(({ run_id: id }) => {
          const settled = tree.unknown.get(id);
          return settled === undefined ? [] : [[id, settled]];
        }),
      );
      const next = end < seen.length ? end - 1 : null;
      // eslint-disable-next-line @typescript-eslint/require-await
      const items = (async function* () {
        yield* runs;
        return { unknown_outcomes, next };
      })();
      const before = { root_run_id: tree.root_run_id };
      return { chunks: jsonPieces({ before, name: 'runs', items }), type: 'application/json' };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/runs/{run_id}/cancel',
    summary: 'Cancel the tree of a live agent run, children first',
    rights: ['govern', 'act'],
    params: OfRun,
    body: Cancel,
    headers: ['if-match'],
    answers: { 200: json('How the run has ended.', Ending) },
    async handle({ principal, params: { run_id }, body, headers }, { turnpike, access }) {
      const mayCancel = principal.rights.has('govern') || (await access.isOwn(principal, run_id));
      const run = await turnpike.ledger.run(run_id);
      if (!mayCancel) throw new Refused('RUN_UNKNOWN');
      // Of a run that there is not, it is told the same.
      if (principal.case !== null) mustBeOfItsCase(principal, run?.case_id);
      if (run === null) throw new Refused('RUN_UNKNOWN');
      await checkIsAsBefore(run_id, headers['if-match'], turnpike);
      const agent = await turnpike.agent(run_id);
      if (agent === null) throw new Refused('INVALID_STATE_TRANSITION');
      const { state, reason } = await agent.cancel(body.reason);
      return { json: { state, reason } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/runs/{run_id}/outcome',
    summary: 'Say what became of an act whose outcome was unknown',
    rights: ['govern'],
    params: OfRun,
    body: Outcome,
    answers: { 200: json('It is recorded.', Type.Object({ run_id: RunId }, closed)) },
    async handle({ principal, params: { run_id }, body: { outcome, note } }, { turnpike }) {
      if (principal.case !== null) mustBeOfItsCase(principal, (await turnpike.ledger.run(run_id))?.case_id);
      const { actor, role } = principal;
      const said = { run: run_id, outcome, actor, role };
      await turnpike.resolve(note === undefined ? said : { ...said, note });
      return { json: { run_id } };
    },
  }),
];

/** @throws Refused PRECONDITION_FAILED where the record is not one of those that If-Match names */
export async function checkIsAsBefore(run_id: string, expected: string | undefined, turnpike: Turnpike): Promise<void> {
  if (expected === undefined) return;
  const record = await turnpike.ledger.run(run_id);
  if (record === null || !names(expected, etagOf(canonicalJson(record)))) throw new Refused('PRECONDITION_FAILED');
}

type ListedTree = Static<typeof Listed>['trees'][number];

async function* listed(
  found: AsyncIterable<RunTree & { readonly log_index: number }>,
  limit: number,
  isSeen: (run: RunRecord) => boolean,
): AsyncGenerator<ListedTree, Pick<Static<typeof Listed>, 'next'>> {
  let [looked, shown, next] = [0, 0, -1];
  for await (const tree of found) {
    // One more than was asked for is there: there is a next page.
    if (shown >= limit || looked >= LOOKED_AT_MAX) return { next };
    looked += 1;
    next = tree.log_index;
    const listing = shownOf(tree, isSeen);
    if (listing === null) continue;
    shown += 1;
    yield listing;
  }
  return { next: null };
}

function shownOf(
  { root_run_id, runs }: RunTree,
  isSeen: (run: RunRecord) => boolean,
): Static<typeof Listed>['trees'][number] | null {
  const seen = runs.filter(isSeen);
  if (seen.length === 0) return null;
  return { root_run_id, runs: seen.slice(0, RUNS_SHOWN), more: Math.max(0, seen.length - RUNS_SHOWN) };
}
