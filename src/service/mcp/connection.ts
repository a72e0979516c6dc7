// One agent at the other end of one MCP session, whatever carries it.
//
// Invariants:
//   N1. A connection has one agent run of its own, begun with the first proposal. While a session's step is outstanding
//       on it that has a run, proposals go into that run; `run_id` says otherwise.
//   N2. It reaches the runs that it began, those that a session has given it, and those that were opened for the same
//       agent. To know the id of a run is not enough.
//   N3. Proposals reach their run in the order in which their calls came.
//   N4. A call that comes again gets the answer that it had: on the same connection by its request id, on any one of
//       the service by its key, as long as that is remembered, and always by its key and the run that it went into.
//   N5. Nothing of an exception is answered; it is logged.

import type { JsonObject } from '../../contract/json.js';
import { RunId } from '../../contract/shapes.js';
import { conforms } from '../../contract/validators.js';
import { RunError } from '../../errors.js';
import type { Policy } from '../../policy/policy.js';
import type { Log } from '../../ports/log.js';
import { PROBLEMS } from '../problems.js';
import { deskAnswer, refusal, stepAnswer, type ToolAnswer } from './answers.js';
import { contentOf, inputIdOf, markOf, proposalIdOf, type ToolCall } from './call-ids.js';
import { offerOf, type ActionMeaning, type Meaning, type Offer, type OfferedTool, type Proposing } from './offer.js';
import { PlacedCalls } from './placed-calls.js';
import type { OpenRun, OwnRun, RunDoor } from './run-door.js';
import { ask, refused, type DeskAnswer, type SessionDeskOptions } from './session-desk.js';

/** Calls that may wait for their answers, of all connections of one token together. */
export const CALLS_WAITING_MAX = 64;
const RUNS_KNOWN_MAX = 1_024;
const NO_REASON = 'No reason was given.';

export interface ConnectionOptions {
  /** Unlike that of any other connection, ever. */
  readonly id: string;
  readonly door: RunDoor;
  /** What new runs would be judged by. */
  readonly policy: () => Promise<Policy>;
  /** Of the connection's own run. */
  readonly lane: string;
  /** Null where there are no sessions. */
  readonly desk: SessionDeskOptions | null;
  readonly log: Log;
  /** Where calls with keys of their own went: of all connections of a service, which are one agent's. */
  readonly keyed: PlacedCalls;
  /** Calls that wait, of all connections of the service. */
  readonly calls: { waiting: number };
  /** The own run of an earlier connection of the same agent, which goes on with this one; and where it is noted. */
  readonly kept?: { readonly run_id: string | null; readonly keep: (run_id: string) => void };
}

/** A run that is ready for a proposal. */
interface Place extends OpenRun {
  readonly run_id: string;
}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #placed = new PlacedCalls();
  readonly #known = new Set<string>();
  #offer: Promise<Offer> | null = null;
  #own: OwnRun | null;
  #outstanding: string | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const run_id = options.kept?.run_id ?? null;
    this.#own = run_id === null ? null : { run_id, denied: false };
    if (run_id !== null) this.#known.add(run_id);
  }

  async tools(): Promise<readonly OfferedTool[]> {
    return (await this.#refreshed()).tools;
  }

  /** Answers a call. Never throws. @returns null where there is no such tool */
  async call(call: ToolCall): Promise<ToolAnswer | null> {
    const { calls } = this.#options;
    if (calls.waiting >= CALLS_WAITING_MAX) {
      return refusal('AGENT_BUSY', `${CALLS_WAITING_MAX} calls already wait: wait for an answer before the next one`);
    }
    calls.waiting += 1;
    try {
      const meaning = await this.#meaningOf(call.name);
      return meaning === undefined ? null : await this.#answer(call, meaning);
    } catch (error) {
      return this.#sorry(error);
    } finally {
      calls.waiting -= 1;
    }
  }

  /** The agent has said goodbye: its own run is completed as `end_of_input` unless it has ended before. */
  async end(): Promise<void> {
    if (this.#own?.denied === false) await this.#options.door.end(this.#own.run_id);
  }

  async #meaningOf(name: string): Promise<Meaning | undefined> {
    const known = this.#offer === null ? undefined : (await this.#offer).meaning(name);
    return known ?? (await this.#refreshed()).meaning(name);
  }

  /** The policy may have been edited since the last look; one that cannot be loaded leaves no offer behind. */
  #refreshed(): Promise<Offer> {
    const { policy, lane, desk } = this.#options;
    const offer = policy().then((current) => offerOf(current, lane, desk !== null));
    this.#offer = offer;
    offer.catch(() => (this.#offer = null));
    return offer;
  }

  async #answer(call: ToolCall, meaning: Meaning): Promise<ToolAnswer> {
    if (meaning.kind === 'propose' || meaning.kind === 'action') return this.#propose(call, meaning);
    const { desk } = this.#options;
    return deskAnswer(desk === null ? refused('NO_ACTIVE_SESSION') : await this.#ask(meaning.kind, call.args, desk));
  }

  async #ask(
    tool: 'task' | 'review' | 'verification',
    args: JsonObject,
    desk: SessionDeskOptions,
  ): Promise<DeskAnswer> {
    const answer = await ask(tool, args, desk);
    // What is only looked at gives nobody a run.
    if (tool === 'task' && GIVING.some((command) => command === args['command'])) this.#note(answer);
    return answer;
  }

  #note({ success, data }: DeskAnswer): void {
    if (data === null || !('next_step' in data)) return;
    const run_id = data.next_step?.run_id ?? null;
    if (run_id !== null) this.#know(run_id);
    if (success || run_id !== null) this.#outstanding = run_id;
  }

  async #propose(call: ToolCall, meaning: Proposing): Promise<ToolAnswer> {
    const { args } = call;
    const wanted = meaning.kind === 'propose' || meaning.ours.includes('run_id') ? args['run_id'] : undefined;
    if (wanted !== undefined && !conforms(RunId, wanted)) return badArguments('run_id is no id of a run');
    if (meaning.kind === 'propose' && !isProposeCall(args)) return badArguments('propose takes `proposal`, a text');
    const mark = markOf(call, this.#options.id);
    // In which run, is not what: whoever has lost the answer does not know the run.
    const content = contentOf(wanted === undefined ? call : { ...call, args: omit(args, 'run_id') });
    const placed = call.key === null ? this.#placed : this.#options.keyed;
    const before = placed.get(mark);
    if (before !== undefined && (before.content !== content || (wanted ?? before.run_id) !== before.run_id)) {
      return refusal('IDEMPOTENCY_CONFLICT', 'This idempotency key was used for another call');
    }
    const submitted = await this.#inTurn(async () => {
      const place = await this.#place(before?.run_id ?? (wanted as string | undefined) ?? null);
      if (place === null) return null;
      const { run_id } = place;
      placed.remember(mark, { run_id, content });
      const raw = meaning.kind === 'propose' ? (args['proposal'] as string) : proposalOf(args, meaning, run_id, mark);
      // Not waited for in here: the next proposal may be handed in while this one is done.
      return { run_id, response: place.submit(raw, inputIdOf(run_id, mark)) };
    });
    if (submitted === null) return refusal('RUN_UNKNOWN', 'There is no such run for you');
    return stepAnswer(await submitted.response, submitted.run_id);
  }

  /** One after the other, in the order of the calls. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** @returns null for a run that this connection does not reach */
  async #place(wanted: string | null): Promise<Place | null> {
    const { door } = this.#options;
    const given = wanted ?? this.#outstanding;
    if (given === null) return this.#placeOwn();
    if (!this.#known.has(given) && !(await door.belongs(given))) return null;
    this.#know(given);
    return { run_id: given, ...(await door.open(given)) };
  }

  async #placeOwn(): Promise<Place> {
    const { door } = this.#options;
    const own = this.#own;
    if (own?.denied === true) throw new RunError({ code: 'RUN_ENDED', message: 'the own run was denied' });
    if (own !== null) {
      const run = await door.open(own.run_id);
      if (run.live || !(await door.mayFollow(own.run_id))) return { run_id: own.run_id, ...run };
    }
    this.#own = await door.start();
    if (this.#own.denied) return this.#placeOwn();
    const { run_id } = this.#own;
    this.#know(run_id);
    this.#options.kept?.keep(run_id);
    return { run_id, ...(await door.open(run_id)) };
  }

  /** Of too many, the one that was named longest ago is forgotten. */
  #know(run_id: string): void {
    this.#known.delete(run_id);
    this.#known.add(run_id);
    const [oldest] = this.#known;
    if (this.#known.size > RUNS_KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  #sorry(error: unknown): ToolAnswer {
    if (error instanceof RunError) return refusal(error.code, PROBLEMS[error.code][1]);
    this.#options.log.error('a call over MCP failed', { error });
    return refusal('UNAVAILABLE', PROBLEMS.UNAVAILABLE[1]);
  }
}

/** The commands whose answer puts a step before the agent. */
const GIVING: readonly string[] = ['start', 'next', 'replay', 'resume'];

const badArguments = (message: string): ToolAnswer => refusal('VALIDATION_ERROR', message);

const omit = (args: JsonObject, omitted: string): JsonObject =>
  Object.fromEntries(Object.entries(args).filter(([name]) => name !== omitted));

const isProposeCall = (args: JsonObject): boolean =>
  typeof args['proposal'] === 'string' && Object.keys(args).every((name) => name === 'proposal' || name === 'run_id');

/** The raw payload that a call of an action's tool stands for. What is wrong with its arguments is for the phases. */
function proposalOf(args: JsonObject, { action, tool, ours }: ActionMeaning, run_id: string, mark: string): string {
  const own = Object.fromEntries(Object.entries(args).filter(([name]) => !ours.includes(name)));
  const reasoning = (ours.includes('reasoning') ? args['reasoning'] : undefined) ?? NO_REASON;
  return JSON.stringify({
    schema_version: '1.0.0',
    id: proposalIdOf(run_id, mark),
    reasoning,
    action,
    args: tool === null ? own : { tool, input: own },
  });
}
