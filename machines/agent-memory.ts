// What an agent run gets at its start, what it remembers, and its PROPOSE event.

import type { ApprovalBook } from '../src/core/contract/run/approval.js';
import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import type { Account, Limits } from '../src/core/contract/run/budget.js';
import type { AgentLink, SeenProposal } from '../src/core/contract/run/entry.js';
import type { Label } from '../src/core/contract/policy/labels.js';
import type { OverlayFact } from '../src/core/contract/policy/overlay.js';
import type { Person } from '../src/core/contract/person.js';
import type { Exposure } from '../src/core/contract/run/response.js';
import type { RunContext, TerminalState } from '../src/core/contract/run/run-context.js';
import { type RunMemory } from './run.js';
import type { RepeatableRequest } from './step-memory.js';

export interface AgentInput {
  readonly run: RunContext;
  /** The person that its actor is compared as when approvers vote; null for the platform's own agents. */
  readonly person: Person | null;
  readonly exposure: Exposure;
  readonly link: AgentLink;
  readonly idle_ms: number | null;
  readonly started_at: string;
  /** The agent's budget; null if the tree had none left: the run is then denied. */
  readonly budget: Limits | null;
  /** Prompts and configuration at the start of the run (C91). */
  readonly inputs?: readonly ArtifactRef[];
}

export interface AgentMemory extends RunMemory, Omit<AgentInput, 'started_at'> {
  readonly steps: number;
  readonly denials: number;
  /** Proposals that were rejected before AUTHORIZE (C81). */
  readonly invalid: number;
  readonly mediated_runs: number;
  readonly active_at: string;
  readonly account: Account;
  /** The time up to which the run's time has been charged. */
  readonly charged_at: string;
  /** The join of the labels of everything that its steps have read. */
  readonly label: Label;
  readonly approvals: ApprovalBook;
  /** Hashes of requests with an unknown outcome. The agent must not repeat them before the outcome is settled. */
  readonly unsettled: readonly string[];
  /** Requests that failed and may have had their effect: the same request has the same key (C95). */
  readonly repeatable?: readonly RepeatableRequest[];
  /** The ids of its runs that wait for the report of the caller (U-08). */
  readonly caller_runs?: readonly string[];
  /** The terminal state in which the run will end; null while its end is not decided. */
  readonly ending: TerminalState | null;
}

export interface ProposeEvent {
  readonly type: 'PROPOSE';
  readonly input_id: string;
  readonly time: string;
  readonly payload: ArtifactRef;
  /** Null for a payload over the limit, of which only a prefix was recorded (C80). */
  readonly raw: Uint8Array | null;
  readonly seen: SeenProposal | null;
  readonly recorded_response: string | null;
  readonly tokens: number | null;
  /** The prompt of this proposal, if the caller records it. */
  readonly prompt: ArtifactRef | null;
  readonly overlay: OverlayFact | null;
}
