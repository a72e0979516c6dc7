// Calls the service's code with a timeout and a size limit, validates its answer, and converts any error into an
// outcome.

import type { EffectResult } from '../../core/contract/run/effect.js';
import { type JsonObject, isJsonObject, scanJson } from '../../core/contract/json.js';
import { ActionFailedError, ActionNotExecutedError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import { PlatformError, type CallLog } from './call-log.js';
import { toolExplanationOf } from './tool-explanation.js';
import type { EffectContext, ReconcileOutcome } from './define-effects.js';

const RESULT_DEPTH_MAX = 64;

export interface Bounds {
  readonly timeout_ms: number;
  readonly result_bytes_max: number;
  /** Whether the answer matches its schema. */
  readonly isConforming: (answer: JsonObject) => boolean;
  /** Whether the call changes anything outside. A call without side effects never has an unknown outcome. */
  readonly hasSideEffects: boolean;
  /** Whether the call may be made again with the same key. Then an error that it throws is no unknown outcome (C95). */
  readonly isRepeatable: boolean;
}

type EffectCall = (context: EffectContext) => unknown;

export class BoundedCalls {
  readonly #inFlight = new Set<AbortController>();
  readonly #clock: Clock;
  readonly #log: Pick<CallLog, 'info' | 'error'>;

  constructor(clock: Clock, log: Pick<CallLog, 'info' | 'error'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * @returns `unknown` for anything except a valid answer, an `ActionNotExecutedError`, an `ActionFailedError`, or
   *   another error of a call that may be repeated
   */
  async run(call: EffectCall, context: Omit<EffectContext, 'signal'>, bounds: Bounds): Promise<EffectResult> {
    try {
      const answer = await this.#callWithTimeout(call, context, bounds.timeout_ms);
      const result = toBoundedJson(answer, bounds.result_bytes_max);
      if (result !== null && bounds.isConforming(result)) return { status: 'done', result };
      return this.#lostResult(context, bounds, new PlatformError(INVALID_ANSWER));
    } catch (error) {
      if (error instanceof ActionFailedError) return this.#failedResult(context, bounds, error);
      if (!(error instanceof ActionNotExecutedError)) return this.#lostResult(context, bounds, error);
      this.#log.info('an action was not executed', context.run_id, error);
      return {
        status: 'failed',
        cause: error.retryable ? 'NOT_EXECUTED' : 'REFUSED',
        explanation: toolExplanationOf(error),
      };
    }
  }

  /** Asks the service for the outcome of an action. Anything but a clear answer is `unknown`. */
  async reconcile(call: EffectCall, context: Omit<EffectContext, 'signal'>, bounds: Bounds): Promise<EffectResult> {
    try {
      const outcome = (await this.#callWithTimeout(call, context, bounds.timeout_ms)) as ReconcileOutcome;
      if (outcome === 'not_executed') return { status: 'failed', cause: 'INTERRUPTED' };
      const done = isJsonObject(outcome) ? toBoundedJson(outcome['done'], bounds.result_bytes_max) : null;
      if (done !== null && bounds.isConforming(done)) return { status: 'done', result: done };
    } catch (error) {
      this.#log.error('an action could not be reconciled', context.run_id, error);
    }
    return { status: 'unknown' };
  }

  /** It ended without success: its partial output is bounded like an answer. */
  #failedResult(
    { run_id }: Pick<EffectContext, 'run_id'>,
    { result_bytes_max }: Bounds,
    error: ActionFailedError,
  ): EffectResult {
    this.#log.info('an action of the service ended without success', run_id, error);
    const cause = error.retryable ? 'FAILED_FOR_NOW' : 'FAILED';
    const partial = toBoundedJson(error.partial, result_bytes_max);
    const failure = { status: 'failed', cause, explanation: toolExplanationOf(error) } as const;
    return partial === null ? failure : { ...failure, partial };
  }

  #lostResult(
    { run_id }: Pick<EffectContext, 'run_id'>,
    { hasSideEffects: changes, isRepeatable }: Bounds,
    error: unknown,
  ): EffectResult {
    this.#log.error('an action of the service failed', run_id, error);
    // A call that timed out may still be running, and an invalid answer came from a call that may have succeeded.
    if (changes && isRepeatable && !(error instanceof PlatformError)) return { status: 'failed', cause: 'REPEATABLE' };
    if (changes) return { status: 'unknown' };
    return { status: 'failed', cause: error instanceof CallTimeoutError ? 'TIMEOUT' : 'IO_ERROR' };
  }

  /** Called when the process is about to end: aborts calls in flight and ignores their answers. */
  abort(): void {
    for (const call of this.#inFlight) call.abort(new CallTimeoutError());
  }

  async #callWithTimeout(
    call: EffectCall,
    context: Omit<EffectContext, 'signal'>,
    timeout_ms: number,
  ): Promise<unknown> {
    const controller = new AbortController();
    this.#inFlight.add(controller);
    let cancelTimer = (): void => undefined;
    const timeout = new Promise<never>((_resolve, reject) => {
      cancelTimer = this.#clock.wake(this.#clock.now() + timeout_ms, () => {
        const timeoutError = new CallTimeoutError();
        reject(timeoutError);
        controller.abort(timeoutError);
      });
    });
    try {
      return await Promise.race([
        Promise.resolve().then(() => call({ ...context, signal: controller.signal })),
        timeout,
      ]);
    } finally {
      cancelTimer();
      this.#inFlight.delete(controller);
    }
  }
}

const INVALID_ANSWER = 'the answer is no object that conforms to its schema, or it is too large';

/** Private to this file: the call has timed out. */
class CallTimeoutError extends PlatformError {
  constructor() {
    super('the time of the call is over');
  }
}

/**
 * Parses the text of the answer with the strict scanner: no prototypes, no getters, and nothing that can still change.
 */
function toBoundedJson(answer: unknown, bytes_max: number): JsonObject | null {
  if (typeof answer !== 'object' || answer === null) return null;
  const text = textOf(answer);
  if (text === null || Buffer.byteLength(text) > bytes_max) return null;
  const scanned = scanJson(text, RESULT_DEPTH_MAX);
  return scanned.ok && isJsonObject(scanned.value) ? scanned.value : null;
}

/** Null for what JSON cannot express: a cycle, a bigint, a `toJSON` that throws. */
function textOf(answer: object): string | null {
  try {
    const text: unknown = JSON.stringify(answer);
    return typeof text === 'string' ? text : null;
  } catch {
    return null;
  }
}
