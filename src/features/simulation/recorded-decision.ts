// A recorded decision and the facts that it depended on. The facts have the values at the time of the decision, and no
// policy sets any of them, so another policy can decide with the same facts.

import type { RequiredApproval, VoteEvent } from '../../../machines/mediated-memory.js';
import type { OrchestratorMemory, StartAgentEvent } from '../../../machines/orchestrator.js';
import type { StartRunEvent } from '../../../machines/high-risk-run.js';
import type { StepInput } from '../../../machines/step-memory.js';
import type { ApprovalBook } from '../../core/contract/run/approval.js';
import type { Amounts } from '../../core/contract/run/budget.js';
import type { GatheredFacts, GatherRequest } from '../../core/contract/run/effect.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { Label } from '../../core/contract/policy/labels.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { Policy } from '../../core/policy/policy.js';

/** A verdict. It has no rule if the policy had nothing to grant, as for THINK or a repeated proposal. */
export interface RecordedVerdict {
  readonly decision: 'allow' | 'deny';
  readonly rule_id: string | null;
  /** The number of people who have to approve; absent if the decision asks for no approval. */
  readonly quorum?: number;
}

/** Why another policy cannot decide: the ledger lacks facts that this policy needs. */
export const UNDECIDABLE = {
  'facts.not_gathered':
    'The decision needs facts of the sandbox or counters that the recorded run did not gather, or gathered otherwise.',
  'approval.other_rule': 'The votes were given under another approval rule.',
  'finish.awaits_votes': 'FINISH would wait for the votes on the pending requests of its run.',
  'payload.not_recorded': 'The payload exceeded the limit of its time, and only its first bytes were recorded.',
  'response.not_at_hand':
    'The step would return an earlier response again, and whether that was available is not recorded.',
  'policy.invalid': 'The policy is invalid for the actions, tools and targets that the run tree has registered.',
} as const satisfies Record<string, string>;
export type UndecidableReason = keyof typeof UNDECIDABLE;

export type PolicyAnswer = RecordedVerdict | { readonly undecidable: UndecidableReason };

/** Denials of a ballot that depend on the voter alone, not on the approval rule. */
export const VOTER_DENIALS: ReadonlySet<string | null> = new Set([
  'approval.by_agent',
  'approval.role_unknown',
  'approval.not_a_person',
  'approval.other_run',
]);

/** The start of an agent run. */
export interface AgentStart {
  readonly kind: 'agent';
  readonly parent: RunContext;
  /** The number of child runs that the parent had before. */
  readonly children: number;
  readonly event: Pick<StartAgentEvent, 'actor' | 'person' | 'role_id' | 'lane_id' | 'budget' | 'overlay'>;
  /** The amounts that the tree had spent by then, and the agents that were live. */
  readonly spent: Amounts;
  readonly siblings: readonly AgentStart[];
}

/** A promotion, an export, an act of an operator, or a check of a session. */
export interface StartedRun {
  readonly kind: 'run';
  readonly from: Pick<OrchestratorMemory, 'run' | 'children'>;
  readonly event: StartRunEvent;
}

/** One proposal, from its bytes to its verdict. */
export interface StepFacts {
  readonly kind: 'step';
  readonly input: StepInput;
  readonly start: AgentStart;
  /** The approval book at the time of the verdict. */
  readonly approvals: ApprovalBook;
  /** The query of the sandbox and its result; each null if it does not exist. */
  readonly gathered: GatherRequest | null;
  readonly facts: GatheredFacts | null;
  /** Whether the step was cancelled before the facts arrived. */
  readonly ending: boolean;
  /** The proposed action; null if the step has no mediated run. */
  readonly act: MediatedAct | null;
}

/** An action that an agent requests through a mediated run. */
export interface MediatedAct {
  readonly start: AgentStart;
  readonly agent: RunContext;
  readonly action: string;
  readonly args: JsonObject;
  readonly label: Label;
  /** The run of the first attempt. */
  readonly run_id: string;
}

/** A retry of a failed attempt. */
export interface RetryFacts {
  readonly kind: 'retry';
  readonly act: MediatedAct;
  readonly run_id: string;
  readonly overlay: OverlayFact | null;
}

/** The storage effect of a run that delegates it. */
export interface WriteFacts {
  readonly kind: 'write';
  readonly of: StepFacts | RetryFacts | StartedRun;
  readonly run_id: string;
  /** The id of the delegating run. */
  readonly parent_run_id: string;
  readonly overlay: OverlayFact | null;
}

/** The end of a pending approval: a ballot that decided it, or its expiry if `event` is null. */
export interface ApprovalFacts {
  readonly kind: 'approval';
  readonly of: StartedRun;
  readonly approval: RequiredApproval;
  readonly event: VoteEvent | null;
}

/** One person's vote on one request. */
export interface BallotFacts {
  readonly kind: 'ballot';
  readonly book: ApprovalBook;
  readonly event: VoteEvent;
  /** The index among the ballot's digests. */
  readonly nth: number;
}

export interface OpeningFacts {
  readonly kind: 'orchestrator';
  readonly run: RunContext;
}

export type DecisionFacts =
  AgentStart | StartedRun | StepFacts | RetryFacts | WriteFacts | ApprovalFacts | BallotFacts | OpeningFacts;

/** One decision of a ledger. */
export interface RecordedDecision {
  readonly tree_id: string;
  readonly seq: number;
  readonly log_index: number;
  readonly run_id: string;
  readonly actor_id: string;
  readonly role_id: string;
  readonly lane_id: string | null;
  /** The subject of the decision: an action, `promotion`, `export`, or the start of a run. */
  readonly action: string;
  readonly said: RecordedVerdict;
  readonly facts: DecisionFacts;
  /** The policy that decided. */
  readonly policy: Policy;
}
