// The connection of one agent in one MCP session, whatever its transport. A stateless request has a connection of its
// own, which remembers nothing that another request needs.
//
// Invariants:
//   N1. A connection has one agent run of its own, started with the first proposal. While a step of a session with a
//       run is outstanding on it, proposals go into that run. `run_id` overrides both. All stateless requests of an
//       agent have the same own run.
//   N2. A connection reaches the runs that it started, those that a session has given it, and those that were opened
//       for the same agent. Knowing the id of a run is not enough.
//   N3. Proposals reach their run in the order of their calls.
//   N4. A repeated call gets the earlier response: on the same connection by its request id; on any connection of the
//       service by its key, while the key is cached; and always by its key together with the run that it went into. A
//       stateless call gets it by its key, from any process, if the run is among the last 64 runs of the agent.
//   N5. A response never contains text of an exception; exceptions are logged.
//   N6. After its own run was denied, failed or was cancelled, a connection opens another one only for `new_run`
//       (decision 0048). A call that comes too late for a run is not executed, and may be repeated under its key.
//   N7. A call of an unlisted tool is a proposal of CALL_TOOL with that name, so the ledger records it (decision 0048).

import type { JsonObject } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { RunId } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { RunError } from '../../core/errors.js';
import type { Policy } from '../../core/policy/policy.js';
import type { Log } from '../../engine/ports/log.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import { PROBLEMS } from '../service/problems.js';
import { toEndedResult, toNewRunResult, createErrorResult, toStepResult, type ToolCallResult } from './tool-results.js';
import {
  inputIdOf,
  markOf,
  proposalIdOf,
  type CallAttempt,
  type CallCache,
  type CallHistory,
  type ToolCall,
} from './tool-calls.js';
import {
  isContinuable,
  type EndedRun,
  type RunOrigin,
  type AgentIdentity,
  type OwnRun,
  type RunGateway,
} from './run-gateway.js';
import type { OwnRuns, RunSuccession, StoredRuns } from './own-runs.js';
import {
  createOffer,
  type AddedTool,
  type ActionMeaning,
  type ToolMeaning,
  type Offer,
  type OfferedTool,
  type ProposalMeaning,
} from './offer.js';

/** Limit of calls without a response, for all connections of one token together. */
export const CALLS_WAITING_MAX = 64;
const RUNS_KNOWN_MAX = 1_024;
const NO_REASON = 'No reason was given.';

/** One MCP server, to be served over stdio or HTTP: the parts that all its connections share. */
export interface McpService {
  /** @internal */
  readonly agentRuns: RunGateway;
  /** The policy that new runs would pin. */
  readonly policy: () => Promise<Policy>;
  readonly identity: AgentIdentity;
  /** @internal The tools of features. */
  readonly addedTools: readonly AddedTool[];
  /** The version of this package, for the MCP handshake. */
  readonly version: string;
  /** @internal The keyed calls of all its connections, which belong to one agent with one token. */
  readonly keyedCalls: CallCache;
  /** @internal The number of calls of its connections without a response. */
  readonly calls: { waiting: number };
  /**
   * @internal The runs of its connections, and how many may follow those that were denied, failed or were cancelled.
   */
  readonly succession: RunSuccession;
  /** @internal The runs of its stateless requests. */
  readonly storedRuns: StoredRuns;
  readonly log: Log;
}

/** What a connection does not share with others of its service. */
interface OwnParts {
  /** An id that no other connection ever has. */
  readonly id: string;
  readonly ownRuns: OwnRuns;
  readonly history: CallHistory;
}

/** The result of a call, and whether its tool is listed. */
interface CallOutcome {
  readonly result: ToolCallResult;
  readonly isListed: boolean;
}

/** A run that is ready for a proposal. Its ending is known if policy denied its start. */
interface ReadyRun extends OwnRun {
  readonly origin: RunOrigin;
  /** Whether this call has begun it. */
  readonly isNew: boolean;
}

export class AgentConnection {
  readonly #service: McpService;
  readonly #own: OwnParts;
  readonly #known = new Set<string>();
  #offer: Promise<Offer> | null = null;
  #outstanding: string | null = null;
  #wasCalled = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(service: McpService, own: OwnParts) {
    this.#service = service;
    this.#own = own;
  }

  async tools(): Promise<readonly OfferedTool[]> {
    return (await this.#refreshOffer()).tools;
  }

  /** Executes a tool call. Never throws. */
  async call(call: ToolCall): Promise<CallOutcome> {
    const { calls } = this.#service;
    if (calls.waiting >= CALLS_WAITING_MAX) {
      const message = `${CALLS_WAITING_MAX} calls already wait: wait for an answer before the next one`;
      return { result: createErrorResult('AGENT_BUSY', message), isListed: true };
    }
    calls.waiting += 1;
    this.#wasCalled = true;
    try {
      const meaning = await this.#meaningOf(call.name);
      const isListed = meaning !== undefined;
      return { result: await this.#answer(call, meaning ?? unlistedMeaning(call.name)), isListed };
    } catch (error) {
      return { result: this.#toErrorResult(error), isListed: true };
    } finally {
      calls.waiting -= 1;
    }
  }

  /**
   * Ends the connection: completes its own run as `end_of_input`, unless that has ended already. A connection without a
   * call ends nothing: clients start a process only to ask for its protocol versions.
   */
  async end(): Promise<void> {
    if (!this.#wasCalled) return;
    const own = await this.#own.ownRuns.current();
    if (own?.ending === null) await this.#service.agentRuns.end(own.run_id);
  }

  async #meaningOf(name: string): Promise<ToolMeaning | undefined> {
    const known = this.#offer === null ? undefined : (await this.#offer).meaning(name);
    return known ?? (await this.#refreshOffer()).meaning(name);
  }

  /** The offer of the present policy, which may have changed. A policy that cannot be loaded leaves no cached offer. */
  #refreshOffer(): Promise<Offer> {
    const { policy, identity, addedTools: added, succession } = this.#service;
    const { lane = AGENT_DEFAULTS.lane } = identity;
    const offer = policy().then((current) => createOffer(current, lane, { added, newRuns: succession.isAllowed }));
    this.#offer = offer;
    offer.catch(() => (this.#offer = null));
    return offer;
  }

  async #answer(call: ToolCall, meaning: ToolMeaning): Promise<ToolCallResult> {
    if (meaning.kind === 'propose' || meaning.kind === 'action') return this.#propose(call, meaning);
    if (meaning.kind === 'new_run') return this.#newRun(call);
    const { result, run } = await meaning.tool.call(call.args);
    if (run === undefined) return result;
    if (run !== null) this.#rememberRun(run);
    this.#outstanding = run;
    return result;
  }

  async #propose(call: ToolCall, meaning: ProposalMeaning): Promise<ToolCallResult> {
    const { args } = call;
    const requestedRun =
      meaning.kind === 'propose' || meaning.addedArguments.includes('run_id') ? args['run_id'] : undefined;
    if (requestedRun !== undefined && !isConforming(RunId, requestedRun))
      return invalidArguments('run_id is not a valid run id');
    if (meaning.kind === 'propose' && !isProposeCall(args)) return invalidArguments('propose takes `proposal`, a text');
    const mark = markOf(call, this.#own.id);
    const attempt: CallAttempt = {
      mark,
      isKeyed: call.key !== null,
      requestedRun: (requestedRun as string | undefined) ?? null,
      payloadFor: (run_id) =>
        meaning.kind === 'propose' ? (args['proposal'] as string) : proposalOf(args, meaning, run_id, mark),
    };
    const submitted = await this.#runInOrder(() => this.#submit(attempt, call.trace));
    if (submitted === 'conflict')
      return createErrorResult('IDEMPOTENCY_CONFLICT', 'This idempotency key was used for another call');
    if (submitted === null) return createErrorResult('RUN_UNKNOWN', 'There is no such run for you');
    try {
      return toStepResult(await submitted.response, submitted.run.run_id);
    } catch (error) {
      if (!isRunEnded(error)) throw error;
      this.#own.history.forget(attempt);
      return this.#toEndedResult(submitted.run, error);
    }
  }

  /**
   * Submits a proposal to its run. The response is not awaited here: the next proposal may be submitted while this one
   * is executed.
   */
  async #submit(
    attempt: CallAttempt,
    trace: ToolCall['trace'],
  ): Promise<{ readonly run: ReadyRun; readonly response: Promise<StepResponse> } | 'conflict' | null> {
    const run = await this.#findRun(attempt, trace);
    if (run === null || run === 'conflict') return run;
    const { run_id } = run;
    this.#own.history.remember(attempt, run_id);
    const response =
      run.ending === null
        ? this.#service.agentRuns.submit(run_id, attempt.payloadFor(run_id), inputIdOf(run_id, attempt.mark), trace)
        : Promise.reject(new RunError({ code: 'RUN_ENDED', message: 'the own run has ended' }));
    return { run, response };
  }

  async #findRun(attempt: CallAttempt, trace: ToolCall['trace']): Promise<ReadyRun | 'conflict' | null> {
    const { history } = this.#own;
    const { requestedRun } = attempt;
    const earlier = await history.find(attempt);
    if (earlier !== null && requestedRun !== null && earlier !== requestedRun) return 'conflict';
    const run = await this.#openRun(earlier ?? requestedRun, trace);
    if (run?.isNew !== true) return run;
    // The run before may have received an earlier attempt after the search, and before it ended.
    const previous = await history.find(attempt);
    return previous === null ? run : this.#openRun(previous, trace);
  }

  /** Opens another run of its own, unless it has one that has not ended. */
  async #newRun({ args, trace }: ToolCall): Promise<ToolCallResult> {
    if (Object.keys(args).length > 0) return invalidArguments('new_run takes no arguments');
    return this.#runInOrder(async () => {
      const { ownRuns } = this.#own;
      const own = await ownRuns.current();
      const previous = own === null ? null : await this.#findEnding(own);
      if (own !== null && previous === null) return toNewRunResult(own.run_id, false, null);
      const { run_id, ending } = await this.#startOwnRun(own, previous, trace);
      return ending === null ? toNewRunResult(run_id, true, previous) : this.#toOwnEndedResult(ending);
    });
  }

  /** The answer to a call that came too late for its run. */
  async #toEndedResult(run: Pick<ReadyRun, 'run_id' | 'origin' | 'ending'>, error: RunError) {
    const ending = await this.#findEnding(run);
    if (ending === null) return this.#toErrorResult(error);
    return run.origin === 'own' ? this.#toOwnEndedResult(ending) : toEndedResult(ending, run.origin);
  }

  async #toOwnEndedResult(ending: EndedRun): Promise<ToolCallResult> {
    const mayFollow = (await this.#own.ownRuns.findRefusal(ending)) === null;
    return toEndedResult(ending, mayFollow ? 'own' : 'last');
  }

  async #findEnding({ run_id, ending }: OwnRun): Promise<EndedRun | null> {
    return ending ?? this.#service.agentRuns.ending(run_id);
  }

  /** Runs the work of calls one after the other, in their order. */
  async #runInOrder<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** @returns null for a run that this connection may not use */
  async #openRun(requestedRun: string | null, trace: ToolCall['trace']): Promise<ReadyRun | null> {
    const { agentRuns } = this.#service;
    const targetRun = requestedRun ?? this.#outstanding;
    if (targetRun === null) return this.#openOwnRun(trace);
    const origin = requestedRun === null ? 'session' : 'named';
    if (!this.#known.has(targetRun) && !(await agentRuns.belongs(targetRun))) return null;
    this.#rememberRun(targetRun);
    await agentRuns.open(targetRun);
    return { run_id: targetRun, origin, ending: null, isNew: false };
  }

  /** Opens its own run. After one that was finished or was silent, it begins another. */
  async #openOwnRun(trace: ToolCall['trace']): Promise<ReadyRun> {
    const own = await this.#own.ownRuns.current();
    const ended = own === null ? null : await this.#findEnding(own);
    const isNew = own === null || (ended !== null && isContinuable(ended));
    const { run_id, ending } = isNew ? await this.#startOwnRun(own, ended, trace) : own;
    if (ending === null) await this.#service.agentRuns.open(run_id);
    return { run_id, origin: 'own', ending, isNew };
  }

  /** @returns the agent's new own run. If no other run may follow, nothing is opened, and it has an ending */
  async #startOwnRun(own: OwnRun | null, ended: EndedRun | null, trace: ToolCall['trace']): Promise<OwnRun> {
    const { ownRuns } = this.#own;
    const refusal = await ownRuns.findRefusal(ended);
    if (refusal !== null) return { run_id: refusal.run_id, ending: refusal };
    const next = await ownRuns.begin(own, trace);
    if (next.ending === null) this.#rememberRun(next.run_id);
    return next;
  }

  /** Remembers a run; beyond the limit, the one named longest ago is evicted. */
  #rememberRun(run_id: string): void {
    this.#known.delete(run_id);
    this.#known.add(run_id);
    const [oldest] = this.#known;
    if (this.#known.size > RUNS_KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  #toErrorResult(error: unknown): ToolCallResult {
    // The process that has the home may be of a later version, with codes that this one does not know.
    if (error instanceof RunError && Object.hasOwn(PROBLEMS, error.code))
      return createErrorResult(error.code, PROBLEMS[error.code][1]);
    this.#service.log.error('a call over MCP failed', { error });
    return createErrorResult('UNAVAILABLE', PROBLEMS.UNAVAILABLE[1]);
  }
}

const isRunEnded = (error: unknown): error is RunError => error instanceof RunError && error.code === 'RUN_ENDED';
/** Decision 0048. No argument is added, so all arguments are the input of the tool. */
const unlistedMeaning = (tool: string): ActionMeaning => ({
  kind: 'action',
  action: 'CALL_TOOL',
  tool,
  addedArguments: [],
});

const invalidArguments = (message: string): ToolCallResult => createErrorResult('VALIDATION_ERROR', message);

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
