import { isConforming } from '../../../contract/validators.js';
import type { Review, Reviewer, ReviewOrder } from '../../../ports/reviewer.js';
import type { BoundedCalls } from '../../effects/bounded-calls.js';
import type { EffectContext } from '../../effects/define-effects.js';
import { failedReview, REVIEW_BYTES_MAX, ReviewAnswer } from './review-answer.js';

/**
 * Code of the service that reviews what a phase has made. Whatever it throws, an answer of another shape and one that
 * comes too late are the verdict `fail`. The order is its own: nobody sees what it changes there.
 */
export type ReviewCallback = (
  order: ReviewOrder,
  context: Pick<EffectContext, 'signal'>,
) => ReviewAnswer | Promise<ReviewAnswer>;

/** For whom it is called, and for how long. */
export interface ReviewCall extends Omit<EffectContext, 'signal'> {
  readonly timeout_ms: number;
}

const isAnswer = (answer: unknown): boolean => isConforming(ReviewAnswer, answer);

/** A reviewer that asks the service. */
export const callbackReviewer = (calls: BoundedCalls, callback: ReviewCallback, call: ReviewCall): Reviewer => ({
  async review(order, signal): Promise<Review> {
    signal.throwIfAborted();
    const { timeout_ms, ...context } = call;
    const callReviewer = ({ signal: timeoutSignal }: EffectContext) =>
      Promise.race([
        callback(structuredClone(order), { signal: AbortSignal.any([signal, timeoutSignal]) }),
        rejectOnAbort(signal),
      ]);
    // A review changes nothing, so that whatever has become of it is known: it has come to no verdict.
    const bounds = { timeout_ms, result_bytes_max: REVIEW_BYTES_MAX, isConforming: isAnswer, hasSideEffects: false };
    const result = await calls.run(callReviewer, context, bounds);
    signal.throwIfAborted();
    if (result.status === 'done') {
      const { verdict, findings, summary = null } = result.result as unknown as ReviewAnswer;
      return { verdict, findings, summary };
    }
    const isTimeout = result.status === 'failed' && result.cause === 'TIMEOUT';
    return failedReview(isTimeout ? 'The time of the review was over' : 'The reviewer of the service gave no review');
  },
});

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_settle, fail) => signal.addEventListener('abort', () => fail(new Error('called off')), { once: true }));
