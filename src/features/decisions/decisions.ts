// Decisions about actions that the caller executes itself, or not at all: each request becomes a proposal of CALL_TOOL
// for an external tool, so it passes every phase, and it is recorded before it is answered.
//
// Invariants:
//   D-1. A request for a decision executes nothing: a tool that the platform would execute is denied by its name.
//   D-2. `decision: true` is returned only for a run that is durable and waits for its report.

import { type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { messageOf } from '../../core/contract/fault.js';
import { nameUuid } from '../../runtime/name-uuid.js';
import type { DetailedResponse } from '../../core/contract/run/response.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import { RunError, usageError } from '../../core/errors.js';
import { RULES } from '../../core/policy/verdict.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { Agents } from '../../runtime/agents/agents.js';
import type { ActionDecision, DecisionRequest } from '../../runtime/agents/decision-request.js';
import { toolCallPayload } from '../../runtime/agents/tool-call-payload.js';
import { DecisionRuns, type DecisionRunsParts } from './decision-runs.js';

export interface DecisionsParts extends DecisionRunsParts {
  readonly agents: DecisionRunsParts['agents'] & Pick<Agents, 'respond' | 'findStep'>;
  readonly ids: Ids;
}

const INPUT_BYTES_MAX = 262_144;
const TOOL_CHARS_MAX = 128;
const KEY_CHARS_MAX = 255;
/** How often a decision is begun again because its run has ended meanwhile. */
const TRIES_MAX = 4;
/** No service can register this tool, because its name has a hyphen. */
const NOT_EXTERNAL_TOOL = 'not-external';

export class Decisions {
  readonly #parts: DecisionsParts;
  readonly #runs: DecisionRuns;

  constructor(parts: DecisionsParts) {
    this.#parts = parts;
    this.#runs = new DecisionRuns(parts);
  }

  /**
   * Decides a request and records the decision. Nothing is executed.
   * @throws UsageError; RunError AGENT_BUSY, RUN_ENDED, IDEMPOTENCY_CONFLICT
   */
  async decide(request: DecisionRequest): Promise<ActionDecision> {
    checkRequest(request);
    for (let tries = 1; ; tries += 1) {
      const found = await this.#runs.find(request);
      if (found.state === 'denied') return deniedRun(found.run_id, found.rule);
      try {
        return await this.#propose(request, found.run_id, found.isExternalTool(request.tool));
      } catch (error) {
        // The run has used up its limits, or a person has cancelled it: the next decision is made in another one.
        if (!(error instanceof RunError) || error.code !== 'RUN_ENDED' || tries === TRIES_MAX) throw error;
      }
    }
  }

  async #propose({ tool, input, key }: DecisionRequest, run_id: string, isExternal: boolean): Promise<ActionDecision> {
    const { agents, ids } = this.#parts;
    // A key alone is the id of the request, so that another request with it is a conflict.
    const id = nameUuid(canonicalJson(key === undefined ? [run_id, ids.draw('inp_')] : [run_id, 'key', key]));
    const inputId = `decide:${id}`;
    const called = isExternal ? { tool, input } : { tool: NOT_EXTERNAL_TOOL, input: { tool, input } };
    const text = await agents.respond(run_id, toolCallPayload(id, called.tool, called.input), { inputId });
    const step = await agents.findStep(run_id, inputId);
    if (step === null) throw new RunError({ code: 'RUN_ENDED', message: `run ${run_id} has recorded no step` });
    return toDecision(step.trace, authorizedRun(parseOwnJson(text)), isExternal);
  }
}

/** @throws UsageError */
function checkRequest({ tool, input, key }: DecisionRequest): void {
  if (typeof tool !== 'string' || tool.length === 0 || tool.length > TOOL_CHARS_MAX)
    throw usageError(`tool: 1 to ${TOOL_CHARS_MAX} characters`);
  if (key !== undefined && (key.length === 0 || key.length > KEY_CHARS_MAX))
    throw usageError(`key: 1 to ${KEY_CHARS_MAX} characters`);
  let text: string;
  try {
    text = canonicalJson(input);
  } catch {
    throw usageError('input: a JSON object without values that JSON cannot represent');
  }
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX) throw usageError(`input: at most ${INPUT_BYTES_MAX} bytes as JSON`);
}

function toDecision(trace: StepTrace, call: string | null, isExternal: boolean): ActionDecision {
  const { run_id: run, step_index: step, rule_id: rule, error_code, cause } = trace;
  const at = { run, step, rule };
  if (call !== null)
    return { decision: true, pending: false, call, ...at, code: 'ALLOWED', message: 'Policy allows the action.' };
  const denied = { decision: false, pending: false, call: null, ...at } as const;
  if (!isExternal) return { ...denied, code: 'NOT_EXTERNAL', message: 'No external tool has the name of the action.' };
  if (rule === 'approval.required')
    return { ...denied, pending: true, code: 'APPROVAL_PENDING', message: 'A person has to approve the action.' };
  const code = error_code ?? 'POLICY_VIOLATION';
  return { ...denied, code, message: ruleText(rule) ?? messageOf({ code, cause: cause as null }) };
}

const ruleText = (rule: string | null): string | undefined =>
  rule !== null && Object.hasOwn(RULES, rule) ? RULES[rule as keyof typeof RULES] : undefined;

const deniedRun = (run: string, rule: string | null): ActionDecision => ({
  ...{ decision: false, pending: false, call: null, run, step: null, rule, code: 'RUN_DENIED' },
  message: ruleText(rule) ?? 'Policy denies every action of this caller in this lane and case.',
});

/** The run that waits for the report, if the response allows the call. */
function authorizedRun(response: unknown): string | null {
  const { result } = response as DetailedResponse;
  const { authorized, run_id } = (result ?? {}) as JsonObject;
  return authorized === true && typeof run_id === 'string' ? run_id : null;
}
