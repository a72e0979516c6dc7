// Applies a step to its agent run: the budget that it used, the values that later steps get, and whether it was the
// last.

import type { ApprovalBook } from '../src/core/contract/run/approval.js';
import type { Account } from '../src/core/contract/run/budget.js';
import type { TerminalState } from '../src/core/contract/run/run-state.js';
import { approvalDecider, approvalRuleFor, effectiveRule, ruleOfEntry } from '../src/core/policy/approval-decider.js';
import { joinLabels } from '../src/core/policy/label-rules.js';
import type { Policy } from '../src/core/policy/policy.js';
import { invalidMax } from '../src/core/policy/limits.js';
import { type RunEnd } from '../src/core/run/audit-events.js';
import { charge } from '../src/core/run/budget-account.js';
import { withRefs } from './run-artifacts.js';
import { denialEnd, failureEnd } from './run.js';
import type { ApprovalUsedEvent } from './step.js';
import type { StepOutput } from './step-memory.js';

import type { AgentMemory, ProposeEvent } from './agent-memory.js';

/** Charges a proposal before its step starts: the time since the last charge, its bytes, and its tokens. */
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

/** Counts the step and decides whether the run ends. An end that was already decided takes precedence. */
export function applyStepOutput(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { denials_per_run_max } = policy.limits;
  const invalid = context.invalid + (step.invalid ? 1 : 0);
  const denials = context.denials + (step.denied ? 1 : 0);
  const mediated_runs = context.mediated_runs + step.mediated;
  const outputs = withRefs(context.outputs ?? [], step.produced);
  const update = { ...mergeStepOutput(context, step, policy), denials, invalid, mediated_runs, outputs };
  if (context.ending !== null) return update;
  if (step.finished) return { ...update, ...toEnding('completed', { reason: 'finished', error: null }) };
  if (denials >= denials_per_run_max)
    return { ...update, ...toEnding('denied', denialEnd({ rule_id: 'limit.denials' })) };
  if (invalid >= invalidMax(policy)) return { ...update, ...toEnding('failed', TOO_MANY_INVALID_PROPOSALS) };
  return update;
}

/** C81: the agent does not follow the contract. Policy denied nothing, so the run has failed. */
const TOO_MANY_INVALID_PROPOSALS = failureEnd(
  'INVALID_PROPOSALS',
  'Too many proposals of this run were not valid.',
  false,
);

/** Merges the step's results into the memory for later steps. */
function mergeStepOutput(context: AgentMemory, step: StepOutput, policy: Policy): Partial<AgentMemory> {
  const { run, approvals } = context;
  const requester = { requested_by: run.actor.actor_id, requester: context.person ?? undefined };
  const { requested } = step;
  const rule =
    requested === null
      ? undefined
      : effectiveRule(requested.name, approvalRuleFor(policy.approvals, requested.name), requested.obligation);
  return {
    account: charge(context.account, step.spent),
    label: step.read === null ? context.label : joinLabels(context.label, step.read),
    approvals:
      requested === null || rule === undefined
        ? approvals
        : approvalDecider().request(approvals, { ...requested, ...requester }, rule),
    ...mergeOpenRequests(context, step),
  };
}

/** Beyond this number, a request that can be repeated counts as one with an unknown outcome. */
const REPEATABLE_MAX = 64;

function mergeOpenRequests(context: AgentMemory, { unknown, repeat = null, succeeded = null }: StepOutput) {
  const unsettled = unknown === null ? context.unsettled : [...context.unsettled, unknown];
  const known = context.repeatable ?? [];
  if (succeeded !== null)
    return { unsettled, repeatable: known.filter(({ request_hash }) => request_hash !== succeeded) };
  if (repeat === null || known.some(({ request_hash }) => request_hash === repeat.request_hash)) return { unsettled };
  if (known.length >= REPEATABLE_MAX) return { unsettled: [...unsettled, repeat.request_hash] };
  return { unsettled, repeatable: [...known, repeat] };
}

/** Marks an approval as used. Later votes do not matter: the approval was granted when the execution was decided. */
export function consumeGrantedApproval(
  book: ApprovalBook,
  { digest, name, at }: ApprovalUsedEvent,
  policy: Policy,
): ApprovalBook {
  const entry = book.entries.find((known) => known.digest === digest);
  const rule = ruleOfEntry(policy.approvals, entry ?? { name });
  const isGranted = rule !== undefined && approvalDecider().status(book, digest, at, rule) === 'granted';
  return isGranted ? approvalDecider().consume(book, digest, at, rule) : book;
}

/** Sets the state in which the run ends after its step has returned its response. */
export const toEnding = (ending: TerminalState, runEnd: RunEnd) => ({ ending, end: runEnd });
