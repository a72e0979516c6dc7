// A recorded decision taken again under any policy, by the same functions as the machines use. What the decision went
// by is as recorded; what is a policy's word (limits, lanes, grants of a budget, whether a lane has a case) is not.

import { afterVote, voters } from '../../../machines/approval-wait.js';
import { highRiskRun } from '../../../machines/high-risk.js';
import { writeAlone } from '../../../machines/mediated-act.js';
import { childOf } from '../../../machines/orchestrator.js';
import { exhaustedBy } from '../../../machines/step-attempts.js';
import { newMemory, type StepMemory } from '../../../machines/step-memory.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { GatherRequest } from '../../contract/effect.js';
import { decisionOf } from '../../contract/phase.js';
import { anotherAttempt, childContext, type RunContext } from '../../contract/run-context.js';
import { approvalRuleFor, vote } from '../../policy/approval.js';
import { judgeAct, judgeAgent } from '../../policy/judge.js';
import { authorizeOrchestrator, type PrivilegedRequest } from '../../policy/lane-decision.js';
import type { Policy } from '../../policy/policy.js';
import type { Verdict } from '../../policy/verdict.js';
import { decideByFacts, gatherFor, judgeLane, type Authorization } from '../../step/authorization.js';
import { advance, CHECK_PHASES } from '../../step/draft.js';
import { mediatedContext } from '../../step/mediated-request.js';
import { privilegedRequest } from '../../step/privilege.js';
import { InvariantError } from '../../errors.js';
import { accountUnder, agentUnder, exhaustedAt } from './agents-under.js';
import type {
  Act,
  Answer,
  Answered,
  Balloted,
  RecordedDecision,
  Retried,
  Said,
  StartedRun,
  StepTaken,
  Written,
} from './decision.js';

/** Another policy, with the behaviour flags of the tree that it is asked about: flags belong to the machines. */
function underFlags(policy: Policy, flags: Policy['flags']): Policy {
  const known = flagged.get(policy);
  if (known?.flags === flags) return known;
  const made = { ...policy, flags };
  flagged.set(policy, made);
  return made;
}
const flagged = new WeakMap<Policy, Policy>();

/** What `policy` says to it. @returns the verdict, or why the ledger does not tell */
export function decideAgain({ facts, policy: taken }: RecordedDecision, other: Policy): Answer {
  const policy = underFlags(other, taken.flags);
  switch (facts.kind) {
    case 'orchestrator':
      return said(authorizeOrchestrator(facts.run));
    case 'agent': {
      const exhausted = exhaustedAt(facts, policy);
      if (exhausted !== null) return { decision: 'deny', rule_id: `budget.${exhausted}` };
      return said(judgeAgent(agentUnder(facts, policy), facts.event.overlay, policy));
    }
    case 'step':
      return stepAgain(facts, taken, policy);
    case 'retry':
      return said(retryVerdict(facts, policy));
    case 'write':
      return said(writeVerdict(facts, policy));
    case 'run':
      return runAgain(facts, policy);
    case 'approval':
      return approvalAgain(facts, taken, policy);
    case 'ballot':
      return ballotAgain(facts, taken, policy);
  }
}

const said = ({ decision, rule_id }: Said): Said => ({ decision, rule_id });
const denied = (rule_id: string): Said => ({ decision: 'deny', rule_id });

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function stepAgain(taken: StepTaken, was: Policy, policy: Policy): Answer {
  const { start, input } = taken;
  if (input.raw === null && policy.limits.payload_bytes_max >= (input.payload.byte_size ?? 0)) return NOT_RECORDED;
  const step: Mutable<StepMemory> = newMemory(input);
  step.agent = agentUnder(start, policy);
  // What was a valid proposal then is one under the same limits: only whether its action is listed is asked anew.
  const known = taken.act !== null && readsAlike(was, policy);
  if (known) {
    step.action = taken.act.action;
    step.args = taken.act.args;
  }
  for (const phase of known ? LISTED : CHECK_PHASES) {
    Object.assign(step, advance(phase, step, policy));
    if (step.fault !== null) return unlessUnknown(step.fault.rule_id, was);
    if (step.replay_of !== null) return repeated(input.seen?.outcome ?? 'SUCCESS');
  }
  step.approvals = taken.approvals;
  const privileged = policy.catalogue.action(step.action ?? '')?.run_kind !== null;
  const exhausted = exhaustedBy(accountUnder(start, input.account.spent, policy), privileged ? 1 : 0);
  const lane = judgeLane(step, policy, exhausted);
  if (lane.verdict !== null) return unlessAnswered(step, lane, was, policy);
  if (!privileged) return { decision: 'allow', rule_id: null };
  if (taken.ending) return denied('lifecycle.run_ending');
  const { facts, gathered } = taken;
  const looked = facts !== null && gathered !== null && asksTheSame(gathered, gatherFor(step, policy));
  return looked
    ? unlessAnswered(step, decideByFacts(step, facts, policy), was, policy)
    : { undecidable: 'facts.not_gathered' };
}

/** C80: another limit would take a payload of which only a prefix was recorded. */
const NOT_RECORDED: Answer = { undecidable: 'payload.not_recorded' };

const LISTED = ['VALIDATE_ACTION'] as const;
const alike = new WeakMap<Policy, WeakMap<Policy, boolean>>();

/** Whether both policies take the same payloads for the same proposals, but for the actions that they list. */
function readsAlike(one: Policy, other: Policy): boolean {
  let known = alike.get(one);
  if (known === undefined) alike.set(one, (known = new WeakMap()));
  const found =
    known.get(other) ??
    (one.catalogue === other.catalogue &&
      other.knobs.extensions_stage === 'authorize' &&
      canonicalJson({ limits: one.limits, knobs: one.knobs }) ===
        canonicalJson({ limits: other.limits, knobs: other.knobs }));
  known.set(other, found);
  return found;
}

/** A response is looked up where policy wants it given again, and only there. */
const unlessUnknown = (rule_id: string, was: Policy): Answer =>
  rule_id === 'proposal.response_not_at_hand' && was.knobs.duplicate_proposal_ids === 'reject'
    ? { undecidable: 'response.not_at_hand' }
    : denied(rule_id);

const repeated = (outcome: Parameters<typeof decisionOf>[0]): Said => ({
  decision: decisionOf(outcome) === 'ALLOW' ? 'allow' : 'deny',
  rule_id: null,
});

const asksTheSame = (one: GatherRequest, other: GatherRequest): boolean =>
  one.case_id === other.case_id &&
  one.portable_names === other.portable_names &&
  (one.usage || !other.usage) &&
  one.paths.length === other.paths.length &&
  one.paths.every((path, i) => path === other.paths[i]);

/** A book was written under the rules of its time: where somebody has answered, it tells only of those. */
function unlessAnswered(step: StepMemory, { verdict, digest }: Authorization, was: Policy, policy: Policy): Answer {
  if (verdict === null) throw new InvariantError('a step was decided without a verdict');
  const entry = digest === null ? undefined : step.approvals.entries.find((known) => known.digest === digest);
  if (entry !== undefined && !asksPeopleAlike(entry.name, was, policy)) return { undecidable: 'approval.other_rule' };
  return said(verdict);
}

const asksPeopleAlike = (name: string, was: Policy, policy: Policy): boolean =>
  was === policy || ruleText(name, was) === ruleText(name, policy);
const ruleText = (name: string, { approvals }: Policy): string =>
  canonicalJson(approvalRuleFor(approvals, name) ?? null);

/** The first attempt's run, in the lane that the action has under this policy. */
const runOf = ({ start, action, run_id }: Act, policy: Policy): RunContext =>
  mediatedContext({ agent: agentUnder(start, policy), action, mediated_run_id: run_id }, policy);

function requestOf({ action, args, label }: Act, run: RunContext, { catalogue }: Policy): PrivilegedRequest {
  const definition = catalogue.action(action);
  if (definition === undefined) throw new InvariantError(`a run was mediated for ${action}, which does not exist`);
  return privilegedRequest(definition, args, run, catalogue, label);
}

function retryVerdict({ act, run_id, overlay }: Retried, policy: Policy): Verdict {
  const run = anotherAttempt(runOf(act, policy), run_id);
  return judgeAct(run, { action: act.action, privileged: requestOf(act, run, policy), overlay }, policy);
}

function writeVerdict({ of, run_id, parent_run_id, overlay }: Written, policy: Policy): Verdict {
  const { run, privileged, action } = delegated(of, parent_run_id, policy);
  const child = childContext(run, run_id, 'db_write');
  return judgeAct(child, { action, privileged: writeAlone(privileged, run.run_kind), overlay }, policy);
}

function delegated(of: Written['of'], run_id: string, policy: Policy) {
  if (of.kind === 'run') {
    const { run, request } = highRiskRun(startedUnder(of, policy), of.event, policy).input;
    return { run, privileged: request.privileged, action: of.event.act.action };
  }
  const { act } = of;
  if (act === null) throw new InvariantError('a step without a run has delegated a write');
  const first = runOf(act, policy);
  const run = of.kind === 'step' ? first : anotherAttempt(first, run_id);
  return { run, privileged: requestOf(act, run, policy), action: act.action };
}

const startedUnder = ({ from, event }: StartedRun, policy: Policy): RunContext =>
  childOf(from, event, event.run_kind, policy);

function runAgain(started: StartedRun, policy: Policy): Answer {
  const { input, verdict } = highRiskRun(startedUnder(started, policy), started.event, policy);
  return input.approval === null ? said(verdict) : denied('approval.required');
}

/** Without a rule of its own, the policy would not have let anybody wait: it says what it says without people. */
function approvalAgain({ of, approval, event }: Answered, was: Policy, policy: Policy): Answer {
  const { run_kind } = of.event;
  const overlay = event === null ? of.event.overlay : event.overlay;
  const run = startedUnder(of, policy);
  const { input, verdict } = highRiskRun(run, { ...of.event, overlay }, policy);
  if (approvalRuleFor(policy.approvals, run_kind) === undefined) return said(verdict);
  if (!asksPeopleAlike(run_kind, was, policy)) return { undecidable: 'approval.other_rule' };
  if (event === null) return denied('approval.expired');
  const memory = { run, request: input.request, approval, verdict: null, end: null, done: NOTHING_DONE };
  const { update } = afterVote(memory, event, policy);
  return update.verdict == null ? denied('approval.required') : said(update.verdict);
}

const NOTHING_DONE = { result: null, result_ref: null, cause: null, denied_by: null, at: null };

function ballotAgain({ book, event, nth }: Balloted, was: Policy, policy: Policy): Answer {
  const { ballot, overlay } = event;
  const answered = vote(book, ballot, voters(policy, ballot, overlay)).verdicts[nth];
  if (answered === undefined) throw new InvariantError('a ballot has fewer answers than digests');
  const { digest, counted, rule_id } = answered;
  const entry = book.entries.find((known) => known.digest === digest);
  const alike = entry === undefined || asksPeopleAlike(entry.name, was, policy) || STRANGERS.has(rule_id);
  if (!alike) return { undecidable: 'approval.other_rule' };
  return { decision: counted && rule_id !== 'approval.rejected' ? 'allow' : 'deny', rule_id };
}

/** Rules that look at the voter alone. */
const STRANGERS: ReadonlySet<string> = new Set([
  'approval.by_agent',
  'approval.role_unknown',
  'approval.not_a_person',
  'approval.other_run',
]);
