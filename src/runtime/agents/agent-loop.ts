// The loop that lets an agent work in its run: its options, and what it reports.

import type { Agent } from '../../engine/ports/agent-exchange.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { AgentRun, RunEnding } from './agent-run.js';
import type { RunRequest } from './run-requests.js';

/** Lets agents work in their runs. */
export interface AgentLoops {
  /** Runs an agent until it finishes or is stopped. @throws UsageError; RunError CLOSED, AGENT_BUSY; LedgerError */
  run(agent: Agent, run: AgentRun, options: RunAgentOptions): Promise<AgentLoopReport>;
}

/** Options of one agent loop: the task, the limits, and how the loop stops. */
export interface RunAgentOptions {
  /** The task of the agent, in words. At most 1 MiB. */
  readonly task?: string;
  /** Limit of proposals. Default 50. */
  readonly maxSteps?: number;
  /** Limit of denials in total. Default 10. The policy has a limit of its own (`denials_per_run_max`). */
  readonly maxDenials?: number;
  /** Limit of consecutive invalid proposals. Default 5. */
  readonly maxInvalid?: number;
  /**
   * Limit of tokens, as the agent reports them; the turn that exceeds it is the last one. Default: no limit of the
   * loop. Budgets of the policy and of the run apply in any case.
   */
  readonly maxTokens?: number;
  /** Timeout of one turn of the agent, in milliseconds. Default 5 minutes. */
  readonly turnMs?: number;
  /** How much of the earlier conversation is sent to the agent again, in bytes. Default 512 KiB. */
  readonly conversationBytes?: number;
  /** Stops the loop at once. A run that is then cancelled still ends after its step in flight. */
  readonly signal?: AbortSignal;
  /**
   * Called when the loop begins to wait for the votes on a request for approval: the place to notify people. It must
   * not throw.
   */
  readonly onRequest?: (request: RunRequest) => void;
  /**
   * How long the loop waits for the votes on one request, in milliseconds. It then stops with `approval_pending`, and
   * the run stays active. Default: until the request expires.
   */
  readonly waitMs?: number;
  /** What happens to the run if the agent did not finish. Default: it is cancelled, with its tree. */
  readonly whenStopped?: 'cancel' | 'leave';
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export type LimitReason = 'max_steps' | 'max_denials' | 'max_invalid' | 'max_tokens' | 'tokens_unreported';

/** Why a loop stopped. */
export type StopReason =
  | 'finished' // the agent proposed FINISH, and that succeeded
  | 'run_ended' // the run ended otherwise: denied, cancelled by another caller, failed
  | 'approval_pending' // the votes on a request did not come within `waitMs`; the run stays active
  | LimitReason
  | 'turn_timeout' // the agent did not answer in time
  | 'agent_failed' // the agent threw, or returned a value that cannot be a proposal
  | 'aborted'; // the caller's signal

/** The result of a loop. */
export interface AgentLoopReport {
  readonly reason: StopReason;
  /** The final answer in the agent's FINISH; null if it did not finish. */
  readonly answer: string | null;
  /** How many proposals were answered, denied and invalid, and their cost; the cost of `unreported` ones is unknown. */
  readonly counts: LoopCounts;
  /** How the run ended; null if it was left running. */
  readonly ending: RunEnding | null;
  /** For `agent_failed`, the error that the agent threw; else null. It may contain the agent's input. */
  readonly error: unknown;
}

/** Counts of a loop so far. */
export interface LoopCounts {
  readonly steps: number;
  readonly denials: number;
  readonly invalid: number;
  readonly invalid_in_a_row: number;
  readonly tokens: number;
  /** Proposals whose tokens the agent did not report. */
  readonly unreported: number;
}
