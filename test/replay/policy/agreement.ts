// Simulation against the live engine: a random tree is lived under policy A, and the same inputs are given to a tree
// that is really judged by B. As long as both go the same way, every decision of B is what simulating A under B says;
// where they part, the decision at which they part is. Under A itself nothing flips, ever.

import { artifactRef } from '../../../src/contract/artifact-ref.js';
import type { Entry, OpenInput, RecordedInput } from '../../../src/contract/run/entry.js';
import type { Decision, TreeInput } from '../../../src/kernel/decision.js';
import { Tree } from '../../../src/kernel/tree.js';
import { decideUnderPolicy } from '../../../src/replay/policy/decide-under-policy.js';
import { DecisionFold } from '../../../src/replay/policy/decision-fold.js';
import type { RecordedDecision, RecordedVerdict } from '../../../src/replay/policy/recorded-decision.js';
import { play, ROOT, type Played } from '../../trees/play.js';
import type { Pinned } from '../../trees/policies.js';
import type { Plot } from '../../trees/turns.js';

export interface Tally {
  /** Decisions of A taken again under A. */
  same: number;
  /** Decisions that a live tree under B has taken too. */
  compared: number;
  /** Of them, those that came out otherwise than under A. */
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

/** The decisions of a lived tree, by its inputs. */
export function decisionsOf({ inputs, decisions }: Played): readonly RecordedDecision[][] {
  const fold = new DecisionFold(ROOT);
  return decisions.map(({ entries }, i) =>
    entries.flatMap(({ entry, text }) => {
      const artifacts = entry.type === 'input' ? (inputs[i]?.materials ?? []) : [];
      const taken = fold.take(
        { log_index: entry.seq, tree_id: ROOT, seq: entry.seq, type: entry.type, text },
        artifacts,
      );
      return taken === null ? [] : [taken];
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

/** The tree of the same inputs under B, until it goes its own way. */
function live({ inputs, decisions }: Played, decided: readonly RecordedDecision[][], b: Pinned, tally: Tally): void {
  const tree = new Tree(ROOT);
  const reader = new VerdictReader();
  for (const [i, input] of inputs.entries()) {
    const theirs = tree.decide(under(input, b));
    const ours = decisions[i];
    if (ours === undefined) throw new Error('an input without a decision');
    if (!theirs.refused) reader.hear(input.recorded);
    const alike = commonLength(ours, theirs);
    const parted = alike < Math.max(ours.entries.length, theirs.entries.length) || asked(ours) !== asked(theirs);
    const verdicts = theirs.entries.slice(0, alike + 2).map(({ entry }) => reader.verdict(entry));
    // Behind a birth that the other has not, the first word is the verdict.
    const born = theirs.entries[alike]?.entry.type === 'run_created';
    for (const verdict of verdicts.slice(0, born ? alike + 2 : alike + 1)) {
      if (verdict === null) continue;
      const decision = decided
        .slice(i)
        .flat()
        .find((each) => subjectOf(each) === verdict.subject);
      if (decision === undefined) {
        if (!parted) tally.faults.push(`input ${i}: no decision about ${verdict.subject}`);
        return;
      }
      // What ends a run is its course: the policy was not asked whether to go on.
      if (verdict.said.rule_id === ENDING && decision.said.rule_id !== ENDING) return;
      // What was read is a fact; a lane without a case makes other facts of the same reads, and another course.
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

const asked = ({ commands, refused }: Decision): string =>
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

/** An input as the tree of another policy is given it. */
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

/** What went on, without the rules that were named. */
function stepOf(entry: Entry): readonly unknown[] {
  if (entry.type === 'audit_event') {
    // With the digest that people are asked about: it names the case, which is a lane's to leave.
    const { run_id, action_type, outcome, request_hash_sha256, authz } = entry.body;
    return [entry.type, run_id, action_type, outcome, authz === undefined ? null : (request_hash_sha256 ?? null)];
  }
  return entry.type === 'step_trace' ? [entry.type, entry.body.run_id, entry.body.decision] : [entry.type];
}

interface LiveVerdict {
  readonly subject: string;
  readonly said: RecordedVerdict;
  /** Of a mediated run: what its agent had read. */
  readonly label: string | null;
}

/** What the agent had read when this was decided, where it came to a mediated run. */
function readIn({ facts }: RecordedDecision): string | null {
  if (facts.kind === 'step') return JSON.stringify(facts.input.label);
  if (facts.kind === 'retry') return JSON.stringify(facts.act.label);
  return facts.kind === 'write' ? readIn({ facts: facts.of } as RecordedDecision) : readStarted(facts);
}

const readStarted = (facts: RecordedDecision['facts']): string | null => {
  const started = facts.kind === 'approval' ? facts.of : facts;
  return started.kind === 'run' ? JSON.stringify(started.event.facts.label) : null;
};

/** The verdicts in a live tree's entries, and what each is about. */
class VerdictReader {
  readonly #agents = new Set<string>();
  /** When the agent has last proposed something. */
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
      const said = { decision: decision === 'ALLOW' ? ('allow' as const) : ('deny' as const), rule_id };
      return mediated_run_id === null ? { subject: proposalOf(run_id, received_at), said, label: null } : null;
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
    const said = { decision: rule_id === 'approval.required' ? ('deny' as const) : decision, rule_id };
    const proposal = this.#agents.has(parent_run_id) ? this.#proposed.get(parent_run_id) : undefined;
    const subject = proposal === undefined ? runAt(run_id) : proposalOf(parent_run_id, proposal);
    return { subject, said, label: this.#labels.get(run_id) ?? null };
  }
}

const proposalOf = (agent: string, at: string): string => `proposal of ${agent} at ${at}`;
const runAt = (run_id: string): string => `run ${run_id}`;

/** A step that comes to a mediated run under one policy may come to none under another. */
function subjectOf({ facts, run_id }: RecordedDecision): string {
  if (facts.kind === 'ballot') return `ballot ${facts.nth + 1} of ${run_id} at ${facts.event.ballot.at}`;
  if (facts.kind === 'step') return proposalOf(facts.input.agent.run_id, facts.input.received_at);
  return runAt(run_id);
}

const shown = (answer: RecordedVerdict | { readonly undecidable: string }): string =>
  'undecidable' in answer ? `undecidable ${answer.undecidable}` : `${answer.decision} ${answer.rule_id ?? '-'}`;

const nameOf = ({ seq, run_id, action, facts }: RecordedDecision): string =>
  `seq ${seq} (${facts.kind} of ${run_id}, ${action})`;
