// Completeness: infers from the existing entries which others must exist. Every entry of a tree belongs to an earlier
// input (its turn), and most entries belong to a run. A missing part is reported at the entry where it becomes evident.

import type { AuditEvent } from '../../contract/run/audit-event.js';
import {
  isOpeningInput,
  type Entry,
  type RecordedInput,
  type ReportInput,
  type ResultInput,
} from '../../contract/run/entry.js';
import { TRANSITION_REFUSED } from '../../contract/run/run-context.js';
import type { StepTrace } from '../../contract/run/step-trace.js';
import type { LedgerFinding, PlacedFinding } from './ledger-problem.js';
import { finding, isRemark, isVote, RunLifecycle, type UntracedProposal } from './run-lifecycle.js';

/** An ended run is stored only as `over`, since a long tree has many. `lost` is a run that was never created. */
type CheckedRun = RunLifecycle | 'over' | 'lost';

/** One input and its consequences so far. */
interface CheckedTurn {
  readonly input: RecordedInput;
  /** Null if the input does not address a running run. */
  readonly run: RunLifecycle | null;
  readonly untracedBefore: UntracedProposal | null;
  entries: number;
  isRejected: boolean;
  readonly decidedRuns: Set<RunLifecycle>;
  readonly endedRuns: RunLifecycle[];
  readonly votes: AuditEvent[];
  /** The last event of the effect whose outcome the input reports. */
  lastActEvent: AuditEvent | null;
}

/** Takes the entries of a log in their order. Memory grows with the runs of the trees whose root has not ended. */
export class RunCheck {
  readonly #trees = new Map<string, TreeRuns | null>();

  /** Checks an entry in its tree, and the turn that it closes. */
  take(entry: Entry, log_index: number): readonly PlacedFinding[] {
    const known = this.#trees.get(entry.tree_id);
    const tree = known ?? new TreeRuns(entry.tree_id, known === null);
    const found = [...tree.take(entry)];
    this.#trees.set(entry.tree_id, tree.isOver ? null : tree);
    const { tree_id, seq } = entry;
    return found.map((one) => ({ place: { log_index, tree_id, seq }, finding: one }));
  }

  /** The runs that have not ended. */
  *liveRuns(): Iterable<RunLifecycle> {
    for (const tree of this.#trees.values()) yield* tree?.liveRuns() ?? [];
  }

  /** Reports what is missing at the end of each tree. A live tree needs only the consequences of its last input. */
  *finish(isWhole: (tree_id: string) => boolean): Iterable<PlacedFinding> {
    for (const [tree_id, tree] of this.#trees) {
      if (tree === null || !isWhole(tree_id)) continue;
      const place = { log_index: null, tree_id, seq: tree.next };
      for (const one of tree.close()) yield { place, finding: one };
    }
  }
}

/** The runs of one tree. */
class TreeRuns {
  next = 0;
  readonly #runs = new Map<string, CheckedRun>();
  #turn: CheckedTurn | null = null;
  readonly #tree_id: string;
  /** True for a tree whose root had ended and whose runs are not kept in memory; only remarks may follow. */
  readonly #isEnded: boolean;

  constructor(tree_id: string, isEnded: boolean) {
    this.#tree_id = tree_id;
    this.#isEnded = isEnded;
  }

  /** Whether the root run, and the turn in which it ended, are over. */
  isOver = false;

  *take(entry: Entry): Iterable<LedgerFinding> {
    this.next = entry.seq + 1;
    if (this.#isEnded) {
      this.isOver = true;
      if (!mayFollowEnd(entry))
        yield finding('run.over', `${entry.tree_id} has an entry of type ${entry.type} after its end`);
      return;
    }
    if (entry.type === 'input') {
      yield* this.#closeTurn();
      yield* this.#openTurn(entry.body, entry.seq);
      return;
    }
    const turn = this.#turn;
    if (entry.seq === 0) yield finding('tree.unopened', `${entry.tree_id} does not begin with the input that opens it`);
    if (turn !== null) turn.entries += 1;
    if (turn !== null && timeOf(entry) !== turn.input.time) {
      yield finding('entry.time', `the entry has the time ${timeOf(entry)}, but its input has ${turn.input.time}`);
    }
    if (entry.type === 'run_created') yield* this.#checkCreated(new RunLifecycle(entry.body));
    else if (entry.type === 'audit_event') yield* this.#checkEvent(turn, entry.body);
    else if (entry.type === 'step_trace') yield* this.#checkTrace(entry.body);
  }

  *liveRuns(): Iterable<RunLifecycle> {
    for (const run of this.#runs.values()) if (run instanceof RunLifecycle) yield run;
  }

  *close(): Iterable<LedgerFinding> {
    yield* this.#closeTurn();
  }

  *#openTurn(input: RecordedInput, seq: number): Iterable<LedgerFinding> {
    if (seq === 0 && !isOpeningInput(input)) {
      yield finding('tree.unopened', `${input.run_id} begins with an input of kind ${input.kind}, which opens no tree`);
    }
    const run = this.#runs.get(input.run_id);
    const subject = run instanceof RunLifecycle && run.state === 'running' ? run : null;
    this.#turn = {
      input,
      run: subject,
      untracedBefore: subject?.untraced ?? null,
      entries: 0,
      isRejected: false,
      decidedRuns: new Set(),
      endedRuns: [],
      votes: [],
      lastActEvent: null,
    };
    if (input.kind === 'proposal' && subject !== null) {
      subject.untraced = { payload: input.payload.hash_sha256, time: input.time };
    }
  }

  *#checkCreated(life: RunLifecycle): Iterable<LedgerFinding> {
    const { run_id } = life;
    if (this.#runs.has(run_id)) yield finding('run.twice', `${run_id} is created twice`);
    this.#runs.set(run_id, life);
    const parent = this.#runs.get(life.logicalParent ?? '');
    if (parent === undefined && life.logicalParent === null) return;
    if (parent === 'lost') return;
    if (!(parent instanceof RunLifecycle) || parent.state !== 'running') {
      yield finding(
        'run.parent',
        `the parent of ${run_id}, ${life.logicalParent ?? 'null'}, was not running when the run was created`,
      );
      return;
    }
    parent.liveChildren += 1;
    if (parent.pins !== life.pins)
      yield finding('run.inherits', `the pins of ${run_id} differ from those of its parent ${parent.run_id}`);
  }

  *#checkEvent(turn: CheckedTurn | null, event: AuditEvent): Iterable<LedgerFinding> {
    const { run_id } = event;
    if (isRejection(event) && turn !== null) turn.isRejected = true;
    const life = this.#runs.get(run_id);
    // A session is not a run: its only events are remarks.
    if (life === undefined && isRemark(event) && run_id === this.#tree_id) return;
    if (life === 'over' && isRemark(event)) return;
    if (life === 'over') yield finding('run.over', `${run_id} has an event ${event.action_type} after its end`);
    if (life === undefined) {
      this.#runs.set(run_id, 'lost');
      yield finding('run.unborn', `${run_id} has an event, but was never created`);
    }
    if (!(life instanceof RunLifecycle)) return;
    yield* life.take(event);
    if (turn !== null) recordEvent(turn, life, event);
    if (!life.isOver) return;
    this.#runs.set(run_id, 'over');
    const parent = this.#runs.get(life.logicalParent ?? '');
    if (parent instanceof RunLifecycle) parent.liveChildren -= 1;
  }

  *#checkTrace(trace: StepTrace): Iterable<LedgerFinding> {
    const life = this.#runs.get(trace.run_id);
    if (life === 'lost') return;
    if (!(life instanceof RunLifecycle) || life.untraced === null) {
      yield finding('step.unasked', `step ${trace.step_index} of ${trace.run_id} belongs to no proposal`);
      return;
    }
    if (life.untraced.payload !== trace.payload.hash_sha256 || life.untraced.time !== trace.received_at) {
      yield finding('step.unasked', `step ${trace.step_index} of ${trace.run_id} belongs to another proposal`);
    }
    life.untraced = null;
    life.steps += 1;
    if (trace.step_index !== life.steps) {
      yield finding('step.order', `${trace.run_id} has step ${trace.step_index} instead of step ${life.steps}`);
      life.steps = trace.step_index;
    }
  }

  /** Closes the turn and reports the consequences that are missing. */
  *#closeTurn(): Iterable<LedgerFinding> {
    const turn = this.#turn;
    this.#turn = null;
    if (turn === null) return;
    if (turn.isRejected) {
      if (turn.run !== null) turn.run.untraced = turn.untracedBefore;
      if (turn.entries !== 1) yield finding('refusal.moved', 'an input was rejected, but its turn has further entries');
      return;
    }
    if (turn.input.kind === 'proposal') yield* checkProposal(turn);
    if (turn.input.kind === 'result' || turn.input.kind === 'report') yield* this.#checkResult(turn, turn.input);
    yield* checkVotes(turn);
    for (const life of turn.decidedRuns) {
      if (life.state === 'created' && life.verdict !== 'waits') {
        yield finding('run.unmoved', `${life.run_id} was decided, but neither runs nor has ended`);
      }
    }
    for (const life of turn.endedRuns) {
      if (life.untraced !== null)
        yield finding('step.untraced', `${life.run_id} has ended, but one of its steps has no trace`);
      // A session's tree has no run of its own id, and continues after one of its activations has ended.
      if (life.run_id === this.#tree_id) this.isOver = true;
    }
  }

  /**
   * An outcome must belong to a run that was executing its action, must end that run, and must agree with its event.
   */
  *#checkResult(turn: CheckedTurn, outcome: ResultInput | ReportInput): Iterable<LedgerFinding> {
    const { run_id, kind, status, result } = outcome;
    if (this.#runs.get(run_id) === 'lost') return;
    if (turn.run === null) {
      yield finding('outcome.unasked', `${run_id} has an outcome, but was not running`);
      return;
    }
    const { lastActEvent: event } = turn;
    const isRecorded =
      event !== null &&
      event.response_hash_sha256 === result?.hash_sha256 &&
      (event.reported !== undefined) === (kind === 'report');
    if (!isRecorded || (event.outcome === 'success') !== (status === 'done') || this.#runs.get(run_id) !== 'over') {
      yield finding('outcome.untold', `the outcome of ${run_id} does not match its events`);
    }
  }
}

function recordEvent(turn: CheckedTurn, life: RunLifecycle, event: AuditEvent): void {
  if (isVote(event)) turn.votes.push(event);
  else if (event.action_type === 'authz_decision') turn.decidedRuns.add(life);
  else if (event.action_type !== 'system' && life.run_id === turn.input.run_id) turn.lastActEvent = event;
  if (life.isOver) turn.endedRuns.push(life);
}

function* checkProposal({ input, run: subject, untracedBefore: before }: CheckedTurn): Iterable<LedgerFinding> {
  if (subject === null) yield finding('outcome.unasked', `${input.run_id} has a proposal, but was not running`);
  if (before !== null)
    yield finding('step.untraced', `${input.run_id} has another proposal, but its previous step has no trace`);
}

function* checkVotes({ input, votes }: CheckedTurn): Iterable<LedgerFinding> {
  const subject = input.kind === 'vote' ? input.digests : [];
  const reported = votes.map((event) => event.request_hash_sha256);
  if (reported.join() !== subject.join())
    yield finding('vote.untold', 'the vote and its events have different digests');
  const approves = input.kind === 'vote' && input.decision === 'approve';
  for (const { event_id, authz, outcome } of votes) {
    const counts = authz !== undefined && COUNTED_VOTES.includes(authz.rule_id);
    if (authz?.decision === outcome && (outcome === 'allow') === counts && (approves || !counts)) continue;
    yield finding('vote.untold', `whether the vote counts differs between ${event_id}, its rule and its input`);
  }
}

/** Rules of votes that approve. */
const COUNTED_VOTES: readonly string[] = ['approval.accepted', 'approval.granted'];

/** Whether the entry may follow the end of the root run. */
const mayFollowEnd = (entry: Entry): boolean =>
  entry.type === 'input' || (entry.type === 'audit_event' && isRemark(entry.body));

const isRejection = ({ outcome_reason }: AuditEvent): boolean => outcome_reason === TRANSITION_REFUSED;

function timeOf(entry: Exclude<Entry, { type: 'input' }>): string {
  if (entry.type === 'run_created') return entry.body.created_at_utc;
  return entry.type === 'step_trace' ? entry.body.completed_at : entry.body.timestamp_utc;
}
