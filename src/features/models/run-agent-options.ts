import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import { CONVERSATION_BYTES_MIN } from './conversation.js';
import type { RunRequest } from '../../runtime/agents/run-requests.js';
import type { LoopLimits } from './loop-limits.js';

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

export interface LoopSettings extends LoopLimits {
  readonly task: string | null;
  readonly turnMs: number;
  readonly conversationBytes: number;
  /** Null for no limit. */
  readonly waitMs: number | null;
  readonly whenStopped: 'cancel' | 'leave';
}

const TASK_BYTES_MAX = 1_048_576;
const STEPS_MAX = 100_000;
const TURN_MS_MAX = 86_400_000;
/** A year, as long as a request may be open. */
const WAIT_MS_MAX = 31_536_000_000;
const CONVERSATION_BYTES_MAX = 16_777_216;

/**
 * The options with their defaults.
 * @throws UsageError for one out of range
 */
export function resolveLoopSettings(options: RunAgentOptions): LoopSettings {
  const { task = null, whenStopped = 'cancel' } = options;
  if (task !== null && (typeof task !== 'string' || Buffer.byteLength(task) > TASK_BYTES_MAX)) {
    throw usageError(`task: a text of at most ${TASK_BYTES_MAX} bytes`);
  }
  // Callers without types may pass any value.
  if (!['cancel', 'leave'].includes(whenStopped)) throw usageError('whenStopped: cancel or leave');
  return {
    task,
    whenStopped,
    maxSteps: validateWholeNumber('maxSteps', options.maxSteps ?? 50, 1, STEPS_MAX),
    maxDenials: validateWholeNumber('maxDenials', options.maxDenials ?? 10, 1, STEPS_MAX),
    maxInvalid: validateWholeNumber('maxInvalid', options.maxInvalid ?? 5, 1, STEPS_MAX),
    maxTokens:
      options.maxTokens === undefined
        ? null
        : validateWholeNumber('maxTokens', options.maxTokens, 1, Number.MAX_SAFE_INTEGER),
    waitMs: options.waitMs === undefined ? null : validateWholeNumber('waitMs', options.waitMs, 0, WAIT_MS_MAX),
    turnMs: validateWholeNumber('turnMs', options.turnMs ?? 300_000, 1, TURN_MS_MAX),
    conversationBytes: validateWholeNumber(
      'conversationBytes',
      options.conversationBytes ?? 524_288,
      CONVERSATION_BYTES_MIN,
      CONVERSATION_BYTES_MAX,
    ),
  };
}

function validateWholeNumber(name: string, value: number, minimum: number, maximum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return value;
  throw usageError(`${name}: a whole number from ${minimum} to ${maximum}`);
}
