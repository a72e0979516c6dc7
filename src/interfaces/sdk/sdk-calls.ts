// The calls of an SDK in one agent run: each is a proposal of CALL_TOOL. Its id follows from the SDK's id of the call,
// its place in the conversation, and its input. So the same call, also after a restart, gets the recorded response, and
// executes nothing again (0066). Some model services number the calls of each answer (`call_0`), so an id alone does
// not identify a call (0078).

import { type Json, type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { nameUuid } from '../../runtime/name-uuid.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { GovernedCallError, RunError } from '../../core/errors.js';
import type { AgentRun } from '../../runtime/agents/agent-run.js';
import type { RunRequest } from '../../runtime/agents/run-requests.js';
import { toolCallPayload } from '../../runtime/agents/tool-call-payload.js';
import type { Turnpike } from '../../host/turnpike.js';
import { outputIn, type RegisteredTool, type WaitingCalls } from './sdk-tool.js';

/** How often one call may be proposed again after its approval was decided. */
const ATTEMPTS_MAX = 8;
const RUN_ENDED = 'Turnpike: the run of this agent has ended, so no call is executed.';

/** One call of a tool, as the SDK has it. */
export interface SdkToolCall {
  /** The SDK's id of the call: the same after a restart. */
  readonly id: string;
  /** Where the call is in its conversation: the same after a restart. Null if the SDK does not say. */
  readonly place: string | number | null;
  readonly tool: RegisteredTool;
  /** What the model has given, whether it is valid or not. */
  readonly input: Json;
}

/** The run, and the instance that has it. */
export interface GovernedRun {
  readonly turnpike: Pick<Turnpike, 'approvalOf'>;
  readonly run: Pick<AgentRun, 'run_id' | 'respond'>;
}

export class SdkCalls {
  readonly #of: GovernedRun;
  readonly #waiting: WaitingCalls;

  constructor(of: GovernedRun, waiting: WaitingCalls) {
    this.#of = of;
    this.#waiting = waiting;
  }

  /**
   * Whether a person has to approve the call. Then it is proposed, and the request is durable. This stays true after
   * the vote: SDKs ask again before they execute an approved call, and drop one that needs no approval.
   */
  async needsApproval(call: SdkToolCall): Promise<boolean> {
    const { run, turnpike } = this.#of;
    const key = this.#key(call, 0);
    const payload = payloadOf(call, key);
    if (!(await turnpike.approvalOf(run.run_id, payload)).isNeeded) return false;
    const response = await this.#respond(payload, key);
    if (response === null || !readResponse(response).isDenied) return false;
    return (await turnpike.approvalOf(run.run_id, payload)).request !== null;
  }

  /** The request that the call has made, for the people who vote on it; null if it has made none. */
  async requestOf(call: SdkToolCall): Promise<RunRequest | null> {
    const payload = payloadOf(call, this.#key(call, 0));
    return (await this.#of.turnpike.approvalOf(this.#of.run.run_id, payload)).request;
  }

  /**
   * Executes the call, or returns what it returned before.
   * @param options what the SDK gives with the call
   * @throws GovernedCallError
   */
  async execute(call: SdkToolCall, options: unknown): Promise<Json> {
    const name = canonicalJson([this.#of.run.run_id, this.#key(call, 0)]);
    if (call.place === null && this.#waiting.isAnswered(name)) await this.#refuseRepeated(call);
    // Two equal calls of one answer: the second one has no execution of its own.
    if (!this.#waiting.begin(name)) await this.#refuseRepeated(call);
    try {
      return await this.#executeOnce(call, name, options);
    } finally {
      this.#waiting.end(name);
    }
  }

  async #executeOnce(call: SdkToolCall, name: string, options: unknown): Promise<Json> {
    const { response, pending } = await this.#propose(call, options);
    if (pending !== null)
      throw new GovernedCallError({
        code: 'CALL_PENDING',
        message: 'approval pending: a person has to approve this call. Repeat it after the approval.',
      });
    const { isSuccess, isDenied, message } = readResponse(response);
    if (isSuccess) {
      this.#waiting.noteAnswered(name);
      return outputIn(response.result as JsonObject | null);
    }
    throw new GovernedCallError({ code: isDenied ? 'CALL_DENIED' : 'CALL_FAILED', message });
  }

  /**
   * An equal call with the same id, while the first is executed or after its output was returned: nothing says whether
   * it is another call, so it gets neither a second execution nor the output of the first. The refusal is recorded.
   * @throws GovernedCallError
   */
  async #refuseRepeated({ tool, input, ...call }: SdkToolCall): Promise<never> {
    const key = this.#key({ tool, input, ...call }, 0);
    await this.#respond(toolCallPayload(key, tool.name, { repeated: tool.encode(input) }), key).catch(ignoreConflict);
    throw new GovernedCallError({
      code: 'CALL_FAILED',
      message:
        'Turnpike: an equal call with the same id is executed already, so this one is not executed. Use another id.',
    });
  }

  /** Proposes the call until its response is not that of a request whose approval was decided meanwhile. */
  async #propose(
    call: SdkToolCall,
    options: unknown,
  ): Promise<{ readonly response: StepResponse; readonly pending: RunRequest | null }> {
    const { run, turnpike } = this.#of;
    const { tool, input } = call;
    const waiting = { run_id: run.run_id, tool: tool.name, input: tool.encode(input) };
    this.#waiting.add(waiting, options);
    try {
      for (let attempt = 0; ; attempt += 1) {
        const key = this.#key(call, attempt);
        const payload = payloadOf(call, key);
        const response = await this.#respond(payload, key);
        if (response === null) throw new GovernedCallError({ code: 'CALL_DENIED', message: RUN_ENDED });
        if (!readResponse(response).isDenied || attempt + 1 >= ATTEMPTS_MAX) return { response, pending: null };
        const { request } = await turnpike.approvalOf(run.run_id, payload);
        if (request?.status === 'open') return { response, pending: request };
        // The approval of an equal call is used up by that call.
        const isApproved = request?.status === 'granted' || (request?.status === 'consumed' && attempt === 0);
        if (!isApproved) return { response, pending: null };
      }
    } finally {
      this.#waiting.remove(waiting, options);
    }
  }

  /** The response, which is the recorded one for a repeated request; null if the run has ended. */
  async #respond(payload: Uint8Array, key: string): Promise<StepResponse | null> {
    try {
      return parseOwnJson(await this.#of.run.respond(payload, { inputId: `sdk:${key}` })) as StepResponse;
    } catch (error) {
      if (error instanceof RunError && error.code === 'RUN_ENDED') return null;
      throw error;
    }
  }

  #key({ id, place, tool, input }: SdkToolCall, attempt: number): string {
    const digest = sha256(canonicalJson([tool.name, tool.encode(input)]));
    return nameUuid(canonicalJson(['sdk call', this.#of.run.run_id, id, place, digest, attempt]));
  }
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof RunError) || error.code !== 'IDEMPOTENCY_CONFLICT') throw error;
}

const payloadOf = ({ tool, input }: SdkToolCall, id: string): Uint8Array =>
  toolCallPayload(id, tool.name, tool.encode(input));

/** What a response says, in any exposure. */
function readResponse(response: StepResponse): {
  readonly isSuccess: boolean;
  readonly isDenied: boolean;
  readonly message: string;
} {
  if ('decision' in response) {
    const isSuccess = response.decision === 'ALLOW' && response.result !== null;
    return { isSuccess, isDenied: response.decision === 'DENY', message: 'Turnpike: the call was not successful.' };
  }
  const { outcome, error } = response;
  const explanation = error !== null && 'explanation' in error ? error.explanation : null;
  const words = error === null ? '' : `${error.error_code}: ${explanation ?? error.message}`;
  return { isSuccess: outcome === 'SUCCESS', isDenied: outcome === 'DENIED', message: `Turnpike: ${words}` };
}
