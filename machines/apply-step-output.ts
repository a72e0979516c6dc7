// The course of an agent run: what its steps cost it, what they leave behind, and which of them is the last.

import type { ApprovalBook } from '../src/contract/run/approval.js';
import type { Account } from '../src/contract/run/budget.js';
import type { TerminalState } from '../src/contract/run/run-state.js';
import { approvalRuleFor, consume, requestApproval, approvalStatus } from '../src/policy/approval/approval.js';
import { joinLabels } from '../src/policy/labels.js';
import type { Policy } from '../src/policy/policy.js';
import { invalidMax } from '../src/policy/limits.js';
import { type RunEnd } from '../src/run/audit-events.js';
import { charge } from '../src/run/budget.js';
import { withRefs } from './run-artifacts.js';
import { INVALID_PROPOSALS, RUN_INPUTS } from './flags.js';
import { denialEnd, failureEnd } from './run.js';
import type { ApprovalUsedEvent } from './step.js';
import type { StepOutput } from './step-memory.js';

import type { AgentMemory, ProposeEvent } from './agent-memory.js';

/** What a proposal costs before anything is done: the time since the last one, its bytes, and the tokens it took. */
export const chargeProposal = (
  { account, charged_at }: AgentMemory,
  { time, payload, tokens }: ProposeEvent,
): Account =>
  charge(account, {
    steps: 0,
    tool_calls: 0,
    wall_ms: Math.max(0, Date.parse(time) - Date.parse(charged_at)),
    bytes: payload.byte_size ?? 0,
    tokens: tokens ?? 0,
  });

/** Counts the step, and decides whether it was the last. What had asked the run to end before comes first. */
export function applyStepOutput(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { denials_per_run_max } = policy.limits;
  const invalid = context.invalid + (step.invalid ? 1 : 0);
  const denials = context.denials + (step.denied ? 1 : 0);
  const mediated_runs = context.mediated_runs + step.mediated;
  const outputs = policy.flags.has(RUN_INPUTS) ? withRefs(context.outputs ?? [], step.produced) : [];
  const update = { ...mergeStepOutput(context, step, policy), denials, invalid, mediated_runs, outputs };
  if (context.ending !== null) return update;
  if (step.finished) return { ...update, ...toEnding('completed', { reason: 'finished', error: null }) };
  if (denials >= denials_per_run_max)
    return { ...update, ...toEnding('denied', denialEnd({ rule_id: 'limit.denials' })) };
  if (policy.flags.has(INVALID_PROPOSALS) && invalid >= invalidMax(policy))
    return { ...update, ...toEnding('failed', TOO_MANY_INVALID_PROPOSALS) };
  return update;
}

/** C81: the agent does not speak the contract. Nothing was denied to it, so the run has failed. */
const TOO_MANY_INVALID_PROPOSALS = failureEnd(
  'INVALID_PROPOSALS',
  'Too many proposals of this run were not valid.',
  false,
);

/** What a step leaves behind for those that follow it. */
function mergeStepOutput(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { run, approvals, unsettled } = context;
  const requester = { requested_by: run.actor.actor_id, requester: context.person ?? undefined };
  const { requested, unknown } = step;
  const rule = requested === null ? undefined : approvalRuleFor(policy.approvals, requested.name);
  return {
    account: charge(context.account, step.spent),
    label: step.read === null ? context.label : joinLabels(context.label, step.read),
    approvals:
      requested === null || rule === undefined
        ? approvals
        : requestApproval(approvals, { ...requested, ...requester }, rule),
    unsettled: unknown === null ? unsettled : [...unsettled, unknown],
  };
}

/** Whatever people have said meanwhile: it was granted when the execution was decided, and is used up by that. */
export function consumeGrantedApproval(
  book: ApprovalBook,
  { digest, name, at }: ApprovalUsedEvent,
  policy: Policy,
): ApprovalBook {
  const rule = approvalRuleFor(policy.approvals, name);
  const granted = rule !== undefined && approvalStatus(book, digest, at, rule) === 'granted';
  return granted ? consume(book, digest, at, rule) : book;
}

/** The run will end so when its step has given its one response. */
export const toEnding = (ending: TerminalState, runEnd: RunEnd) => ({ ending, end: runEnd });
