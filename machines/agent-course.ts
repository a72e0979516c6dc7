// The course of an agent run: what its steps cost it, what they leave behind, and which of them is the last.

import type { ApprovalBook } from '../src/contract/approval.js';
import type { Account } from '../src/contract/budget.js';
import type { TerminalState } from '../src/contract/run-state.js';
import { approvalRuleFor, consume, requestApproval, standing } from '../src/policy/approval.js';
import { join } from '../src/policy/labels.js';
import type { Policy } from '../src/policy/policy.js';
import { invalidMax } from '../src/policy/limits.js';
import { type RunEnd } from '../src/run/audit.js';
import { charge } from '../src/run/budget.js';
import { withRefs } from './artifacts-of-run.js';
import { INVALID_PROPOSALS, RUN_INPUTS } from './flags.js';
import { deniedBy, failedWith } from './run.js';
import type { ApprovalUsedEvent } from './step.js';
import type { StepOutput } from './step-memory.js';

import type { AgentMemory, ProposeEvent } from './agent-memory.js';

/** What a proposal costs before anything is done: the time since the last one, its bytes, and the tokens it took. */
export const chargedFor = ({ account, charged_at }: AgentMemory, { time, payload, tokens }: ProposeEvent): Account =>
  charge(account, {
    steps: 0,
    tool_calls: 0,
    wall_ms: Math.max(0, Date.parse(time) - Date.parse(charged_at)),
    bytes: payload.byte_size ?? 0,
    tokens: tokens ?? 0,
  });

/** Counts the step, and decides whether it was the last. What had asked the run to end before comes first. */
export function afterStep(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { denials_per_run_max } = policy.limits;
  const invalid = context.invalid + (step.invalid ? 1 : 0);
  const denials = context.denials + (step.denied ? 1 : 0);
  const mediated_runs = context.mediated_runs + step.mediated;
  const outputs = policy.flags.has(RUN_INPUTS) ? withRefs(context.outputs ?? [], step.produced) : [];
  const noted = { ...learnt(context, step, policy), denials, invalid, mediated_runs, outputs };
  if (context.ending !== null) return noted;
  if (step.finished) return { ...noted, ...end('completed', { reason: 'finished', error: null }) };
  if (denials >= denials_per_run_max) return { ...noted, ...end('denied', deniedBy({ rule_id: 'limit.denials' })) };
  if (policy.flags.has(INVALID_PROPOSALS) && invalid >= invalidMax(policy))
    return { ...noted, ...end('failed', TOO_MANY) };
  return noted;
}

/** C81: the agent does not speak the contract. Nothing was denied to it, so the run has failed. */
const TOO_MANY = failedWith('INVALID_PROPOSALS', 'Too many proposals of this run were not valid.', false);

/** What a step leaves behind for those that follow it. */
function learnt(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { run, approvals, unsettled } = context;
  const by = { requested_by: run.actor.actor_id, requester: context.person ?? undefined };
  const { requested, unknown } = step;
  const rule = requested === null ? undefined : approvalRuleFor(policy.approvals, requested.name);
  return {
    account: charge(context.account, step.spent),
    label: step.read === null ? context.label : join(context.label, step.read),
    approvals:
      requested === null || rule === undefined ? approvals : requestApproval(approvals, { ...requested, ...by }, rule),
    unsettled: unknown === null ? unsettled : [...unsettled, unknown],
  };
}

/** Whatever people have said meanwhile: it was granted when the execution was decided, and is used up by that. */
export function usedUp(book: ApprovalBook, { digest, name, at }: ApprovalUsedEvent, policy: Policy): ApprovalBook {
  const rule = approvalRuleFor(policy.approvals, name);
  const granted = rule !== undefined && standing(book, digest, at, rule) === 'granted';
  return granted ? consume(book, digest, at, rule) : book;
}

/** The run will end so when its step has given its one response. */
export const end = (ending: TerminalState, why: RunEnd) => ({ ending, end: why });
