// What a start must know of an open tree without folding it. Appends and recovery compute it when it changes.

import { isAwaitingRetry } from '../../kernel/sandbox-changes.js';
import type { Decision } from '../../kernel/decision.js';
import type { KnownRun, Tree } from '../../kernel/tree.js';
import type { TreeRecoveryHint } from '../ports/ledger/ledger-store.js';

/** The live agent runs of a tree. */
export const liveAgents = (tree: Tree): readonly KnownRun[] =>
  tree.runs.filter(({ context }) => context.run_kind === 'agent' && tree.isLive(context.run_id));

/** Whether a run of the tree ends with this process: its caller would be gone, or no input could ever end the tree. */
export function shouldEndWithProcess(tree: Tree): boolean {
  if (tree.hasEnded) return false;
  const agents = liveAgents(tree);
  return agents.some(({ link }) => link === 'attached') || (agents.length === 0 && isAbandoned(tree));
}

/**
 * Whether a tree has no live agent and waits for nothing. Promotions and exports wait for approvers, the trees of
 * features for their callers.
 */
export const isAbandoned = (tree: Tree): boolean =>
  !tree.hasEnded && tree.pendingHighRiskRuns.length === 0 && tree.rootFeature === null;

/** The stored hint of a tree in memory, so that an append writes it only if it changes. */
export interface KnownRecoveryHint {
  /** The stored hint; null if unknown. */
  readonly stored: TreeRecoveryHint | null;
  /** The last computed `shouldEndWithProcess`; null if not computed yet. */
  readonly ends: boolean | null;
}

/** A new tree counts as unfinished (`TreeAppend.recoveryHint`). */
export const NEW_TREE_RECOVERY_HINT: KnownRecoveryHint = { stored: { unfinished: true, wake_at: null }, ends: null };

/** Inputs that neither start nor end a run with a caller, unless their decision ends one. */
const STEP_INPUTS: ReadonlySet<string> = new Set(['proposal', 'facts', 'result']);

/**
 * Computes the recovery hint for an append.
 * @param decisions the decisions of the append; the tree includes all of them
 * @param alwaysWakes whether the time of the next timer is stored for unfinished trees too
 * @returns the hint to store, or null if the store already has it; and what is known afterwards
 */
export function nextRecoveryHint(
  tree: Tree,
  known: KnownRecoveryHint | null,
  decisions: readonly Decision[],
  alwaysWakes = false,
): { readonly recoveryHint: TreeRecoveryHint | null; readonly known: KnownRecoveryHint } {
  const ends = known?.ends == null || decisions.some(hasRunChange) ? shouldEndWithProcess(tree) : known.ends;
  const unfinished = ends || tree.pending.length > 0 || isAwaitingRetry(tree);
  const stored = known?.stored ?? null;
  // If the next start folds the tree, it sets the timers too.
  const wake_at = unfinished && !alwaysWakes ? null : earliestTimer(tree);
  if (stored !== null && stored.unfinished === unfinished && !isBefore(wake_at, stored.wake_at)) {
    return { recoveryHint: null, known: { stored, ends } };
  }
  const recovery = { unfinished, wake_at };
  return { recoveryHint: recovery, known: { stored: recovery, ends } };
}

function hasRunChange({ ended, entries: [first] }: Decision): boolean {
  if (ended.length > 0) return true;
  return first?.entry.type !== 'input' || !STEP_INPUTS.has(first.entry.body.kind);
}

/** Timestamps have one fixed form, so comparing their texts compares times. */
function earliestTimer({ timers }: Tree): string | null {
  return timers.reduce<string | null>((first, { at }) => (first === null || at < first ? at : first), null);
}

const isBefore = (one: string | null, other: string | null): boolean => one !== null && (other === null || one < other);
