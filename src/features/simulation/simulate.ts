// Decides every decision of a ledger again under another policy. Each decision is independent: a different result of an
// earlier decision does not change the facts of later ones.

import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { Policy } from '../../core/policy/policy.js';
import type { ReplaySource } from '../../kernel/replay/replay.js';
import { decisionsIn, type ReadCount } from './decision-fold.js';
import { decideUnderPolicy } from './decide-under-policy.js';
import type { PolicyAnswer, RecordedDecision, RecordedVerdict, UndecidableReason } from './recorded-decision.js';

/**
 * From a denial over approvals by more or fewer people to an allow, each change is a flip. `stricter` and
 * `less-strict`: both decisions deny, and one of them waits for people, or for more of them.
 */
export const FLIP_KINDS = ['new-allow', 'new-deny', 'stricter', 'less-strict', 'other-rule'] as const;
export type FlipKind = (typeof FLIP_KINDS)[number];

/** A decision that another policy changes, or cannot decide. */
export interface SimulationFinding extends Omit<RecordedDecision, 'said' | 'facts' | 'policy'> {
  readonly kind: FlipKind | 'undecidable';
  readonly was: RecordedVerdict;
  /** Null if the other policy cannot decide. */
  readonly now: RecordedVerdict | null;
  readonly undecidable: UndecidableReason | null;
}

export interface Simulation {
  readonly trees: number;
  readonly entries: number;
  /** Trees of which only the earlier decisions were simulated: content that later ones need is withheld or erased. */
  readonly not_recomputed: number;
  /** How many archived entries precede those that were simulated; absent if none do. */
  readonly archived?: number;
  readonly decisions: number;
  readonly same: number;
  readonly flips: Readonly<Record<FlipKind, number>>;
  readonly undecidable: Readonly<Partial<Record<UndecidableReason, number>>>;
}

/** Whether every recorded decision was decided again: none is archived, lost with its content, or undecidable. */
export const isWhole = ({ not_recomputed, archived, undecidable }: Simulation): boolean =>
  not_recomputed === 0 && archived === undefined && Object.keys(undecidable).length === 0;

/** Returns the policy with the registrations of a run tree; null if the policy is not valid with them. */
export type PolicyResolver = (catalogue: Catalogue) => Policy | null;

/**
 * Decides every decision of a ledger, or of one of its trees, under the policy that `resolvePolicy` returns.
 * @param onFinding receives every changed and every undecidable decision, in log order
 * @throws LedgerError LEDGER_TAMPERED for a ledger that the machines would not have written
 */
export async function simulate(
  source: ReplaySource,
  resolvePolicy: PolicyResolver,
  onFinding: (finding: SimulationFinding) => void,
  tree_id?: string,
): Promise<Simulation> {
  const read: ReadCount = { trees: 0, entries: 0, not_recomputed: 0 };
  const flips = Object.fromEntries(FLIP_KINDS.map((kind) => [kind, 0])) as Record<FlipKind, number>;
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

/** Decides one decision under another policy. @returns the difference, or null if the verdict stays the same */
export function compareDecision(decision: RecordedDecision, policy: Policy | null): SimulationFinding | null {
  const { said: was } = decision;
  const answer: PolicyAnswer =
    policy === null ? { undecidable: 'policy.invalid' } : decideUnderPolicy(decision, policy);
  if ('undecidable' in answer) return { ...placeOf(decision), ...answer, kind: 'undecidable', was, now: null };
  const recorded = withQuorum(decision);
  const kind = flipOf(recorded, answer);
  return kind === null ? null : { ...placeOf(decision), kind, was: recorded, now: answer, undecidable: null };
}

/** The ledger does not record how many people a denial waits for: its policy says it. */
function withQuorum(decision: RecordedDecision): RecordedVerdict {
  const { said, policy } = decision;
  const canWait = said.decision === 'deny' && said.rule_id?.startsWith('approval.') === true;
  if (!canWait) return said;
  const again = decideUnderPolicy(decision, policy);
  return 'undecidable' in again || again.quorum === undefined ? said : { ...said, quorum: again.quorum };
}

function flipOf(was: RecordedVerdict, now: RecordedVerdict): FlipKind | null {
  if (was.decision !== now.decision) return now.decision === 'allow' ? 'new-allow' : 'new-deny';
  if (was.quorum !== now.quorum) return strictness(now) > strictness(was) ? 'stricter' : 'less-strict';
  return was.rule_id === now.rule_id ? null : 'other-rule';
}

const strictness = ({ decision, quorum }: RecordedVerdict): number =>
  decision === 'allow' ? 0 : (quorum ?? Number.POSITIVE_INFINITY);

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

/** Findings that differ only in their place in the ledger. */
export interface FindingGroup extends Omit<SimulationFinding, 'tree_id' | 'seq' | 'log_index' | 'run_id' | 'actor_id'> {
  readonly count: number;
  /** The first of them. */
  readonly first: readonly Pick<SimulationFinding, 'tree_id' | 'seq' | 'log_index'>[];
}

/** Groups findings by kind, lane, role, action and rules. Each group stores at most `placesMax` places. */
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

  /** In the order of FLIP_KINDS, then undecidable decisions; in each kind, the largest group first. */
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
