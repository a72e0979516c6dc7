// Simulation against the live engine: a random tree runs under policy A, and a second tree with the same inputs is
// really judged by B. As long as both take the same course, every decision of B must equal the simulation of A under B;
// where they diverge, the decision of the divergence must. Under A itself no decision flips.

import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import type { Entry, OpenInput, RecordedInput } from '../../../src/core/contract/run/entry.js';
import type { Decision, TreeInput } from '../../../src/kernel/decision.js';
import { Tree } from '../../../src/kernel/tree.js';
import { decideUnderPolicy } from '../../../src/features/simulation/decide-under-policy.js';
import { DecisionFold } from '../../../src/features/simulation/decision-fold.js';
import type { RecordedDecision, RecordedVerdict } from '../../../src/features/simulation/recorded-decision.js';
import { play, ROOT, type Played } from '../../trees/play.js';
import type { Pinned } from '../../trees/policies.js';
import type { Plot } from '../../trees/turns.js';

export interface Tally {
  /** Decisions of A simulated under A. */
  same: number;
  /** Decisions that a live tree under B has also made. */
  compared: number;
  /** Those that differ from the decision under A. */
  flipped: number;
  undecidable: number;
  /** Those whose live verdict was the overlay's. */
  overlaid: number;
  rules: Set<string>;
  faults: string[];
}

export const newTally = (): Tally => ({
  same: 0,
  compared: 0,
  flipped: 0,
  undecidable: 0,
  overlaid: 0,
  rules: new Set(),
  faults: [],
});

/** The decisions of a recorded tree, by its inputs. */
export function decisionsOf({ inputs, decisions }: Played): readonly RecordedDecision[][] {
  const fold = new DecisionFold(ROOT);
  return decisions.map(({ entries }, i) =>
    entries.flatMap(({ entry, text }) => {
      const artifacts = entry.type === 'input' ? (inputs[i]?.materials ?? []) : [];
      const applied = fold.take(
        { log_index: entry.seq, tree_id: ROOT, seq: entry.seq, type: entry.type, text },
        artifacts,
      );
      return applied === null ? [] : [applied];
    }),
  );
}

export function compare(plot: Plot, a: Pinned, b: Pinned, tally: Tally): void {
  const played = play(plot, a);
  const decided = decisionsOf(played);
  for (const decision of decided.flat()) {
    tally.same += 1;
    const again = decideUnderPolicy(decision, decision.policy);
    if (shown(again) !== shown(decision.said))
      tally.faults.push(`under its own policy: ${nameOf(decision)}: ${shown(decision.said)} is now ${shown(again)}`);
  }
  live(played, decided, b, tally);
}

/** The tree of the same inputs under B, until it diverges. */
function live({ inputs, decisions }: Played, decided: readonly RecordedDecision[][], b: Pinned, tally: Tally): void {
  const tree = new Tree(ROOT);
  const reader = new VerdictReader();
  for (const [i, input] of inputs.entries()) {
    const theirs = tree.decide(under(input, b));
    const ours = decisions[i];
    if (ours === undefined) throw new Error('an input without a decision');
    if (!theirs.refused) reader.hear(input.recorded);
    const alike = commonLength(ours, theirs);
    const parted = alike < Math.max(ours.entries.length, theirs.entries.length) || outputOf(ours) !== outputOf(theirs);
    const verdicts = theirs.entries.slice(0, alike + 2).map(({ entry }) => reader.verdict(entry));
    // After the creation of a run that the other tree lacks, the next entry is the verdict.
    const isCreated = theirs.entries[alike]?.entry.type === 'run_created';
    for (const verdict of verdicts.slice(0, isCreated ? alike + 2 : alike + 1)) {
      if (verdict === null) continue;
      const decision = decided
        .slice(i)
        .flat()
        .find((each) => subjectOf(each) === verdict.subject);
      if (decision === undefined) {
        if (!parted) tally.faults.push(`input ${i}: no decision about ${verdict.subject}`);
        return;
      }
      // The course of a run ends it: the policy was not asked whether to continue.
      if (verdict.said.rule_id === ENDING && decision.said.rule_id !== ENDING) return;
      // Labels are facts; in a lane without a case, the same reads give other facts and another course.
      if (verdict.label !== null && readIn(decision) !== verdict.label) return;
      if (!agrees(decision, verdict.said, b, tally)) return;
    }
    if (!parted) continue;
    if (theirs.commands.some(({ kind }) => kind === 'gather') && theirs.entries.length === alike) {
      const [first] = decided[i] ?? [];
      if (first?.facts.kind === 'step' && !('undecidable' in decideUnderPolicy(first, b.policy)))
        tally.faults.push(
          `${nameOf(first)}: simulated ${shown(decideUnderPolicy(first, b.policy))}, live it would look first`,
        );
    }
    return;
  }
}

const ENDING = 'lifecycle.run_ending';

const outputOf = ({ commands, refused }: Decision): string =>
  JSON.stringify([commands.map((command) => [command.kind, command.run_id]), refused]);

function commonLength({ entries: one }: Decision, { entries: other }: Decision): number {
  let k = 0;
  for (const [i, { entry }] of one.entries()) {
    const theirs = other[i]?.entry;
    if (theirs === undefined || JSON.stringify(stepOf(entry)) !== JSON.stringify(stepOf(theirs))) break;
    k += 1;
  }
  return k;
}

function agrees(decision: RecordedDecision, said: RecordedVerdict, b: Pinned, tally: Tally): boolean {
  const answer = decideUnderPolicy(decision, b.policy);
  if ('undecidable' in answer) {
    tally.undecidable += 1;
    return true;
  }
  tally.compared += 1;
  if (shown(answer) !== shown(decision.said)) tally.flipped += 1;
  if (said.rule_id?.startsWith('overlay.') === true) tally.overlaid += 1;
  tally.rules.add(said.rule_id?.replace(/\.deny-.*/, '') ?? '-');
  if (shown(answer) === shown(said)) return true;
  tally.faults.push(`${nameOf(decision)}: simulated ${shown(answer)}, live ${shown(said)}`);
  return false;
}

/** An input in the form that the tree of another policy gets. */
function under(input: TreeInput, { materials }: Pinned): TreeInput {
  if (input.recorded.kind !== 'open') return input;
  const [lanes, roles, actions, machines] = materials.map(artifactRef);
  if (!lanes || !roles || !actions || !machines) throw new Error('a policy has four parts');
  const { policies } = input.recorded;
  const repinned = <P extends OpenInput['policies']['lanes']>(pin: P, artifact: typeof lanes) =>
    'problem' in pin ? { ...pin, artifact } : { ...pin, sha256: artifact.hash_sha256, artifact };
  return {
    materials,
    recorded: {
      ...input.recorded,
      machines,
      policies: {
        lanes: repinned(policies.lanes, lanes),
        roles: repinned(policies.roles, roles),
        actions: repinned(policies.actions, actions),
      },
    },
  };
}

/** What happened, without the rule ids. */
function stepOf(entry: Entry): readonly unknown[] {
  if (entry.type === 'audit_event') {
    // Without the digest for approvers: it includes the case, which a lane may drop.
    const { run_id, action_type, outcome, request_hash_sha256, authz } = entry.body;
    return [entry.type, run_id, action_type, outcome, authz === undefined ? null : (request_hash_sha256 ?? null)];
  }
  return entry.type === 'step_trace' ? [entry.type, entry.body.run_id, entry.body.decision] : [entry.type];
}

interface LiveVerdict {
  readonly subject: string;
  readonly said: RecordedVerdict;
  /** For a mediated run: the label of what its agent had read. */
  readonly label: string | null;
}

/** The label of what the agent had read at this decision, if it led to a mediated run. */
function readIn({ facts }: RecordedDecision): string | null {
  if (facts.kind === 'step') return JSON.stringify(facts.input.label);
  if (facts.kind === 'retry') return JSON.stringify(facts.act.label);
  return facts.kind === 'write' ? readIn({ facts: facts.of } as RecordedDecision) : readStarted(facts);
}

const readStarted = (facts: RecordedDecision['facts']): string | null => {
  const started = facts.kind === 'approval' ? facts.of : facts;
  return started.kind === 'run' ? JSON.stringify(started.event.facts.label) : null;
};

/** The verdicts in a live tree's entries, and the subject of each. */
class VerdictReader {
  readonly #agents = new Set<string>();
  /** When the agent last proposed something. */
  readonly #proposed = new Map<string, string>();
  readonly #labels = new Map<string, string | null>();
  #now = '';
  #ballots = 0;

  hear(input: RecordedInput): void {
    this.#now = input.time;
    this.#ballots = 0;
    if (input.kind === 'proposal') this.#proposed.set(input.run_id, input.time);
  }

  verdict(entry: Entry): LiveVerdict | null {
    if (entry.type === 'run_created') {
      const { run_id: born, run_kind, label } = entry.body;
      if (run_kind === 'agent') this.#agents.add(born);
      this.#labels.set(born, label === null ? null : JSON.stringify(label));
    }
    if (entry.type === 'step_trace') {
      const { run_id, received_at, mediated_run_id, decision, rule_id } = entry.body;
      const recordedVerdict = { decision: decision === 'ALLOW' ? ('allow' as const) : ('deny' as const), rule_id };
      return mediated_run_id === null
        ? { subject: proposalOf(run_id, received_at), said: recordedVerdict, label: null }
        : null;
    }
    if (entry.type !== 'audit_event' || entry.body.authz === undefined) return null;
    const { run_id, parent_run_id = '', authz, target } = entry.body;
    const { decision, rule_id } = authz;
    if (target?.name === 'approval') {
      this.#ballots += 1;
      return {
        subject: `ballot ${this.#ballots} of ${run_id} at ${this.#now}`,
        said: { decision, rule_id },
        label: null,
      };
    }
    const recordedVerdict = { decision: rule_id === 'approval.required' ? ('deny' as const) : decision, rule_id };
    const proposal = this.#agents.has(parent_run_id) ? this.#proposed.get(parent_run_id) : undefined;
    const subject = proposal === undefined ? runAt(run_id) : proposalOf(parent_run_id, proposal);
    return { subject, said: recordedVerdict, label: this.#labels.get(run_id) ?? null };
  }
}

const proposalOf = (agent: string, at: string): string => `proposal of ${agent} at ${at}`;
const runAt = (run_id: string): string => `run ${run_id}`;

/** A step that leads to a mediated run under one policy may lead to none under another. */
function subjectOf({ facts, run_id }: RecordedDecision): string {
  if (facts.kind === 'ballot') return `ballot ${facts.nth + 1} of ${run_id} at ${facts.event.ballot.at}`;
  if (facts.kind === 'step') return proposalOf(facts.input.agent.run_id, facts.input.received_at);
  return runAt(run_id);
}

const shown = (answer: RecordedVerdict | { readonly undecidable: string }): string =>
  'undecidable' in answer ? `undecidable ${answer.undecidable}` : `${answer.decision} ${answer.rule_id ?? '-'}`;

const nameOf = ({ seq, run_id, action, facts }: RecordedDecision): string =>
  `seq ${seq} (${facts.kind} of ${run_id}, ${action})`;
