// Completeness: what must be there by what is there. Every entry of a tree belongs to an input before it, its turn, and
// most to a run; a turn and a run that lack something are told at the entry where it shows.

import type { AuditEvent } from '../contract/audit-event.js';
import { isOpening, type Entry, type RecordedInput, type ResultInput } from '../contract/entry.js';
import { REFUSED } from '../contract/run-state.js';
import type { StepTrace } from '../contract/step-trace.js';
import type { Finding, PlacedFinding } from './ledger-problem.js';
import { finding, isRemark, isVote, Life, type Asked } from './run-life.js';

/** A run that has ended needs no more than that: a long tree has many. `lost` is one that was never created. */
type Known = Life | 'over' | 'lost';

/** One input and what has come of it so far. */
interface Turn {
  readonly input: RecordedInput;
  /** Null where it is not the business of a run that was running. */
  readonly asked: Life | null;
  readonly before: Asked | null;
  entries: number;
  refused: boolean;
  readonly judged: Set<Life>;
  readonly ended: Life[];
  readonly votes: AuditEvent[];
  /** The last that was told of the act which the input gives the outcome of. */
  told: AuditEvent | null;
}

/** Takes the entries of a log in their order. Memory grows with the runs of the trees whose root has not ended. */
export class RunCheck {
  readonly #trees = new Map<string, TreeRuns | null>();

  /** What is wrong with an entry, or with the turn that it closes, in its tree. */
  take(entry: Entry, log_index: number): readonly PlacedFinding[] {
    const known = this.#trees.get(entry.tree_id);
    const tree = known ?? new TreeRuns(entry.tree_id, known === null);
    const found = [...tree.take(entry)];
    this.#trees.set(entry.tree_id, tree.over ? null : tree);
    const { tree_id, seq } = entry;
    return found.map((one) => ({ place: { log_index, tree_id, seq }, finding: one }));
  }

  /** The runs that have not ended. */
  *living(): Iterable<Life> {
    for (const tree of this.#trees.values()) yield* tree?.living() ?? [];
  }

  /** What lacks at the end of a tree. One that is under way lacks nothing but what its last input must have caused. */
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
  readonly #runs = new Map<string, Known>();
  #turn: Turn | null = null;
  readonly #tree_id: string;
  /** A tree whose root had ended, of which nothing is remembered: only what is said about it may still come. */
  readonly #late: boolean;

  constructor(tree_id: string, late: boolean) {
    this.#tree_id = tree_id;
    this.#late = late;
  }

  /** Whether the root run has ended, and with it the turn in which it did. */
  over = false;

  *take(entry: Entry): Iterable<Finding> {
    this.next = entry.seq + 1;
    if (this.#late) {
      this.over = true;
      if (!isAfterword(entry)) yield finding('run.over', `${entry.tree_id} has ended, and has a ${entry.type} more`);
      return;
    }
    if (entry.type === 'input') {
      yield* this.#closeTurn();
      yield* this.#open(entry.body, entry.seq);
      return;
    }
    const turn = this.#turn;
    if (entry.seq === 0) yield finding('tree.unopened', `${entry.tree_id} does not begin with its opening`);
    if (turn !== null) turn.entries += 1;
    if (turn !== null && timeOf(entry) !== turn.input.time) {
      yield finding('entry.time', `the entry is of ${timeOf(entry)}, its input of ${turn.input.time}`);
    }
    if (entry.type === 'run_created') yield* this.#created(new Life(entry.body));
    else if (entry.type === 'audit_event') yield* this.#event(turn, entry.body);
    else if (entry.type === 'step_trace') yield* this.#traced(entry.body);
  }

  *living(): Iterable<Life> {
    for (const run of this.#runs.values()) if (run instanceof Life) yield run;
  }

  *close(): Iterable<Finding> {
    yield* this.#closeTurn();
  }

  *#open(input: RecordedInput, seq: number): Iterable<Finding> {
    if (seq === 0 && !isOpening(input)) {
      yield finding('tree.unopened', `${input.run_id} begins with an input of ${input.kind}`);
    }
    const run = this.#runs.get(input.run_id);
    const asked = run instanceof Life && run.state === 'running' ? run : null;
    this.#turn = {
      input,
      asked,
      before: asked?.asked ?? null,
      entries: 0,
      refused: false,
      judged: new Set(),
      ended: [],
      votes: [],
      told: null,
    };
    if (input.kind === 'proposal' && asked !== null) {
      asked.asked = { payload: input.payload.hash_sha256, time: input.time };
    }
  }

  *#created(life: Life): Iterable<Finding> {
    const { run_id } = life;
    if (this.#runs.has(run_id)) yield finding('run.twice', `${run_id} is created twice`);
    this.#runs.set(run_id, life);
    const parent = this.#runs.get(life.behalf ?? '');
    if (parent === undefined && life.behalf === null) return;
    if (parent === 'lost') return;
    if (!(parent instanceof Life) || parent.state !== 'running') {
      yield finding('run.parent', `${run_id} is created by ${life.behalf ?? 'nobody'}, which is not running`);
      return;
    }
    parent.living += 1;
    if (parent.pins !== life.pins) yield finding('run.inherits', `${run_id} has other pins than ${parent.run_id}`);
  }

  *#event(turn: Turn | null, event: AuditEvent): Iterable<Finding> {
    const { run_id } = event;
    if (isRefusal(event) && turn !== null) turn.refused = true;
    const life = this.#runs.get(run_id);
    // A session is no run: of it only remarks are told.
    if (life === undefined && isRemark(event) && run_id === this.#tree_id) return;
    if (life === 'over' && isRemark(event)) return;
    if (life === 'over') yield finding('run.over', `${run_id} has ended, and has an event of ${event.action_type}`);
    if (life === undefined) {
      this.#runs.set(run_id, 'lost');
      yield finding('run.unborn', `${run_id} has an event, and was not created`);
    }
    if (!(life instanceof Life)) return;
    yield* life.take(event);
    if (turn !== null) note(turn, life, event);
    if (!life.over) return;
    this.#runs.set(run_id, 'over');
    const parent = this.#runs.get(life.behalf ?? '');
    if (parent instanceof Life) parent.living -= 1;
  }

  *#traced(trace: StepTrace): Iterable<Finding> {
    const life = this.#runs.get(trace.run_id);
    if (life === 'lost') return;
    if (!(life instanceof Life) || life.asked === null) {
      yield finding('step.unasked', `step ${trace.step_index} of ${trace.run_id} is of nothing that was proposed`);
      return;
    }
    if (life.asked.payload !== trace.payload.hash_sha256 || life.asked.time !== trace.received_at) {
      yield finding('step.unasked', `step ${trace.step_index} of ${trace.run_id} is of another proposal`);
    }
    life.asked = null;
    life.steps += 1;
    if (trace.step_index !== life.steps) {
      yield finding('step.order', `${trace.run_id} has step ${trace.step_index} where step ${life.steps} comes next`);
      life.steps = trace.step_index;
    }
  }

  /** The turn is over: what it must have caused has been caused, or lacks. */
  *#closeTurn(): Iterable<Finding> {
    const turn = this.#turn;
    this.#turn = null;
    if (turn === null) return;
    if (turn.refused) {
      if (turn.asked !== null) turn.asked.asked = turn.before;
      if (turn.entries !== 1) yield finding('refusal.moved', 'an input was refused, and something has moved');
      return;
    }
    if (turn.input.kind === 'proposal') yield* proposed(turn);
    if (turn.input.kind === 'result') yield* this.#answered(turn, turn.input);
    yield* voted(turn);
    for (const life of turn.judged) {
      if (life.state === 'created' && life.verdict !== 'waits') {
        yield finding('run.unmoved', `${life.run_id} was decided about, and has not moved`);
      }
    }
    for (const life of turn.ended) {
      if (life.asked !== null)
        yield finding('step.untraced', `${life.run_id} has ended, and a step of it has no trace`);
      // A session's tree has no run of its own id, and goes on when one of its activations has ended.
      if (life.run_id === this.#tree_id) this.over = true;
    }
  }

  /** An outcome is of a run that was about to act, ends it, and is what its event says. */
  *#answered(turn: Turn, { run_id, status, result }: ResultInput): Iterable<Finding> {
    if (this.#runs.get(run_id) === 'lost') return;
    if (turn.asked === null) {
      yield finding('outcome.unasked', `${run_id} has an outcome, and was not running`);
      return;
    }
    const { told } = turn;
    const said = told !== null && told.response_hash_sha256 === result?.hash_sha256;
    if (!said || (told.outcome === 'success') !== (status === 'done') || this.#runs.get(run_id) !== 'over') {
      yield finding('outcome.untold', `the outcome of ${run_id} is not what its events say`);
    }
  }
}

function note(turn: Turn, life: Life, event: AuditEvent): void {
  if (isVote(event)) turn.votes.push(event);
  else if (event.action_type === 'authz_decision') turn.judged.add(life);
  else if (event.action_type !== 'system' && life.run_id === turn.input.run_id) turn.told = event;
  if (life.over) turn.ended.push(life);
}

function* proposed({ input, asked, before }: Turn): Iterable<Finding> {
  if (asked === null) yield finding('outcome.unasked', `${input.run_id} has a proposal, and was not running`);
  if (before !== null) yield finding('step.untraced', `${input.run_id} goes on, and a step of it has no trace`);
}

function* voted({ input, votes }: Turn): Iterable<Finding> {
  const asked = input.kind === 'vote' ? input.digests : [];
  const told = votes.map((event) => event.request_hash_sha256);
  if (told.join() !== asked.join()) yield finding('vote.untold', "people's answer and its events differ");
  const approves = input.kind === 'vote' && input.decision === 'approve';
  for (const { event_id, authz, outcome } of votes) {
    const counts = authz !== undefined && COUNTED_VOTES.includes(authz.rule_id);
    if (authz?.decision === outcome && (outcome === 'allow') === counts && (approves || !counts)) continue;
    yield finding('vote.untold', `${event_id} says that a vote counts or not, and its rule or its input does not`);
  }
}

/** Rules of votes that approve. */
const COUNTED_VOTES: readonly string[] = ['approval.accepted', 'approval.granted'];

/** What may still be said of a tree whose root has ended. */
const isAfterword = (entry: Entry): boolean =>
  entry.type === 'input' || (entry.type === 'audit_event' && isRemark(entry.body));

const isRefusal = ({ outcome_reason }: AuditEvent): boolean => outcome_reason === REFUSED;

function timeOf(entry: Exclude<Entry, { type: 'input' }>): string {
  if (entry.type === 'run_created') return entry.body.created_at_utc;
  return entry.type === 'step_trace' ? entry.body.completed_at : entry.body.timestamp_utc;
}
