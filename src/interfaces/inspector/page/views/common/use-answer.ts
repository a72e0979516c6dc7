// A response of the service, requested once its key stops changing.

import { useEffect, useState } from 'preact/hooks';
import { errorText } from '../../data/feed.js';

export type AnswerState<T> =
  | { readonly is: 'asking' }
  | { readonly is: 'here'; readonly value: T | null }
  | { readonly is: 'failed'; readonly why: string };

const ASKING = { is: 'asking' } as const;
/** A reader who moves through the events quickly causes no requests for the passed ones. */
const REST_MS = 120;

/** @param key the subject of the request; null requests nothing */
export function useAnswer<T>(key: string | null, read: () => Promise<T | null>, delayMs = REST_MS): AnswerState<T> {
  const [answer, setAnswer] = useState<{ readonly key: string | null; readonly answer: AnswerState<T> }>({
    key: null,
    answer: ASKING,
  });
  useEffect(() => {
    if (key === null) return;
    let isCurrent = true;
    const update = (newAnswer: AnswerState<T>): void => {
      if (isCurrent) setAnswer({ key, answer: newAnswer });
    };
    const timer = setTimeout(() => {
      read().then(
        (value) => update({ is: 'here', value }),
        (error: unknown) => update({ is: 'failed', why: errorText(error) }),
      );
    }, delayMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key]);
  return answer.key === key ? answer.answer : ASKING;
}
