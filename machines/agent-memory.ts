// What an agent run is given and remembers, and what it is handed for each step.

import type { ApprovalBook } from '../src/contract/run/approval.js';
import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import type { Account, Limits } from '../src/contract/run/budget.js';
import type { AgentLink, SeenProposal } from '../src/contract/run/entry.js';
import type { Label } from '../src/contract/policy/labels.js';
import type { OverlayFact } from '../src/contract/policy/overlay.js';
import type { Person } from '../src/contract/person.js';
import type { Exposure } from '../src/contract/run/response.js';
import type { RunContext } from '../src/contract/run/run-context.js';
import type { TerminalState } from '../src/contract/run/run-state.js';
import { type RunMemory } from './run.js';

export interface AgentInput {
  readonly run: RunContext;
  /** Whom its actor is compared as when people vote; null in trees without behaviour flag 6. */
  readonly person: Person | null;
  readonly exposure: Exposure;
  readonly link: AgentLink;
  readonly idle_ms: number | null;
  readonly started_at: string;
  /** What it was given; null for one that was refused a budget, and is denied. */
  readonly budget: Limits | null;
  /** What the run was started with (C91). */
  readonly inputs?: readonly ArtifactRef[];
}

export interface AgentMemory extends RunMemory, Omit<AgentInput, 'started_at'> {
  readonly steps: number;
  readonly denials: number;
  /** Proposals that were refused before AUTHORIZE (C81). */
  readonly invalid: number;
  readonly mediated_runs: number;
  readonly active_at: string;
  readonly account: Account;
  /** Up to when the time of the run has been charged. */
  readonly charged_at: string;
  /** The join of everything that its steps have read. */
  readonly label: Label;
  readonly approvals: ApprovalBook;
  /** Requests whose outcome nobody knows: they must not be made again before that is settled. */
  readonly unsettled: readonly string[];
  /** The state in which the run will end, once something has decided that it will. */
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
  /** What the agent was asked with, where its caller records that. */
  readonly prompt: ArtifactRef | null;
  readonly overlay: OverlayFact | null;
}
