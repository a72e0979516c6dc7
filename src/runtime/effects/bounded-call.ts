// A call of the service's code: bounded in time, its answer bounded in size and held against its schema, and whatever
// it throws turned into what is known of the outcome.

import type { EffectResult } from '../../contract/effect.js';
import type { JsonObject } from '../../contract/json.js';
import { isJsonObject } from '../../contract/json.js';
import { Failed, NotExecuted } from '../../errors.js';
import type { Clock } from '../../ports/clock.js';
import { scanJson } from '../../step/json-scanner.js';
import { OwnError, type CallLog } from './call-log.js';
import type { EffectContext, Reconciled } from './define.js';

const RESULT_DEPTH_MAX = 64;

export interface Bounds {
  readonly timeout_ms: number;
  readonly result_bytes_max: number;
  /** Does the answer conform? */
  readonly conforms: (answer: JsonObject) => boolean;
  /** Whether calling it changes anything outside. Of what changes nothing, no outcome is ever unknown. */
  readonly changes: boolean;
}

type Call = (context: EffectContext) => unknown;

export class BoundedCalls {
  readonly #underWay = new Set<AbortController>();
  readonly #clock: Clock;
  readonly #log: Pick<CallLog, 'info' | 'error'>;

  constructor(clock: Clock, log: Pick<CallLog, 'info' | 'error'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @returns `unknown` for anything but an answer as it should be, or a `NotExecuted` */
  async perform(call: Call, context: Omit<EffectContext, 'signal'>, bounds: Bounds): Promise<EffectResult> {
    try {
      const answer = await this.#inTime(call, context, bounds.timeout_ms);
      const result = boundedJson(answer, bounds.result_bytes_max);
      if (result !== null && bounds.conforms(result)) return { status: 'done', result };
      return this.#lost(context, bounds, new OwnError(NO_ANSWER));
    } catch (error) {
      if (error instanceof Failed) return this.#failed(context, bounds, error);
      if (!(error instanceof NotExecuted)) return this.#lost(context, bounds, error);
      this.#log.info('an action was not executed', context.run_id, error);
      return { status: 'failed', cause: error.retryable ? 'NOT_EXECUTED' : 'REFUSED' };
    }
  }

  /** Asks the service what became of an act. Anything but a clear answer is `unknown`. */
  async reconcile(call: Call, context: Omit<EffectContext, 'signal'>, bounds: Bounds): Promise<EffectResult> {
    try {
      const found = (await this.#inTime(call, context, bounds.timeout_ms)) as Reconciled;
      if (found === 'not_executed') return { status: 'failed', cause: 'INTERRUPTED' };
      const done = isJsonObject(found) ? boundedJson(found['done'], bounds.result_bytes_max) : null;
      if (done !== null && bounds.conforms(done)) return { status: 'done', result: done };
    } catch (error) {
      this.#log.error('an action could not be reconciled', context.run_id, error);
    }
    return { status: 'unknown' };
  }

  /** It has ended, and not well: what it had made until then is bounded like an answer. */
  #failed({ run_id }: Pick<EffectContext, 'run_id'>, { result_bytes_max }: Bounds, error: Failed): EffectResult {
    this.#log.info('an action of the service ended without success', run_id, error);
    const cause = error.retryable ? 'FAILED_FOR_NOW' : 'FAILED';
    const partial = boundedJson(error.partial, result_bytes_max);
    return partial === null ? { status: 'failed', cause } : { status: 'failed', cause, partial };
  }

  #lost({ run_id }: Pick<EffectContext, 'run_id'>, { changes }: Bounds, error: unknown): EffectResult {
    this.#log.error('an action of the service failed', run_id, error);
    if (changes) return { status: 'unknown' };
    return { status: 'failed', cause: error instanceof TimeOver ? 'TIMEOUT' : 'IO_ERROR' };
  }

  /** The process is about to end: what is still under way is told so, and its answer counts for nothing. */
  abort(): void {
    for (const call of this.#underWay) call.abort(new TimeOver());
  }

  async #inTime(call: Call, context: Omit<EffectContext, 'signal'>, timeout_ms: number): Promise<unknown> {
    const abort = new AbortController();
    this.#underWay.add(abort);
    let off = (): void => undefined;
    const late = new Promise<never>((_resolve, reject) => {
      off = this.#clock.wake(this.#clock.now() + timeout_ms, () => {
        const over = new TimeOver();
        reject(over);
        abort.abort(over);
      });
    });
    try {
      return await Promise.race([Promise.resolve().then(() => call({ ...context, signal: abort.signal })), late]);
    } finally {
      off();
      this.#underWay.delete(abort);
    }
  }
}

const NO_ANSWER = 'the answer is no object that conforms to its schema, or it is too large';

/** Within this file: the time of a call is over. */
class TimeOver extends OwnError {
  constructor() {
    super('the time of the call is over');
  }
}

/** The answer as our own parser reads its text: no prototypes, no getters, nothing that can still change. */
function boundedJson(answer: unknown, bytes_max: number): JsonObject | null {
  if (typeof answer !== 'object' || answer === null) return null;
  const text = textOf(answer);
  if (text === null || Buffer.byteLength(text) > bytes_max) return null;
  const scanned = scanJson(text, RESULT_DEPTH_MAX);
  return scanned.ok && isJsonObject(scanned.value) ? scanned.value : null;
}

/** Null for what JSON cannot say: a circle, a bigint, a `toJSON` that throws. */
function textOf(answer: object): string | null {
  try {
    const text: unknown = JSON.stringify(answer);
    return typeof text === 'string' ? text : null;
  } catch {
    return null;
  }
}
