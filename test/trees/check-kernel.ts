// The output of a tree is a function of its inputs: folding its ledger, continuing from a snapshot, and XState's own
// actors give the same bytes (S2-06, D16, U-06).

import { canonicalJson } from '../../src/core/contract/json.js';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import { Fold } from '../../src/kernel/fold.js';
import type { Decision, TreeInput } from '../../src/kernel/decision.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { ROOT, type Played } from './play.js';
import { isVote, type Faults } from './story.js';
import { xstateInterpretation } from '../../src/kernel/interpreter/xstate-actors.js';

const essence = ({ entries, commands, replies, timers, marks, ended, refused }: Decision): string =>
  canonicalJson({ entries: entries.map(({ text }) => text), commands, replies, timers, marks, ended, refused });
const stored = (tree: Tree): TreeSnapshot => JSON.parse(JSON.stringify(tree.snapshot())) as TreeSnapshot;

export function fold({ decisions }: Played): Faults {
  const folded = new Fold(ROOT);
  for (const { entries, artifacts } of decisions) {
    for (const { entry, text } of entries) {
      const taken = folded.apply({ seq: entry.seq, text }, entry.type === 'input' ? artifacts : []);
      if ('difference' in taken) return [`fold: ${taken.difference.rule} at ${taken.difference.seq}`];
    }
  }
  const missing = folded.finish();
  return missing === null ? [] : [`fold: ${missing.rule} at ${missing.seq}`];
}

/**
 * Stops the tree after the input `at` and continues from its snapshot; omits every third overlay on the way, as a test.
 */
export function snapshot({ inputs, decisions, pinned }: Played, at: number): Faults {
  const faults: Faults = [];
  let tree = new Tree(ROOT);
  for (const [i, input] of inputs.entries()) {
    if (i > 0 && (i === at || liftable(input)) && i % 3 === at % 3)
      faults.push(...lifted(tree, input, decisions[i], pinned));
    const decided = tree.decide(input);
    const expected = decisions[i];
    if (expected === undefined || essence(decided) !== essence(expected))
      return [...faults, `snapshot: input ${i} is decided otherwise`];
    if (i === at) tree = restoreTree(stored(tree), pinned.materials);
  }
  return faults;
}

const liftable = ({ recorded }: TreeInput): boolean => 'overlay' in recorded && recorded.overlay !== null;

/** An overlay only removes permissions: without it, everything that was allowed is allowed. */
function lifted(tree: Tree, input: TreeInput, under: Decision | undefined, { materials }: Played['pinned']): Faults {
  if (under === undefined || !liftable(input)) return [];
  const recorded = { ...input.recorded, overlay: null as OverlayFact | null } as TreeInput['recorded'];
  const without = restoreTree(stored(tree), materials).decide({ ...input, recorded });
  const denied = new Set(verdicts(without, 'deny'));
  return verdicts(under, 'allow').flatMap((run_id) =>
    denied.has(run_id) ? [`${run_id}: the overlay has allowed it`] : [],
  );
}

const verdicts = ({ entries }: Decision, outcome: 'allow' | 'deny'): string[] =>
  entries.flatMap(({ entry }) =>
    entry.type === 'audit_event' &&
    entry.body.outcome === outcome &&
    entry.body.authz !== undefined &&
    !isVote(entry.body)
      ? [entry.body.run_id]
      : [],
  );

export function oracle({ inputs, decisions }: Played): Faults {
  const tree = new Tree(ROOT, xstateInterpretation());
  for (const [i, input] of inputs.entries()) {
    const expected = decisions[i];
    if (expected === undefined || essence(tree.decide(input)) !== essence(expected))
      return [`XState decides input ${i} otherwise`];
  }
  return [];
}
