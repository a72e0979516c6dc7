// The connection of one agent in one MCP session, whatever its transport.
//
// Invariants:
//   N1. A connection has one agent run of its own, started with the first proposal. While a step of a session with a
//       run is outstanding on it, proposals go into that run. `run_id` overrides both.
//   N2. A connection reaches the runs that it started, those that a session has given it, and those that were opened
//       for the same agent. Knowing the id of a run is not enough.
//   N3. Proposals reach their run in the order of their calls.
//   N4. A repeated call gets the earlier response: on the same connection by its request id; on any connection of the
//       service by its key, while the key is cached; and always by its key together with the run that it went into.
//   N5. A response never contains text of an exception; exceptions are logged.
//   N6. After its own run was denied, failed or was cancelled, a connection opens another one only for `new_run`
//       (decision 0048). A call that comes too late for a run is not executed, and may be repeated under its key.

import type { JsonObject } from '../../contract/json.js';
import { RunId } from '../../contract/shapes.js';
import { isConforming } from '../../contract/validators.js';
import { RunError } from '../../errors.js';
import type { Policy } from '../../policy/policy.js';
import type { Log } from '../../ports/log.js';
import { PROBLEMS } from '../problems.js';
import {
  toEndedResult,
  toNewRunResult,
  toSessionResult,
  createErrorResult,
  toStepResult,
  type ToolCallResult,
} from './tool-results.js';
import { contentOf, correlationOf, inputIdOf, markOf, proposalIdOf, type ToolCall, PlacedCalls } from './tool-calls.js';
import { isContinuable, type EndedRun, type RunOrigin } from './ended-run.js';
import type { RunSuccession } from './run-succession.js';
import {
  createOffer,
  type ActionMeaning,
  type ToolMeaning,
  type Offer,
  type OfferedTool,
  type ProposalMeaning,
} from './offer.js';
import type { ReachedRun, OwnRun, RunGateway } from './run-gateway.js';
import { callSessionTool, rejectedAnswer, type SessionToolAnswer, type SessionToolsOptions } from './session-tools.js';

/** Limit of calls without a response, for all connections of one token together. */
export const CALLS_WAITING_MAX = 64;
const RUNS_KNOWN_MAX = 1_024;
const NO_REASON = 'No reason was given.';

export interface AgentConnectionOptions {
  /** An id that no other connection ever has. */
  readonly id: string;
  readonly agentRuns: RunGateway;
  /** The policy that new runs would pin. */
  readonly policy: () => Promise<Policy>;
  /** The lane of the connection's own run. */
  readonly lane: string;
  /** Null if sessions are not offered. */
  readonly sessionTools: SessionToolsOptions | null;
  readonly log: Log;
  /** The calls with keys of all connections of the service, which belong to one agent, and the runs they went into. */
  readonly keyedCalls: PlacedCalls;
  /** The number of waiting calls of all connections of the service. */
  readonly calls: { waiting: number };
  readonly succession: RunSuccession;
  /**
   * The run of an earlier connection of the same agent, which this one continues, and the function that stores its id.
   */
  readonly storedRun?: { readonly run_id: string | null; readonly keep: (run_id: string) => void };
}

/** A run that is ready for a proposal. */
interface ReadyRun extends ReachedRun {
  readonly run_id: string;
  readonly origin: RunOrigin;
}

export class AgentConnection {
  readonly #options: AgentConnectionOptions;
  readonly #calls = new PlacedCalls();
  readonly #known = new Set<string>();
  #offer: Promise<Offer> | null = null;
  #own: OwnRun | null;
  #outstanding: string | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: AgentConnectionOptions) {
    this.#options = options;
    const run_id = options.storedRun?.run_id ?? null;
    this.#own = run_id === null ? null : { run_id, ending: null };
    if (run_id === null) return;
    this.#known.add(run_id);
    options.succession.observe({ run_id, ending: null });
  }

  async tools(): Promise<readonly OfferedTool[]> {
    return (await this.#refreshOffer()).tools;
  }

  /** Executes a tool call. Never throws. @returns null if there is no such tool */
  async call(call: ToolCall): Promise<ToolCallResult | null> {
    const { calls } = this.#options;
    if (calls.waiting >= CALLS_WAITING_MAX) {
      return createErrorResult(
        'AGENT_BUSY',
        `${CALLS_WAITING_MAX} calls already wait: wait for an answer before the next one`,
      );
    }
    calls.waiting += 1;
    try {
      const meaning = await this.#meaningOf(call.name);
      return meaning === undefined ? null : await this.#answer(call, meaning);
    } catch (error) {
      return this.#toErrorResult(error);
    } finally {
      calls.waiting -= 1;
    }
  }

  /** Ends the connection: completes its own run as `end_of_input`, unless that has ended already. */
  async end(): Promise<void> {
    if (this.#own?.ending === null) await this.#options.agentRuns.end(this.#own.run_id);
  }

  async #meaningOf(name: string): Promise<ToolMeaning | undefined> {
    const known = this.#offer === null ? undefined : (await this.#offer).meaning(name);
    return known ?? (await this.#refreshOffer()).meaning(name);
  }

  /** The offer of the present policy, which may have changed. A policy that cannot be loaded leaves no cached offer. */
  #refreshOffer(): Promise<Offer> {
    const { policy, lane, sessionTools, succession } = this.#options;
    const offered = { sessions: sessionTools !== null, newRuns: succession.isAllowed };
    const offer = policy().then((current) => createOffer(current, lane, offered));
    this.#offer = offer;
    offer.catch(() => (this.#offer = null));
    return offer;
  }

  async #answer(call: ToolCall, meaning: ToolMeaning): Promise<ToolCallResult> {
    if (meaning.kind === 'propose' || meaning.kind === 'action') return this.#propose(call, meaning);
    if (meaning.kind === 'new_run') return this.#newRun(call);
    const { sessionTools: tools } = this.#options;
    return toSessionResult(
      tools === null
        ? rejectedAnswer('NO_ACTIVE_SESSION')
        : await this.#callSessionTool(meaning.kind, call.args, tools),
    );
  }

  async #callSessionTool(
    tool: 'task' | 'review' | 'verification',
    args: JsonObject,
    tools: SessionToolsOptions,
  ): Promise<SessionToolAnswer> {
    const answer = await callSessionTool(tool, args, tools);
    // Commands that only read do not give the connection a run.
    if (tool === 'task' && STEP_COMMANDS.some((command) => command === args['command'])) this.#trackRun(answer);
    return answer;
  }

  #trackRun({ success, data }: SessionToolAnswer): void {
    if (data === null || !('next_step' in data)) return;
    const run_id = data.next_step?.run_id ?? null;
    if (run_id !== null) this.#rememberRun(run_id);
    if (success || run_id !== null) this.#outstanding = run_id;
  }

  async #propose(call: ToolCall, meaning: ProposalMeaning): Promise<ToolCallResult> {
    const { args } = call;
    const requestedRun =
      meaning.kind === 'propose' || meaning.addedArguments.includes('run_id') ? args['run_id'] : undefined;
    if (requestedRun !== undefined && !isConforming(RunId, requestedRun))
      return invalidArguments('run_id is not a valid run id');
    if (meaning.kind === 'propose' && !isProposeCall(args)) return invalidArguments('propose takes `proposal`, a text');
    const mark = markOf(call, this.#options.id);
    // The run is not part of the content: a client that has lost the response does not know the run.
    const content = contentOf(requestedRun === undefined ? call : { ...call, args: omit(args, 'run_id') });
    const callHistory = call.key === null ? this.#calls : this.#options.keyedCalls;
    const earlier = callHistory.get(mark);
    if (earlier !== undefined && (earlier.content !== content || (requestedRun ?? earlier.run_id) !== earlier.run_id)) {
      return createErrorResult('IDEMPOTENCY_CONFLICT', 'This idempotency key was used for another call');
    }
    const submitted = await this.#runInOrder(async () => {
      const target = await this.#openRun(earlier?.run_id ?? (requestedRun as string | undefined) ?? null, call.trace);
      if (target === null) return null;
      const { run_id, origin } = target;
      callHistory.remember(mark, { run_id, content });
      const raw = meaning.kind === 'propose' ? (args['proposal'] as string) : proposalOf(args, meaning, run_id, mark);
      // Not awaited here: the next proposal may be submitted while this one is executed.
      const response = target.submit(raw, inputIdOf(run_id, mark), call.trace);
      return { run_id, origin, response };
    });
    if (submitted === null) return createErrorResult('RUN_UNKNOWN', 'There is no such run for you');
    try {
      return toStepResult(await submitted.response, submitted.run_id);
    } catch (error) {
      if (!isRunEnded(error)) throw error;
      callHistory.forget(mark);
      return this.#toEndedResult(submitted, error);
    }
  }

  /** Opens another run of its own, unless it has one that has not ended. */
  async #newRun({ args, trace }: ToolCall): Promise<ToolCallResult> {
    if (Object.keys(args).length > 0) return invalidArguments('new_run takes no arguments');
    return this.#runInOrder(async () => {
      const { agentRuns } = this.#options;
      const own = this.#own;
      const previous = own === null ? null : (own.ending ?? (await agentRuns.ending(own.run_id)));
      if (own !== null && previous === null) return toNewRunResult(own.run_id, false, null);
      const { run_id, ending } = await this.#startOwnRun(trace);
      return ending === null ? toNewRunResult(run_id, true, previous) : this.#toOwnEndedResult(ending);
    });
  }

  /** The answer to a call that came too late for its run. */
  async #toEndedResult({ run_id, origin }: Pick<ReadyRun, 'run_id' | 'origin'>, error: RunError) {
    const own = this.#own?.run_id === run_id ? this.#own.ending : null;
    const ending = own ?? (await this.#options.agentRuns.ending(run_id));
    if (ending === null) return this.#toErrorResult(error);
    return origin === 'own' ? this.#toOwnEndedResult(ending) : toEndedResult(ending, origin);
  }

  async #toOwnEndedResult(ending: EndedRun): Promise<ToolCallResult> {
    const mayFollow = (await this.#options.succession.findRefusal()) === null;
    return toEndedResult(ending, mayFollow ? 'own' : 'last');
  }

  /** Runs the work of calls one after the other, in their order. */
  async #runInOrder<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** @returns null for a run that this connection may not use */
  async #openRun(requestedRun: string | null, trace: ToolCall['trace']): Promise<ReadyRun | null> {
    const { agentRuns } = this.#options;
    const targetRun = requestedRun ?? this.#outstanding;
    if (targetRun === null) return this.#openOwnRun(trace);
    const origin = requestedRun === null ? 'session' : 'named';
    if (!this.#known.has(targetRun) && !(await agentRuns.belongs(targetRun))) return null;
    this.#rememberRun(targetRun);
    return { run_id: targetRun, origin, ...(await agentRuns.open(targetRun)) };
  }

  async #openOwnRun(trace: ToolCall['trace']): Promise<ReadyRun> {
    const { agentRuns } = this.#options;
    const own = this.#own;
    if (own !== null && own.ending === null) {
      const run = await agentRuns.open(own.run_id);
      const ending = run.live ? null : await agentRuns.ending(own.run_id);
      if (ending === null || !isContinuable(ending)) return { run_id: own.run_id, origin: 'own', ...run };
    }
    const { run_id, ending } = own === null || own.ending === null ? await this.#startOwnRun(trace) : own;
    if (ending !== null) return { run_id, origin: 'own', live: false, submit: () => Promise.reject(ownRunEnded()) };
    return { run_id, origin: 'own', ...(await agentRuns.open(run_id)) };
  }

  /** @returns the connection's new run. If no other run may follow, nothing is opened, and it has an ending */
  async #startOwnRun(trace: ToolCall['trace']): Promise<OwnRun> {
    const { agentRuns, succession, id, storedRun } = this.#options;
    const refusal = await succession.findRefusal();
    if (refusal !== null) return (this.#own = { run_id: refusal.run_id, ending: refusal });
    const own = await agentRuns.start(correlationOf(id), trace);
    this.#own = own;
    succession.observe(own);
    if (own.ending !== null) return own;
    this.#rememberRun(own.run_id);
    storedRun?.keep(own.run_id);
    return own;
  }

  /** Remembers a run; beyond the limit, the one named longest ago is evicted. */
  #rememberRun(run_id: string): void {
    this.#known.delete(run_id);
    this.#known.add(run_id);
    const [oldest] = this.#known;
    if (this.#known.size > RUNS_KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  #toErrorResult(error: unknown): ToolCallResult {
    if (error instanceof RunError) return createErrorResult(error.code, PROBLEMS[error.code][1]);
    this.#options.log.error('a call over MCP failed', { error });
    return createErrorResult('UNAVAILABLE', PROBLEMS.UNAVAILABLE[1]);
  }
}

/** The commands whose answer may contain a step for the agent. */
const STEP_COMMANDS: readonly string[] = ['start', 'next', 'replay', 'resume'];

const isRunEnded = (error: unknown): error is RunError => error instanceof RunError && error.code === 'RUN_ENDED';
const ownRunEnded = (): RunError => new RunError({ code: 'RUN_ENDED', message: 'the own run was denied' });

const invalidArguments = (message: string): ToolCallResult => createErrorResult('VALIDATION_ERROR', message);

const omit = (args: JsonObject, omitted: string): JsonObject =>
  Object.fromEntries(Object.entries(args).filter(([name]) => name !== omitted));

const isProposeCall = (args: JsonObject): boolean =>
  typeof args['proposal'] === 'string' && Object.keys(args).every((name) => name === 'proposal' || name === 'run_id');

/** The raw payload of a call of an action tool. Invalid arguments are rejected later, in the phases of the step. */
function proposalOf(
  args: JsonObject,
  { action, tool, addedArguments: added }: ActionMeaning,
  run_id: string,
  mark: string,
): string {
  const own = Object.fromEntries(Object.entries(args).filter(([name]) => !added.includes(name)));
  const reasoning = (added.includes('reasoning') ? args['reasoning'] : undefined) ?? NO_REASON;
  return JSON.stringify({
    schema_version: '1.0.0',
    id: proposalIdOf(run_id, mark),
    reasoning,
    action,
    args: tool === null ? own : { tool, input: own },
  });
}
