// The invariants of every response and every trace, as functions of the input and the output. They do not depend on the
// campaign, so that tests can show that each of them fails when it should.

import {
  ARGUMENT_CAUSES,
  EXECUTION_CAUSES,
  FAULTS,
  POLICY_CAUSES,
  type FaultCode,
} from '../../src/core/contract/fault.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { stepDecisionOf } from '../../src/core/step/concluded-step.js';
import { DecisionResponse, DetailedResponse } from '../../src/core/contract/run/response.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { isConforming } from '../../src/core/contract/validators.js';
import { textOf } from './bytes.js';

/** One payload that a live run accepted, and the text of its response. */
export interface Exchange {
  readonly payload: Uint8Array;
  readonly response: string;
}

/** Texts that no response may contain. */
export interface Secrets {
  /** Known only to the host: not even the content of a file may contain them. */
  readonly anywhere: readonly string[];
  /** Texts that agents may know and write themselves: searched for only where the system writes its own text. */
  readonly inOwnWords: readonly string[];
}

const KEYS = {
  detailed: ['proposal_id', 'action', 'outcome', 'result', 'error'],
  decision: ['proposal_id', 'action', 'decision', 'result'],
} as const;

const STACK = /\n\s+at |\\n\s+at |\b[A-Z][A-Za-z]*Error\b|\bError:|\.[cm]?[jt]s:\d+/;

interface Loose {
  readonly proposal_id: string | null;
  readonly action: string | null;
  readonly outcome?: string;
  readonly decision?: string;
  readonly result: Record<string, unknown> | null;
  readonly error?: { readonly error_code: FaultCode; readonly message: string } | null;
}

/** @returns the violations of a response; otherwise empty (S0-69 to S0-72, S2-10, S2-20, C01, C02) */
export function problemsOfResponse({ payload, response }: Exchange, secrets: Secrets): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(response);
  } catch {
    return ['the response is no JSON'];
  }
  const exposure = isConforming(DetailedResponse, value)
    ? 'detailed'
    : isConforming(DecisionResponse, value)
      ? 'decision'
      : null;
  if (exposure === null) return ['the response conforms to no schema of responses'];
  const body = value as Loose;
  const problems: string[] = [];
  if (Object.keys(body).join() !== KEYS[exposure].join())
    problems.push('the keys are not in the order of the contract');
  if (JSON.stringify(value) !== response) problems.push('the response is not compact JSON');
  const succeeded = exposure === 'detailed' ? body.outcome === 'SUCCESS' : body.result !== null;
  if (succeeded !== (body.result !== null)) problems.push('there is a result exactly on success, but not here');
  if (exposure === 'detailed' && succeeded !== (body.error === null)) problems.push('error is null exactly on success');
  if (body.error != null && !MESSAGES[body.error.error_code].has(body.error.message)) {
    problems.push('the message is not one of the constant ones of its code');
  }
  if (body.result !== null && !isResultOf(body.action, body.result))
    problems.push('the result is not that of the action');
  return [...problems, ...problemsOfEcho(payload, body, succeeded), ...problemsOfSecrets(response, body, secrets)];
}

/** The constant messages that each code may have (C01, C04, C08, C94). */
const MESSAGES = Object.fromEntries(
  Object.entries(FAULTS).map(([code, { message }]) => {
    if (code === 'POLICY_VIOLATION') return [code, new Set([message, ...Object.values(POLICY_CAUSES)])];
    if (code === 'INVALID_ARGS') return [code, new Set(Object.values(ARGUMENT_CAUSES))];
    const causes = Object.values(EXECUTION_CAUSES).map((cause) => cause.message);
    return [code, new Set(code === 'EXECUTION_ERROR' ? [message, ...causes] : [message])];
  }),
) as Record<FaultCode, ReadonlySet<string>>;

/** C09: the keys of each result. */
const RESULTS: Readonly<Record<string, string>> = {
  THINK: '',
  FINISH: 'response:string',
  READ_FILE: 'content:string',
  LIST_FILES: 'entries:object',
  WRITE_FILE: 'bytes_written:number',
  CREATE_DIRECTORY: '',
  DELETE_FILE: '',
  RENAME_FILE: '',
};

const isResultOf = (action: string | null, result: Record<string, unknown>): boolean =>
  action !== null &&
  Object.hasOwn(RESULTS, action) &&
  Object.entries(result)
    .map(([key, value]) => `${key}:${typeof value}`)
    .join() === RESULTS[action];

/** Id and action are echoes of the payload, and only a payload that every JSON reader accepts can succeed. */
function problemsOfEcho(payload: Uint8Array, body: Loose, succeeded: boolean): readonly string[] {
  const said = fieldsOf(payload);
  if (said === null) {
    const silent = body.proposal_id === null && body.action === null && !succeeded;
    return silent ? [] : ['a payload that is no JSON object was taken for a proposal'];
  }
  const problems: string[] = [];
  if (body.proposal_id !== null && body.proposal_id !== said['id']) problems.push('the id is not that of the payload');
  if (body.action !== null && body.action !== said['action']) problems.push('the action is not that of the payload');
  if (succeeded && Object.keys(said).sort().join() !== FIELDS) problems.push('what succeeded has not the five fields');
  return problems;
}
const FIELDS = 'action,args,id,reasoning,schema_version';

function fieldsOf(payload: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(textOf(payload) ?? '');
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** No host path, no stack, no rule id (C01), except where the agent sent it or a file contains it. */
function problemsOfSecrets(response: string, body: Loose, { anywhere, inOwnWords }: Secrets): readonly string[] {
  const { result } = body;
  const own = JSON.stringify({
    ...body,
    proposal_id: null,
    action: null,
    result: result === null ? null : Object.keys(result),
  });
  const shown = [
    ...anywhere.filter((secret) => response.includes(secret)),
    ...inOwnWords.filter((secret) => own.includes(secret)),
    ...(STACK.test(own) ? ['a stack'] : []),
  ];
  return shown.map((secret) => `the response shows ${secret}`);
}

/**
 * @returns what is wrong with the traces of one run, given what it was asked and what it answered, in order: one trace
 *   for each exchange, in unbroken order, of this payload and of this very response (S2-19, S2-20, S0-56, C38)
 */
export function problemsOfTraces(exchanges: readonly Exchange[], traces: readonly StepTrace[]): readonly Problem[] {
  const problems: Problem[] = [];
  if (traces.length !== exchanges.length) {
    const what = `${exchanges.length} payloads reached the run, and it has ${traces.length} traces`;
    problems.push({ at: Math.min(traces.length, exchanges.length - 1), what });
  }
  traces.slice(0, exchanges.length).forEach((trace, at) => {
    const exchange = exchanges[at]!;
    for (const what of problemsOfTrace(trace, at + 1, exchange)) problems.push({ at, what });
  });
  return problems;
}

export interface Problem {
  /** Which exchange of the run it is about. */
  readonly at: number;
  readonly what: string;
}

function problemsOfTrace(trace: StepTrace, step_index: number, { payload, response }: Exchange): readonly string[] {
  const { outcome, error_code, phase_failed_at, replay_of } = trace;
  const wrong: (readonly [boolean, string])[] = [
    [trace.step_index !== step_index, `the trace has step_index ${trace.step_index}, not ${step_index}`],
    [trace.payload.hash_sha256 !== sha256(payload), 'the trace is of another payload'],
    [trace.response_sha256 !== sha256(response), 'the trace has the hash of another response'],
    [trace.decision !== stepDecisionOf(outcome), 'outcome and decision of the trace contradict one another'],
    [(outcome === 'SUCCESS') !== (error_code === null), 'outcome and error code of the trace contradict one another'],
    [!phaseFits(trace), `the trace names the phase ${phase_failed_at} for ${outcome} (${error_code})`],
    [
      replay_of === null && (error_code === null) !== (trace.rule_id === null),
      'a fault has a rule, nothing else has one',
    ],
    [!saysTheSame(trace, response), 'trace and response tell different outcomes'],
  ];
  return wrong.flatMap(([is, what]) => (is ? [what] : []));
}

function phaseFits({ outcome, error_code, phase_failed_at, replay_of }: StepTrace): boolean {
  if (replay_of !== null || error_code === null) return phase_failed_at === null;
  return FAULTS[error_code].phase === phase_failed_at && FAULTS[error_code].outcome === outcome;
}

function saysTheSame({ outcome, decision, error_code, proposal_id, action }: StepTrace, response: string): boolean {
  const body = JSON.parse(response) as Loose;
  if (body.proposal_id !== proposal_id || recordedAction(body.action) !== action) return false;
  if ('decision' in body) return body.decision === decision;
  return body.outcome === outcome && (body.error?.error_code ?? null) === error_code;
}

/** C90: the trace has an unknown action as a hash. */
const recordedAction = (action: string | null): string | null =>
  action === null || Object.hasOwn(RESULTS, action) || OTHERS.includes(action) ? action : `sha256:${sha256(action)}`;
/** Actions that exist, and that the policies here do not list. */
const OTHERS: readonly string[] = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'];

/** The result of a step without what differs in every step: two payloads with one signature had the same effect. */
export function behaviourOf(policy: string, trace: StepTrace): string {
  const { outcome, error_code, cause, rule_id, phase_failed_at, action, args_summary, replay_of } = trace;
  const listed = action !== null && Object.hasOwn(RESULTS, action) ? action : typeof action;
  const shape = args_summary === null ? null : Object.keys(args_summary).sort().join();
  const parts = [outcome, error_code, cause, rule_id, phase_failed_at, listed, shape, trace.result !== null];
  return JSON.stringify([policy, ...parts, replay_of !== null, trace.mediated_run_id !== null]);
}
