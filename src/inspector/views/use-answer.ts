// An answer of the service, asked for when what it is asked about stands still.

import { useEffect, useState } from 'preact/hooks';

export type Answer<T> =
  | { readonly is: 'asking' }
  | { readonly is: 'here'; readonly value: T | null }
  | { readonly is: 'failed'; readonly why: string };

const ASKING = { is: 'asking' } as const;
/** Who runs through the events asks nothing about those that he passes. */
const REST_MS = 120;

/** @param key what it is about; null asks nothing */
export function useAnswer<T>(key: string | null, ask: () => Promise<T | null>, rest = REST_MS): Answer<T> {
  const [answer, setAnswer] = useState<{ readonly key: string | null; readonly answer: Answer<T> }>({
    key: null,
    answer: ASKING,
  });
  useEffect(() => {
    if (key === null) return;
    let wanted = true;
    const tell = (said: Answer<T>): void => {
      if (wanted) setAnswer({ key, answer: said });
    };
    const timer = setTimeout(() => {
      ask().then(
        (value) => tell({ is: 'here', value }),
        (error: unknown) => tell({ is: 'failed', why: error instanceof Error ? error.message : String(error) }),
      );
    }, rest);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [key]);
  return answer.key === key ? answer.answer : ASKING;
}
