import { usageError } from '../../core/errors.js';
import { CONVERSATION_BYTES_MIN } from './conversation.js';
import type { RunAgentOptions } from '../../runtime/agents/agent-loop.js';
import type { LoopLimits } from './loop-limits.js';

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
