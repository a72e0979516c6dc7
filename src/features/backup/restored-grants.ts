// What a ledger that has lost entries would permit once more: approvals that were not used yet, and counters that count
// what they counted then. A person confirms each, because the lost entries may have used them.

import { LiveTrees } from '../../engine/trees/live-trees.js';
import { findLedgerFacts, type FactTotal } from '../../engine/ledger-facts.js';
import type { ApprovalVote } from '../../core/contract/run/approval.js';
import type { RestoreInput } from '../../core/contract/run/input.js';
import { loadFeaturesOfPolicy, missingFeatureError } from '../../core/contract/run/feature-vocabulary.js';
import { usageError } from '../../core/errors.js';
import { CONDITIONS } from '../../core/policy/policy-features.js';
import type { Tree } from '../../kernel/tree.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';

/** An approval that can still be used. */
export interface RestoredApproval {
  readonly run_id: string;
  readonly case_id: string | null;
  readonly digest: string;
  /** `promotion`, `export`, or the action's name. */
  readonly name: string;
  readonly requested_by: string;
  readonly votes: readonly ApprovalVote[];
  readonly expires_at: string;
}

/** A counter of a policy, with what it has counted of each subject. */
export interface RestoredCounter {
  readonly name: string;
  /** Without windows: of all time. */
  readonly values: readonly { readonly key: string; readonly total: number }[];
}

export interface RestoredGrants {
  readonly approvals: readonly RestoredApproval[];
  readonly counters: readonly RestoredCounter[];
}

/** What a person confirms: digests of approvals, and names of counters. */
export type ConfirmedGrants = NonNullable<RestoreInput['confirmed']>;

type GrantStore = Pick<LedgerStore, 'log' | 'openTrees' | 'archives'> & LedgerStore;

/**
 * @param tree_id the tree that records the restore: it was opened under the policy that applies from then on
 * @throws LedgerError
 */
export async function readRestoredGrants(store: GrantStore, tree_id: string): Promise<RestoredGrants> {
  const approvals: RestoredApproval[] = [];
  const names = new Set<string>();
  const add = (tree: Tree | null): void => {
    for (const { name } of tree?.policy?.counters?.all ?? []) names.add(name);
  };
  add(await read(store, tree_id));
  for await (const { tree_id: open } of store.openTrees()) {
    const tree = await read(store, open);
    add(tree);
    if (tree !== null) approvals.push(...approvalsOf(tree));
  }
  const totals = await readTotals(store);
  for (const { name } of totals) names.add(name);
  const counters = [...names].sort().map((name) => ({
    name,
    values: totals.filter((total) => total.name === name).map(({ key, total }) => ({ key, total })),
  }));
  return { approvals, counters };
}

/**
 * What counters have counted, also under the policies of ended trees.
 * @throws LedgerError LEDGER_UNSUPPORTED if this installation cannot count it
 */
async function readTotals(store: GrantStore): Promise<readonly FactTotal[]> {
  if (!(await hasCounted(store))) return [];
  await loadFeaturesOfPolicy({ counters: ANY_FILE });
  const source = findLedgerFacts();
  if (source === null) throw missingFeatureError(CONDITIONS);
  return source.readTotals(store);
}
const ANY_FILE = { bytes: new Uint8Array() };

/** Whether an entry that is not archived records the value of a counter. */
async function hasCounted(store: GrantStore): Promise<boolean> {
  const first = (await store.archives.parts()).at(-1)?.size ?? 0;
  for await (const { type, text } of store.log(first))
    if (type === 'input' && text.includes('"kind":"facts"') && text.includes('"counters":[')) return true;
  return false;
}

/** One tree at a time, without a cache. */
const read = (store: LedgerStore, tree_id: string): Promise<Tree | null> =>
  new LiveTrees(store, 0, Infinity).get(tree_id);

function approvalsOf(tree: Tree): readonly RestoredApproval[] {
  const agents = tree.runs.map(({ context }) => context).filter(({ run_kind }) => run_kind === 'agent');
  return [...agents, ...tree.pendingHighRiskRuns]
    .filter(({ run_id }) => tree.isLive(run_id))
    .flatMap(({ run_id, case_id }) =>
      (tree.approvals(run_id)?.entries ?? [])
        .filter(({ state }) => state === 'approved')
        .map(({ digest, name, requested_by, votes, expires_at }) => ({
          ...{ run_id, case_id, digest, name },
          ...{ requested_by, votes, expires_at },
        })),
    );
}

/** @throws UsageError that names what is not confirmed, and what was confirmed and is not there */
export function checkConfirmed({ approvals, counters }: RestoredGrants, confirmed: ConfirmedGrants): void {
  const digests = new Set(approvals.map(({ digest }) => digest));
  const names = new Set(counters.map(({ name }) => name));
  const unknown = [
    ...confirmed.approvals.filter((digest) => !digests.has(digest)),
    ...confirmed.counters.filter((name) => !names.has(name)),
  ];
  if (unknown.length > 0) throw usageError(`not among what was restored: ${unknown.join(', ')}`);
  const missing = [
    ...[...digests].filter((digest) => !confirmed.approvals.includes(digest)).map((digest) => `--approval ${digest}`),
    ...[...names].filter((name) => !confirmed.counters.includes(name)).map((name) => `--counter ${name}`),
  ];
  if (missing.length === 0) return;
  throw usageError(
    'the lost entries may have used what was restored: find out, and confirm each that may be used (again) with ' +
      `${missing.join(' ')}; cancel the run of an approval that must not be used with \`turnpike runs cancel\` first`,
  );
}
