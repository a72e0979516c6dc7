// What a start has to know of an open tree without folding it: computed where an append changes it, and by recovery.

import { isAwaitingRetry } from '../../kernel/sandbox-changes.js';
import type { Decision } from '../../kernel/decision.js';
import type { KnownRun, Tree } from '../../kernel/tree.js';
import type { TreeRecoveryHint } from '../../ports/ledger/ledger-store.js';

/** The live agent runs of a tree. */
export const liveAgents = (tree: Tree): readonly KnownRun[] =>
  tree.runs.filter(({ context }) => context.run_kind === 'agent' && tree.isLive(context.run_id));

/** Whether a run of the tree ends with its process: its caller is gone then, or no input could ever end the tree. */
export function shouldEndWithProcess(tree: Tree): boolean {
  if (tree.hasEnded) return false;
  const agents = liveAgents(tree);
  return agents.some(({ link }) => link === 'attached') || (agents.length === 0 && isAbandoned(tree));
}

/**
 * Whether a tree has no live agent and waits for nothing. Promotions and exports wait for approvers, sessions for
 * agents.
 */
export const isAbandoned = (tree: Tree): boolean =>
  !tree.hasEnded && tree.pendingHighRiskRuns.length === 0 && tree.session === null;

/** What the store knows of a tree in memory, so that an append says it only where it changes. */
export interface KnownRecoveryHint {
  /** What the store has; null where that is not known. */
  readonly stored: TreeRecoveryHint | null;
  /** `endsWithProcess` as it was computed last; null where it was not. */
  readonly ends: boolean | null;
}

/** A new tree counts as unfinished (`TreeAppend.rest`). */
export const NEW_TREE_RECOVERY_HINT: KnownRecoveryHint = { stored: { unfinished: true, wake_at: null }, ends: null };

/** These inputs neither begin nor end a run that a caller holds, unless their decision says that one has ended. */
const STEP_INPUTS: ReadonlySet<string> = new Set(['proposal', 'facts', 'result']);

/**
 * What an append has to say of its tree.
 * @param decisions what the append holds; the tree stands behind the last of them
 * @returns the rest to be stored, null where the store has it already; and what is known from then on
 */
export function nextRecoveryHint(
  tree: Tree,
  known: KnownRecoveryHint | null,
  decisions: readonly Decision[],
): { readonly rest: TreeRecoveryHint | null; readonly known: KnownRecoveryHint } {
  const ends = known?.ends == null || decisions.some(hasRunChange) ? shouldEndWithProcess(tree) : known.ends;
  const unfinished = ends || tree.pending.length > 0 || isAwaitingRetry(tree);
  const stored = known?.stored ?? null;
  // Where the next start folds the tree, it sets the timers too.
  const wake_at = unfinished ? null : earliestTimer(tree);
  if (stored !== null && stored.unfinished === unfinished && !isBefore(wake_at, stored.wake_at)) {
    return { rest: null, known: { stored, ends } };
  }
  const recovery = { unfinished, wake_at };
  return { rest: recovery, known: { stored: recovery, ends } };
}

function hasRunChange({ ended, entries: [first] }: Decision): boolean {
  if (ended.length > 0) return true;
  return first?.entry.type !== 'input' || !STEP_INPUTS.has(first.entry.body.kind);
}

/** Timestamps have one form, so their texts compare as they do. */
function earliestTimer({ timers }: Tree): string | null {
  return timers.reduce<string | null>((first, { at }) => (first === null || at < first ? at : first), null);
}

const isBefore = (one: string | null, other: string | null): boolean => one !== null && (other === null || one < other);
