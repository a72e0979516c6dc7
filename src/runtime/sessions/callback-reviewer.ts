import { conforms } from '../../contract/validators.js';
import type { Review, Reviewer, ReviewOrder } from '../../ports/reviewer.js';
import type { BoundedCalls } from '../effects/bounded-call.js';
import type { EffectContext } from '../effects/define.js';
import { failedReview, REVIEW_BYTES_MAX, ReviewAnswer } from './review.js';

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

const isAnswer = (answer: unknown): boolean => conforms(ReviewAnswer, answer);

/** A reviewer that asks the service. */
export const callbackReviewer = (calls: BoundedCalls, callback: ReviewCallback, call: ReviewCall): Reviewer => ({
  async review(order, signal): Promise<Review> {
    signal.throwIfAborted();
    const { timeout_ms, ...context } = call;
    const ask = ({ signal: late }: EffectContext) =>
      Promise.race([callback(structuredClone(order), { signal: AbortSignal.any([signal, late]) }), calledOff(signal)]);
    // A review changes nothing, so that whatever has become of it is known: it has come to no verdict.
    const bounds = { timeout_ms, result_bytes_max: REVIEW_BYTES_MAX, conforms: isAnswer, changes: false };
    const result = await calls.perform(ask, context, bounds);
    signal.throwIfAborted();
    if (result.status === 'done') {
      const { verdict, findings, summary = null } = result.result as unknown as ReviewAnswer;
      return { verdict, findings, summary };
    }
    const isLate = result.status === 'failed' && result.cause === 'TIMEOUT';
    return failedReview(isLate ? 'The time of the review was over' : 'The reviewer of the service gave no review');
  },
});

const calledOff = (signal: AbortSignal): Promise<never> =>
  new Promise((_settle, fail) => signal.addEventListener('abort', () => fail(new Error('called off')), { once: true }));
