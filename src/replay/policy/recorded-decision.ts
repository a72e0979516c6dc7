// A decision as a ledger holds it: what was decided, and everything that it was decided by. The facts are those of the
// moment, and none of them is a policy's word, so that another policy can be asked with them.

import type { RequiredApproval, VoteEvent } from '../../../machines/mediated-memory.js';
import type { OrchestratorMemory, StartAgentEvent } from '../../../machines/orchestrator.js';
import type { StartRunEvent } from '../../../machines/high-risk-run.js';
import type { StepInput } from '../../../machines/step-memory.js';
import type { ApprovalBook } from '../../contract/run/approval.js';
import type { Amounts } from '../../contract/run/budget.js';
import type { GatherRequest, SandboxFacts } from '../../contract/run/effect.js';
import type { JsonObject } from '../../contract/json.js';
import type { Label } from '../../contract/policy/labels.js';
import type { OverlayFact } from '../../contract/policy/overlay.js';
import type { RunContext } from '../../contract/run/run-context.js';
import type { Policy } from '../../policy/policy.js';

/** What was said. No rule where nothing had to be granted: a thought, or the response to a repeated proposal. */
export interface RecordedVerdict {
  readonly decision: 'allow' | 'deny';
  readonly rule_id: string | null;
}

/** Why a decision cannot be taken again: the ledger does not hold what the other policy would go by. */
export const UNDECIDABLE = {
  'facts.not_gathered': 'It would look at the sandbox, and nobody looked there, or not in that way.',
  'approval.other_rule': 'People answered under another approval rule.',
  'payload.not_recorded': 'It was over the limit of then, and only its first bytes were recorded.',
  'response.not_at_hand': 'It would give an earlier response again, and whether that was at hand is not recorded.',
  'policy.invalid': 'It is no valid policy over the actions, tools and targets that the run tree has registered.',
} as const satisfies Record<string, string>;
export type UndecidableReason = keyof typeof UNDECIDABLE;

export type PolicyAnswer = RecordedVerdict | { readonly undecidable: UndecidableReason };

/** The start of an agent run. */
export interface AgentStart {
  readonly kind: 'agent';
  readonly parent: RunContext;
  /** How many child runs there were before it. */
  readonly children: number;
  readonly event: Pick<StartAgentEvent, 'actor' | 'person' | 'role_id' | 'lane_id' | 'budget' | 'overlay'>;
  /** What the tree had used up by then, and the agents that were at work. */
  readonly spent: Amounts;
  readonly siblings: readonly AgentStart[];
}

/** A promotion, an export, or a check of a session. */
export interface StartedRun {
  readonly kind: 'run';
  readonly from: Pick<OrchestratorMemory, 'run' | 'children'>;
  readonly event: StartRunEvent;
}

/** One proposal, from its bytes to the verdict on it. */
export interface StepFacts {
  readonly kind: 'step';
  readonly input: StepInput;
  readonly start: AgentStart;
  /** As it counted when the verdict fell. */
  readonly approvals: ApprovalBook;
  /** What was asked about the sandbox, and the answer; null where nobody asked, or it never came. */
  readonly gathered: GatherRequest | null;
  readonly facts: SandboxFacts | null;
  /** Called off before the answer came. */
  readonly ending: boolean;
  /** What was proposed; null where it came to no mediated run. */
  readonly act: MediatedAct | null;
}

/** What an agent does through a mediated run. */
export interface MediatedAct {
  readonly start: AgentStart;
  readonly agent: RunContext;
  readonly action: string;
  readonly args: JsonObject;
  readonly label: Label;
  /** The run of the first attempt. */
  readonly run_id: string;
}

/** Another attempt at what has failed. */
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
  /** Of the run that delegates. */
  readonly parent_run_id: string;
  readonly overlay: OverlayFact | null;
}

/** The end of waiting for people's approval: a ballot that decided, or time that ran out. */
export interface ApprovalFacts {
  readonly kind: 'approval';
  readonly of: StartedRun;
  readonly approval: RequiredApproval;
  readonly event: VoteEvent | null;
}

/** Somebody's answer to one request. */
export interface BallotFacts {
  readonly kind: 'ballot';
  readonly book: ApprovalBook;
  readonly event: VoteEvent;
  /** Which of the ballot's digests. */
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
  /** What was to be done: an action, `promotion`, `export`, or the start of a run. */
  readonly action: string;
  readonly said: RecordedVerdict;
  readonly facts: DecisionFacts;
  /** The policy that it was taken under. */
  readonly policy: Policy;
}
