// Decides a recorded decision under any policy, with the functions that the machines use. Its facts are the recorded
// ones. Everything that a policy sets (limits, lanes, budget grants, whether a lane has a case) is computed again.

import type { StepMemory } from '../../../machines/step-memory.js';
import { newStepMemory } from '../../../machines/step.js';
import {
  authorizeStep,
  isPrivileged,
  RUN_ENDING_DENIAL,
  requireGatherRequest,
  type Authorization,
  approvalSubject,
} from '../../core/step/authorization.js';
import { applyBallot, approvalPolicyFor } from '../../../machines/approval-ballot.js';
import { prepareHighRiskRun } from '../../../machines/high-risk-run.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { CounterQuery } from '../../core/contract/run/counter-fact.js';
import type { DecisionQuery } from '../../core/contract/policy/decision-points.js';
import type { GatheredFacts, GatherRequest } from '../../core/contract/run/effect.js';
import { stepDecisionOf } from '../../core/step/concluded-step.js';
import type { ApprovalRule } from '../../core/contract/run/approval.js';
import {
  approvalDecider,
  approvalRuleFor,
  awaitedRequests,
  effectiveRule,
  ruleOfEntry,
} from '../../core/policy/policy-features.js';
import { authorizeOrchestrator, authorizeAgentStart, authorizeWithOverlay } from '../../core/policy/authorize-run.js';
import type { Policy } from '../../core/policy/policy.js';
import { CHECK_PHASES, runCheckPhases } from '../../core/step/check-phases.js';
import { InvariantError } from '../../core/errors.js';
import {
  retriedAction,
  delegatedWrite,
  startedRunContext,
  accountUnder,
  agentContextUnder,
  exhaustedBudgetUnder,
} from './decided-request.js';
import {
  VOTER_DENIALS,
  type PolicyAnswer,
  type ApprovalFacts,
  type BallotFacts,
  type RecordedDecision,
  type RecordedVerdict,
  type StartedRun,
  type StepFacts,
} from './recorded-decision.js';

/** The other policy with the behaviour flags of the recorded tree, because flags belong to the machines. */
function withFlags(policy: Policy, flags: Policy['flags']): Policy {
  const known = policiesWithFlags.get(policy);
  if (known?.flags === flags) return known;
  const made = { ...policy, flags };
  policiesWithFlags.set(policy, made);
  return made;
}
const policiesWithFlags = new WeakMap<Policy, Policy>();

/** Decides under the policy `other`. @returns the verdict, or the reason why the recorded facts do not suffice */
export function decideUnderPolicy(
  { facts, policy: recorded }: Pick<RecordedDecision, 'facts' | 'policy'>,
  other: Policy,
): PolicyAnswer {
  const policy = other === recorded ? recorded : withFlags(other, recorded.flags);
  switch (facts.kind) {
    case 'orchestrator':
      return toVerdict(authorizeOrchestrator(facts.run));
    case 'agent': {
      const exhausted = exhaustedBudgetUnder(facts, policy);
      const { overlay } = facts.event;
      return toVerdict(authorizeAgentStart(agentContextUnder(facts, policy), { exhausted, overlay }, policy));
    }
    case 'step':
      return decideStepUnder(facts, recorded, policy).answer;
    case 'retry':
    case 'write': {
      const { run, ...requested } =
        facts.kind === 'retry' ? retriedAction(facts, policy) : delegatedWrite(facts, policy);
      return toVerdict(authorizeWithOverlay(run, { ...requested, overlay: facts.overlay }, policy));
    }
    case 'run':
      return decideRunUnder(facts, policy);
    case 'approval':
      return decideApprovalUnder(facts, recorded, policy);
    case 'ballot':
      return decideBallotUnder(facts, recorded, policy);
  }
}

const toVerdict = ({ decision, rule_id }: RecordedVerdict): RecordedVerdict => ({ decision, rule_id });
const denyVerdict = (rule_id: string): RecordedVerdict => ({ decision: 'deny', rule_id });

/** The decision of a step, and the approval rule by which it waits for people; null if it does not. */
export interface StepAnswer {
  readonly answer: PolicyAnswer;
  readonly rule: ApprovalRule | null;
}

const answerOnly = (answer: PolicyAnswer): StepAnswer => ({ answer, rule: null });

/** The facts that a decision asks for; null if they are not known. */
export type FactSource = (wanted: GatherRequest) => GatheredFacts | null;

const recordedFacts =
  ({ facts, gathered }: StepFacts): FactSource =>
  (wanted) =>
    gathered !== null && isSameGatherRequest(gathered, wanted) ? facts : null;

/** Decides a step by its payload. Decision tables, simulations and explanations all use this. */
export function decideStepUnder(
  recorded: StepFacts,
  recordedPolicy: Policy,
  policy: Policy,
  factsFor: FactSource = recordedFacts(recorded),
): StepAnswer {
  const { start, input } = recorded;
  if (input.raw === null && policy.limits.payload_bytes_max >= (input.payload.byte_size ?? 0)) return NOT_RECORDED;
  // A valid proposal is also valid under the same limits, so only the allowlist of actions is checked again.
  const isKnown = recorded.act !== null && hasSameInputRules(recordedPolicy, policy);
  const known = isKnown ? { action: recorded.act.action, args: recorded.act.args } : {};
  const agent = agentContextUnder(start, policy);
  const draft = { ...newStepMemory(input), ...known, agent, approvals: recorded.approvals };
  const step = runCheckPhases(draft, policy, isKnown ? LISTING_PHASES : CHECK_PHASES);
  if (step.fault !== null) return answerOnly(denyUnlessUnknown(step.fault.rule_id, recordedPolicy));
  if (step.replay_of !== null) return answerOnly(repeatedVerdict(input.seen?.outcome ?? 'SUCCESS'));
  const account = accountUnder(start, input.account.spent, policy);
  const started = authorizeStep(step, { kind: 'start', account }, policy);
  if (started.verdict !== null) return verdictUnlessAnswered(step, started, recordedPolicy, policy);
  if (!isPrivileged(step, policy)) {
    const mustWait = awaitedRequests(step, policy).length > 0;
    return answerOnly(mustWait ? { undecidable: 'finish.awaits_votes' } : { decision: 'allow', rule_id: null });
  }
  if (recorded.ending) return answerOnly(toVerdict(RUN_ENDING_DENIAL));
  const facts = factsFor(requireGatherRequest(step, policy));
  return facts === null
    ? answerOnly({ undecidable: 'facts.not_gathered' })
    : verdictUnlessAnswered(step, authorizeStep(step, { kind: 'facts', facts }, policy), recordedPolicy, policy);
}

/** C80: the other policy's limit would accept a payload of which only a prefix was recorded. */
const NOT_RECORDED = answerOnly({ undecidable: 'payload.not_recorded' });

const LISTING_PHASES = ['VALIDATE_ACTION'] as const;
const alikePolicies = new WeakMap<Policy, WeakMap<Policy, boolean>>();

/** Whether both policies parse payloads into the same proposals, apart from the actions that they list. */
function hasSameInputRules(one: Policy, other: Policy): boolean {
  let known = alikePolicies.get(one);
  if (known === undefined) alikePolicies.set(one, (known = new WeakMap()));
  const found =
    known.get(other) ??
    (one.catalogue === other.catalogue &&
      other.knobs.extensions_stage === 'authorize' &&
      canonicalJson({ limits: one.limits, knobs: one.knobs }) ===
        canonicalJson({ limits: other.limits, knobs: other.knobs }));
  known.set(other, found);
  return found;
}

/** The engine looks up an earlier response only if the recorded policy repeats responses. */
const denyUnlessUnknown = (rule_id: string, recordedPolicy: Policy): PolicyAnswer =>
  rule_id === 'proposal.response_not_at_hand' && recordedPolicy.knobs.duplicate_proposal_ids === 'reject'
    ? { undecidable: 'response.not_at_hand' }
    : denyVerdict(rule_id);

const repeatedVerdict = (outcome: Parameters<typeof stepDecisionOf>[0]): RecordedVerdict => ({
  decision: stepDecisionOf(outcome) === 'ALLOW' ? 'allow' : 'deny',
  rule_id: null,
});

/** Values of the same counters hold under another policy too: its conditions may compare them with another limit. */
const isSameGatherRequest = (one: GatherRequest, other: GatherRequest): boolean =>
  (one.case_id === other.case_id || other.case_id === null) &&
  (other.counters ?? []).every((wanted) => one.counters?.some((counter) => isSameCounter(counter, wanted)) === true) &&
  (other.decisions ?? []).every((wanted) => one.decisions?.some((query) => isSameQuery(query, wanted)) === true) &&
  one.portable_names === other.portable_names &&
  (one.usage || !other.usage) &&
  one.paths.length === other.paths.length &&
  one.paths.every((path, i) => path === other.paths[i]);

const isSameCounter = (one: CounterQuery, other: CounterQuery): boolean => canonicalJson(one) === canonicalJson(other);

/** How long an answer is awaited or kept changes nothing of what was asked. */
const isSameQuery = (one: DecisionQuery, other: DecisionQuery): boolean =>
  one.body === other.body &&
  (['name', 'protocol', 'url'] as const).every((member) => one.point[member] === other.point[member]);

/** An approval book applies to its own approval rule only. If it has a request under another rule, it cannot decide. */
function verdictUnlessAnswered(
  step: StepMemory,
  { verdict, digest, obligation }: Authorization,
  recordedPolicy: Policy,
  policy: Policy,
): StepAnswer {
  if (verdict === null) throw new InvariantError('a step was decided without a verdict');
  if (digest === null) return answerOnly(toVerdict(verdict));
  const subject = approvalSubject(step, policy);
  const rule = effectiveRule(subject, approvalRuleFor(policy.approvals, subject), obligation);
  const entry = step.approvals.entries.find((known) => known.digest === digest);
  const alike =
    entry === undefined ||
    recordedPolicy === policy ||
    (entry.name === subject && hasSameRule(ruleOfEntry(recordedPolicy.approvals, entry), rule));
  if (!alike) return answerOnly({ undecidable: 'approval.other_rule' });
  if (verdict.decision === 'allow' || rule === undefined) return answerOnly(toVerdict(verdict));
  return { answer: { ...toVerdict(verdict), quorum: rule.quorum }, rule };
}

const hasSameApprovalRule = (name: string, { approvals }: Policy, policy: Policy): boolean =>
  hasSameRule(approvalRuleFor(approvals, name), approvalRuleFor(policy.approvals, name));
const hasSameRule = (one: ApprovalRule | undefined, other: ApprovalRule | undefined): boolean =>
  canonicalJson(one ?? null) === canonicalJson(other ?? null);

function decideRunUnder(started: StartedRun, policy: Policy): PolicyAnswer {
  const { input, verdict } = prepareHighRiskRun(startedRunContext(started, policy), started.event, policy);
  if (input.approval === null) return toVerdict(verdict);
  return { ...denyVerdict('approval.required'), quorum: input.approval.rule.quorum };
}

/** A policy without an approval rule for this run would not have waited, so its verdict without approvals counts. */
function decideApprovalUnder(
  { of, approval, event }: ApprovalFacts,
  recordedPolicy: Policy,
  policy: Policy,
): PolicyAnswer {
  const overlay = event === null ? of.event.overlay : event.overlay;
  const run = startedRunContext(of, policy);
  const { input, verdict } = prepareHighRiskRun(run, { ...of.event, overlay }, policy);
  if (input.approval === null) return toVerdict(verdict);
  if (recordedPolicy !== policy && !hasSameRule(approval.rule, input.approval.rule)) {
    return { undecidable: 'approval.other_rule' };
  }
  if (event === null) return { ...denyVerdict('approval.expired'), quorum: input.approval.rule.quorum };
  const memory = { run, request: input.request, approval, verdict: null, end: null, done: NO_RESULT };
  const { update } = applyBallot(memory, event, policy);
  if (update.verdict != null) return toVerdict(update.verdict);
  return { ...denyVerdict('approval.required'), quorum: input.approval.rule.quorum };
}

const NO_RESULT = { result: null, result_ref: null, cause: null, denied_by: null, at: null };

function decideBallotUnder({ book, event, nth }: BallotFacts, recordedPolicy: Policy, policy: Policy): PolicyAnswer {
  const { ballot, overlay } = event;
  const answered = approvalDecider().countBallot(book, ballot, approvalPolicyFor(policy, ballot, overlay)).verdicts[
    nth
  ];
  if (answered === undefined) throw new InvariantError('a ballot has fewer answers than digests');
  const { digest, counted, rule_id } = answered;
  const entry = book.entries.find((known) => known.digest === digest);
  const alike =
    entry === undefined ||
    recordedPolicy === policy ||
    (entry.obligation === undefined && hasSameApprovalRule(entry.name, recordedPolicy, policy)) ||
    VOTER_DENIALS.has(rule_id);
  if (!alike) return { undecidable: 'approval.other_rule' };
  return { decision: counted && rule_id !== 'approval.rejected' ? 'allow' : 'deny', rule_id };
}
