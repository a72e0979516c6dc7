// Calls of coding agents as proposals, and the reports of their outcomes (U-08 to U-10).

import { type JsonObject, parseOwnJson, canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { DetailedResponse } from '../../../core/contract/run/response.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import type { ReportMatch } from '../../../core/contract/run/report-origin.js';
import type { TreeEngine } from '../../../engine/tree-engine.js';
import { RunError } from '../../../core/errors.js';
import { UNDECIDED_INPUT, UNGATED_INPUT } from '../comparisons/call-labels.js';
import { totalOf, type UndecidedCounts } from '../client-files/count-files.js';
import type { HookOrigin, NativeCall, ReportedOutcome, Client } from '../hook-event.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';
import { createLruMap } from '../../../system/lru-map.js';
import type { ActionReport } from '../../../runtime/agents/action-reports.js';
import { nameUuid } from '../../../runtime/name-uuid.js';
import type { Agents } from '../../../runtime/agents/agents.js';
import type { RunRequests } from '../../../runtime/agents/run-requests.js';
import { toolCallPayload } from '../../../runtime/agents/tool-call-payload.js';

/** How often one call may be requested again after its approval was decided. */
const ATTEMPTS_MAX = 8;

/** What identifies a call. */
interface CallKey {
  readonly client: Client;
  readonly session: string;
  readonly agent: string | null;
  /** The digest of the call (`callDigest`). */
  readonly call: string;
  /** From 0: how many calls with this digest came before. */
  readonly number: number;
  /** From 0. Each new request for a call whose approval was pending has the next number. */
  readonly attempt: number;
}

/** The digest of the client's id of a call, of its tool and of its input as the client has given it. */
export const callDigest = ({ call_id, tool, input }: NativeCall): string =>
  sha256(canonicalJson([call_id, tool, input]));

/**
 * The id of the proposal for a call: a UUID of version 5. The same call has the same id in every process, so a repeated
 * event makes no second step. A client's id of a call alone does not identify it: some model services number the calls
 * of each answer, and an id that was allowed must not answer for another input.
 */
export const proposalIdOf = ({ client, session, agent, call, number, attempt }: CallKey): string =>
  nameUuid(canonicalJson([client, session, agent, call, number, attempt]));

/** A call in its session. */
interface SessionCall {
  readonly client: Client;
  readonly origin: Pick<HookOrigin, 'session' | 'agent'>;
  readonly call: NativeCall;
  /** The digest of the call as the client has given it, before secrets were removed (`callDigest`). */
  readonly digest: string;
  readonly run_id: string;
}

/** How a call was decided. */
type CallVerdict =
  | { readonly decision: 'allow'; readonly run_id: string }
  | { readonly decision: 'pending' | 'deny'; readonly trace: StepTrace };

/** `late`: its call has ended, or was denied. `ungated`: the client has executed a call without a decision. */
type OutcomeMatch = 'recorded' | 'late' | 'ungated';

interface HookCallsParts {
  readonly agents: Pick<Agents, 'respond' | 'findStep'>;
  readonly engine: Pick<TreeEngine, 'peek'>;
  readonly requests: Pick<RunRequests, 'find'>;
  readonly report: (report: ActionReport) => Promise<void>;
}

export class HookCalls {
  readonly #parts: HookCallsParts;
  /** The next number of equal calls, by run and call. It only saves lookups. */
  readonly #issued = createLruMap<number>(REMEMBERED_MAX);
  /** The last call of each of these: equal calls get their numbers one after another. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(parts: HookCallsParts) {
    this.#parts = parts;
  }

  /**
   * Decides a call. The decision is durable when this returns. A repeated event gets the recorded decision until the
   * outcome of its call is known: then it is another call.
   */
  async decide(of: SessionCall, event: string): Promise<CallVerdict> {
    const key = issueKey(of);
    return this.#inTurn(key, async () => {
      for (let number = await this.#numberFor(of, key); ; number += 1) {
        const verdict = await this.#decideAs(of, number, event);
        // Its paths lead elsewhere than those of the call with this number.
        if (verdict === 'conflict') continue;
        // A call without an id that waits for approval is not made, so the next equal one is the same request.
        if (of.call.call_id !== null || verdict.decision !== 'pending') this.#issued.set(key, number + 1);
        return verdict;
      }
    });
  }

  /** Records the outcome of a call, if an allowed call waits for it. */
  async report(of: SessionCall, outcome: ReportedOutcome): Promise<OutcomeMatch> {
    // Of equal calls without ids, each report finds the oldest that waits: one report after another.
    return this.#inTurn(issueKey(of), () => this.#reportOutcome(of, outcome));
  }

  /** Records a call that its client has executed without a decision, as a proposal that policy denies. */
  async recordUngated(of: SessionCall, hookEvent: string): Promise<void> {
    const call_digest = of.call.call_id === null ? sha256(hookEvent) : of.digest;
    const key = { ...keyOf(of, 0), call: call_digest, attempt: UNGATED_ATTEMPT };
    const call = { ...of.call, tool: UNGATED_TOOL, input: { tool: of.call.tool, input: of.call.input } };
    await this.#parts.agents.respond(of.run_id, payloadOf({ ...of, call }, key), {
      inputId: `${UNGATED_INPUT}${proposalIdOf(key)}`,
      hookEvent,
    });
  }

  /** Records how many calls the hook has denied without a decision: nothing else is known of them. */
  async recordUndecided(of: Omit<SessionCall, 'call' | 'digest'>, counts: UndecidedCounts): Promise<void> {
    const text = canonicalJson({ ...counts });
    const key = { ...keyOf({ ...of, digest: sha256(text) }, 0), attempt: UNGATED_ATTEMPT };
    const payload = toolCallPayload(proposalIdOf(key), UNDECIDED_TOOL, { ...counts });
    await this.#parts.agents.respond(of.run_id, payload, {
      inputId: `${UNDECIDED_INPUT}${totalOf(counts)}:${proposalIdOf(key)}`,
      hookEvent: text,
    });
  }

  async #reportOutcome(of: SessionCall, { status, result }: ReportedOutcome): Promise<OutcomeMatch> {
    const found = await this.#findOpen(of);
    if (found === null) return (await this.#isGated(of, status)) ? 'late' : 'ungated';
    const { run_id: run, match } = found;
    try {
      await this.#parts.report({ run, status, match, ...(result === null ? {} : { result }) });
      return 'recorded';
    } catch (error) {
      // It has ended meanwhile, or the client has reported it differently before: the first report counts.
      if (error instanceof RunError && error.code === 'INVALID_STATE_TRANSITION') return 'late';
      throw error;
    }
  }

  /** Runs work on equal calls one after another. */
  #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(work);
    const settled = turn
      .catch(() => undefined)
      .finally(() => {
        if (this.#turns.get(key) === settled) this.#turns.delete(key);
      });
    this.#turns.set(key, settled);
    return turn;
  }

  /** The number of a call: the next one, unless the event is that of an earlier call repeated. */
  async #numberFor(of: SessionCall, key: string): Promise<number> {
    const next = await this.#nextNumber(of, key);
    if (of.call.call_id === null || next === 0) return next;
    const run_id = await this.#authorizedRunOf(of, next - 1);
    return run_id === null || (await this.#waits(run_id)) ? next - 1 : next;
  }

  async #decideAs(of: SessionCall, number: number, event: string): Promise<CallVerdict | 'conflict'> {
    for (let attempt = 0; ; attempt += 1) {
      const key = { ...keyOf(of, number), attempt };
      const verdict = await this.#propose(of, key, event).catch(asConflict);
      if (verdict === 'conflict') return verdict;
      if (verdict.decision !== 'pending' || attempt + 1 >= ATTEMPTS_MAX) return verdict;
      const request = await this.#parts.requests.find(of.run_id, payloadOf(of, key));
      if (request === null || request.status === 'open') return verdict;
    }
  }

  async #propose(of: SessionCall, key: CallKey, hookEvent: string): Promise<CallVerdict> {
    const { run_id } = of;
    const inputId = inputIdOf(key);
    const text = await this.#parts.agents.respond(run_id, payloadOf(of, key), { inputId, hookEvent });
    const authorized = authorizedRun(parseOwnJson(text));
    if (authorized !== null) return { decision: 'allow', run_id: authorized };
    const step = await this.#parts.agents.findStep(run_id, inputId);
    if (step === null)
      throw new RunError({ code: 'RUN_ENDED', message: `run ${run_id} has recorded no step for a call` });
    const { trace } = step;
    return { decision: trace.rule_id === 'approval.required' ? 'pending' : 'deny', trace };
  }

  /** The allowed call whose outcome is reported, if it still waits for that. */
  async #findOpen(of: SessionCall): Promise<{ readonly run_id: string; readonly match: ReportMatch } | null> {
    const next = await this.#nextNumber(of, issueKey(of));
    if (of.call.call_id !== null) {
      const run_id = next === 0 ? null : await this.#authorizedRunOf(of, next - 1);
      return run_id === null ? null : { run_id, match: 'exact' };
    }
    const waiting: string[] = [];
    for (let number = Math.max(0, next - OPEN_SEARCHED_MAX); number < next; number += 1) {
      const run_id = await this.#authorizedRunOf(of, number);
      if (run_id !== null && (await this.#waits(run_id))) waiting.push(run_id);
    }
    const [first] = waiting;
    // Equal calls cannot be distinguished: the oldest one gets the report, and the record says so.
    return first === undefined ? null : { run_id: first, match: waiting.length > 1 ? 'ambiguous' : 'exact' };
  }

  /** Whether the call was decided. One that was denied and is reported as done was executed nevertheless. */
  async #isGated(of: SessionCall, status: ReportedOutcome['status']): Promise<boolean> {
    const isKnown = (await this.#nextNumber(of, issueKey(of))) > 0;
    return isKnown && (of.call.call_id === null || status !== 'done');
  }

  async #authorizedRunOf(of: SessionCall, number: number): Promise<string | null> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const step = await this.#parts.agents.findStep(of.run_id, inputIdOf({ ...keyOf(of, number), attempt }));
      if (step === null) return null;
      const run_id = authorizedRun(parseOwnJson(step.response));
      if (run_id !== null) return run_id;
    }
    return null;
  }

  async #waits(run_id: string): Promise<boolean> {
    const tree = await this.#parts.engine.peek(rootRunIdOf(run_id));
    return tree?.isLive(run_id) === true;
  }

  /**
   * The first number that no equal call of the run has: numbers have no gap, so it is found by bisection. It has no
   * limit, because a number that was used would get the recorded decision; the steps of the run are its limit.
   */
  async #nextNumber(of: SessionCall, key: string): Promise<number> {
    const known = this.#issued.get(key);
    if (known !== undefined) return known;
    let [low, high] = [0, (await this.#isIssued(of, 0)) ? 1 : 0];
    while (high > 0 && (await this.#isIssued(of, high))) [low, high] = [high, high * 2];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (await this.#isIssued(of, middle)) low = middle + 1;
      else high = middle;
    }
    this.#issued.set(key, low);
    return low;
  }

  async #isIssued(of: SessionCall, number: number): Promise<boolean> {
    return (await this.#parts.agents.findStep(of.run_id, inputIdOf({ ...keyOf(of, number), attempt: 0 }))) !== null;
  }
}

const REMEMBERED_MAX = 16_384;
/** No policy can name these tools. */
const UNGATED_TOOL = 'native.ungated';
const UNDECIDED_TOOL = 'native.undecided';
const UNGATED_ATTEMPT = ATTEMPTS_MAX;
/** How many of the newest equal calls may still wait for their outcomes. */
const OPEN_SEARCHED_MAX = 64;

const keyOf = (
  { client, origin: { session, agent }, digest: call }: Omit<SessionCall, 'call'>,
  number: number,
): Omit<CallKey, 'attempt'> => ({ client, session, agent, call, number });

/** The id of one request: a second one with it gets the recorded response. */
const inputIdOf = (key: CallKey): string => `hook:${proposalIdOf(key)}`;

const payloadOf = ({ call: { tool, input } }: SessionCall, key: CallKey): Uint8Array =>
  toolCallPayload(proposalIdOf(key), tool, input);

/** Equal calls of one agent run have one key. */
const issueKey = ({ run_id, digest }: SessionCall): string => `${run_id} ${digest}`;

function asConflict(error: unknown): 'conflict' {
  if (error instanceof RunError && error.code === 'IDEMPOTENCY_CONFLICT') return 'conflict';
  throw error;
}

/** The run that waits for the outcome, if the response allows the call. */
function authorizedRun(response: unknown): string | null {
  const { result } = response as DetailedResponse;
  const { authorized, run_id } = (result ?? {}) as JsonObject;
  return authorized === true && typeof run_id === 'string' ? run_id : null;
}
