// Replay: a ledger folded through the machines, with no sandbox, no clock and no policy but the one it pinned.

import type { Artifact } from '../contract/artifact-ref.js';
import { LedgerError } from '../errors.js';
import { sha256 } from '../contract/hash.js';
import { machineDefinitions } from '../../machines/index.js';
import { machinesFor } from '../kernel/pinned.js';
import { Fold, type Difference } from '../kernel/fold.js';

/** An entry as a ledger gives it. */
export interface ReplayEntry {
  readonly log_index: number;
  readonly tree_id: string;
  readonly seq: number;
  readonly type: string;
  readonly text: string;
}

/** What a replay needs: the ledger in its order, and the content that entries brought. A LedgerStore is one. */
export interface ReplaySource {
  log(): AsyncIterable<ReplayEntry>;
  tree(tree_id: string): AsyncIterable<ReplayEntry>;
  artifactsOf(log_index: number): Promise<readonly Artifact[]>;
}

export interface ReplayReport {
  readonly ok: boolean;
  readonly trees: number;
  readonly entries: number;
  readonly inputs: number;
  readonly steps: number;
  readonly responses: number;
  /** Trees that were recorded by machines of another definition; they replay as long as those did the same. */
  readonly other_machines: number;
  /** The first entry at which the ledger departs from the machines, by the order of the log. */
  readonly difference: (Difference & { readonly log_index: number | null }) | null;
}

/**
 * Replays a whole ledger, or one tree of it: every state, verdict and response must come out as recorded, byte for
 * byte. Stops at the first difference. Memory: the trees that have not ended, one kernel each.
 */
export async function replay(source: ReplaySource, tree_id?: string): Promise<ReplayReport> {
  const folds = new Map<string, Fold>();
  const count = { trees: 0, entries: 0, inputs: 0, steps: 0, responses: 0, other_machines: 0 };
  for await (const entry of tree_id === undefined ? source.log() : source.tree(tree_id)) {
    const fold = folds.get(entry.tree_id) ?? new Fold(entry.tree_id);
    if (!folds.has(entry.tree_id)) {
      folds.set(entry.tree_id, fold);
      count.trees += 1;
    }
    const artifacts = await broughtBy(entry, source);
    const taken = artifacts === null ? { difference: unreadable(entry) } : fold.take(entry, artifacts);
    if ('difference' in taken) {
      return { ok: false, ...count, difference: { ...taken.difference, log_index: entry.log_index } };
    }
    count.entries += 1;
    if (entry.type === 'step_trace') count.steps += 1;
    if (taken.decision !== null) {
      count.inputs += 1;
      if (isOfOtherMachines(entry, fold)) count.other_machines += 1;
      count.responses += taken.decision.replies.length;
    }
  }
  for (const fold of folds.values()) {
    const rest = fold.finish();
    if (rest !== null) return { ok: false, ...count, difference: { ...rest, log_index: null } };
  }
  return { ok: true, ...count, difference: null };
}

/** Only inputs bring content. @returns null where the store itself says that it is not what it was */
async function broughtBy(entry: ReplayEntry, source: ReplaySource): Promise<readonly Artifact[] | null> {
  if (entry.type !== 'input') return [];
  try {
    return await source.artifactsOf(entry.log_index);
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return null;
    throw error;
  }
}

const unreadable = ({ tree_id, seq, text }: ReplayEntry): Difference => ({
  tree_id,
  seq,
  rule: 'artifact.differs',
  expected: null,
  found: text,
});

/** Whether this entry opens a tree whose pinned machines are not the ones that replay it. */
function isOfOtherMachines({ seq, text }: ReplayEntry, { tree }: Fold): boolean {
  if (seq !== 0 || tree.policy === null) return false;
  return !text.includes(sha256(machineDefinitions(machinesFor(tree.policy), tree.policy.catalogue, tree.policy.flags)));
}
