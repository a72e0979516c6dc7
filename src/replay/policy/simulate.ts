// A whole ledger decided again under another policy. Each decision by itself: that an earlier one would have gone
// another way, and so perhaps everything after it, changes nothing here.

import type { Catalogue } from '../../contract/policy/catalogue.js';
import type { Policy } from '../../policy/policy.js';
import type { ReplaySource } from '../replay.js';
import { decisionsIn, type ReadCount } from './decision-fold.js';
import { decideUnderPolicy } from './decide-under-policy.js';
import type { PolicyAnswer, RecordedDecision, RecordedVerdict, UndecidableReason } from './recorded-decision.js';

export const FLIP_KINDS = ['new-allow', 'new-deny', 'other-rule'] as const;
export type FlipKind = (typeof FLIP_KINDS)[number];

/** A decision that comes out otherwise, or cannot be taken again. */
export interface SimulationFinding extends Omit<RecordedDecision, 'said' | 'facts' | 'policy'> {
  readonly kind: FlipKind | 'undecidable';
  readonly was: RecordedVerdict;
  /** Null where it cannot be taken again. */
  readonly now: RecordedVerdict | null;
  readonly undecidable: UndecidableReason | null;
}

export interface Simulation {
  readonly trees: number;
  readonly entries: number;
  /** Trees of which only the earlier decisions were taken again: content that the others rest on is not to be had. */
  readonly not_recomputed: number;
  readonly decisions: number;
  readonly same: number;
  readonly flips: Readonly<Record<FlipKind, number>>;
  readonly undecidable: Readonly<Partial<Record<UndecidableReason, number>>>;
}

/** The policy over what a run tree has registered; null where it is no valid one there. */
export type PolicyResolver = (catalogue: Catalogue) => Policy | null;

/**
 * @param onFinding told of every flip, and of every decision that cannot be taken again, in the order of the log
 * @throws LedgerError LEDGER_TAMPERED for a ledger that the machines have not written
 */
export async function simulate(
  source: ReplaySource,
  resolvePolicy: PolicyResolver,
  onFinding: (finding: SimulationFinding) => void,
  tree_id?: string,
): Promise<Simulation> {
  const read: ReadCount = { trees: 0, entries: 0, not_recomputed: 0 };
  const flips = { 'new-allow': 0, 'new-deny': 0, 'other-rule': 0 };
  const undecidable: Partial<Record<UndecidableReason, number>> = {};
  let [decisions, same] = [0, 0];
  for await (const decision of decisionsIn(source, tree_id, read)) {
    decisions += 1;
    const finding = compareDecision(decision, resolvePolicy(decision.policy.catalogue));
    if (finding === null) {
      same += 1;
      continue;
    }
    if (finding.kind !== 'undecidable') flips[finding.kind] += 1;
    const reason = finding.undecidable;
    if (reason !== null) undecidable[reason] = (undecidable[reason] ?? 0) + 1;
    onFinding(finding);
  }
  return { ...read, decisions, same, flips, undecidable };
}

/** One decision, taken again. @returns null where it stays as it is */
export function compareDecision(decision: RecordedDecision, policy: Policy | null): SimulationFinding | null {
  const { said: was } = decision;
  const answer: PolicyAnswer =
    policy === null ? { undecidable: 'policy.invalid' } : decideUnderPolicy(decision, policy);
  if ('undecidable' in answer) return { ...placeOf(decision), ...answer, kind: 'undecidable', was, now: null };
  const kind = flipOf(was, answer);
  return kind === null ? null : { ...placeOf(decision), kind, was, now: answer, undecidable: null };
}

function flipOf(was: RecordedVerdict, now: RecordedVerdict): FlipKind | null {
  if (was.decision !== now.decision) return now.decision === 'allow' ? 'new-allow' : 'new-deny';
  return was.rule_id === now.rule_id ? null : 'other-rule';
}

const placeOf = ({ tree_id, seq, log_index, run_id, actor_id, role_id, lane_id, action }: RecordedDecision) => ({
  tree_id,
  seq,
  log_index,
  run_id,
  actor_id,
  role_id,
  lane_id,
  action,
});

/** Findings alike in everything but where they are. */
export interface FindingGroup extends Omit<SimulationFinding, 'tree_id' | 'seq' | 'log_index' | 'run_id' | 'actor_id'> {
  readonly count: number;
  /** The first of them. */
  readonly first: readonly Pick<SimulationFinding, 'tree_id' | 'seq' | 'log_index'>[];
}

/** By kind, lane, role, action and rules; a group keeps so many places. */
export class FindingGroups {
  readonly #groups = new Map<string, { finding: SimulationFinding; count: number; first: SimulationFinding[] }>();
  readonly #placesMax: number;

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  add(finding: SimulationFinding): void {
    const { kind, lane_id, role_id, action, was, now, undecidable } = finding;
    const key = JSON.stringify([kind, lane_id, role_id, action, was.rule_id, was.decision, now, undecidable]);
    const group = this.#groups.get(key) ?? { finding, count: 0, first: [] };
    group.count += 1;
    if (group.first.length < this.#placesMax) group.first.push(finding);
    this.#groups.set(key, group);
  }

  /** New allows first, then new denials, other rules, and what cannot be decided; the largest of each first. */
  get list(): readonly FindingGroup[] {
    const order = [...FLIP_KINDS, 'undecidable'];
    return [...this.#groups.values()]
      .map(({ finding, count, first }) => ({
        kind: finding.kind,
        role_id: finding.role_id,
        lane_id: finding.lane_id,
        action: finding.action,
        was: finding.was,
        now: finding.now,
        undecidable: finding.undecidable,
        count,
        first: first.map(({ tree_id, seq, log_index }) => ({ tree_id, seq, log_index })),
      }))
      .toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.count - a.count);
  }
}
