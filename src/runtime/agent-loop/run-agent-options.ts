import { UsageError } from '../../errors.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import { CONVERSATION_BYTES_MIN } from './conversation.js';
import type { LoopLimits } from './loop-limits.js';

export interface RunAgentOptions {
  /** What the agent shall do, in words. At most 1 MiB. */
  readonly task?: string;
  /** Proposals. Default 50. */
  readonly maxSteps?: number;
  /** Denials, all together. Default 10. The policy has a limit of its own (`denials_per_run_max`). */
  readonly maxDenials?: number;
  /** Proposals in a row that are none. Default 5. */
  readonly maxInvalid?: number;
  /**
   * Tokens, as the agent reports them; the turn that passes the limit is the last one. Default: none of the loop's own.
   * Budgets of the policy and of the run hold in any case.
   */
  readonly maxTokens?: number;
  /** How long the agent may take for one proposal, in milliseconds. Default 5 minutes. */
  readonly turnMs?: number;
  /** How much of the earlier conversation the agent is told again, in bytes. Default 512 KiB. */
  readonly conversationBytes?: number;
  /** Stops the loop at once. A run that is cancelled then still ends after the step that is under way in it. */
  readonly signal?: AbortSignal;
  /** What becomes of the run of an agent that did not finish. Default: it is cancelled, with its tree. */
  readonly whenStopped?: 'cancel' | 'leave';
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export interface LoopSettings extends LoopLimits {
  readonly task: string | null;
  readonly turnMs: number;
  readonly conversationBytes: number;
  readonly whenStopped: 'cancel' | 'leave';
}

const TASK_BYTES_MAX = 1_048_576;
const STEPS_MAX = 100_000;
const TURN_MS_MAX = 86_400_000;
const CONVERSATION_BYTES_MAX = 16_777_216;

/** The options with their defaults. @throws UsageError for one out of range */
export function resolveLoopSettings(options: RunAgentOptions): LoopSettings {
  const { task = null, whenStopped = 'cancel' } = options;
  if (task !== null && (typeof task !== 'string' || Buffer.byteLength(task) > TASK_BYTES_MAX)) {
    throw usageError(`task: a text of at most ${TASK_BYTES_MAX} bytes`);
  }
  // Callers without types pass anything.
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

const usageError = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
