import type { AgentRun } from '../agents/agent-run.js';

/** What may happen to a loop while it waits for something else. */
export type Interruption = 'run_ended' | 'aborted';

export interface RunWatch {
  /** What has happened by now. */
  readonly interruption: Interruption | null;
  /**
   * What the work comes to, or what happens before that, if it is among `heeded`. What becomes of the work then is its
   * own affair. Rejects when the process lets go of the run. One work at a time.
   */
  raceWith<T>(work: Promise<T>, relevant: readonly Interruption[]): Promise<T | Interruption>;
  close(): void;
}

interface InterruptionListener {
  readonly onInterruption: (what: Interruption) => void;
  readonly onFailure: (error: unknown) => void;
}

// One listener that is let go with its work: a promise of the whole loop would keep every proposal ever raced with it.
export function watchRun(run: Pick<AgentRun, 'finished'>, signal: AbortSignal | undefined): RunWatch {
  let interruption: Interruption | null = null;
  let failure: { readonly error: unknown } | null = null;
  let listener: InterruptionListener | null = null;
  const notify = (what: Interruption): void => {
    interruption ??= what;
    listener?.onInterruption(what);
  };
  const abort = (): void => notify('aborted');
  run.finished.then(
    () => notify('run_ended'),
    (error: unknown) => {
      failure = { error };
      listener?.onFailure(error);
    },
  );
  if (signal?.aborted === true) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  return {
    get interruption() {
      return interruption;
    },
    raceWith: (work, relevant) =>
      new Promise((resolve, reject) => {
        const ownListener: InterruptionListener = {
          onInterruption: (what) => relevant.includes(what) && resolve(what),
          onFailure: reject,
        };
        const clearListener = (): void => {
          if (listener === ownListener) listener = null;
        };
        listener = ownListener;
        if (interruption !== null) ownListener.onInterruption(interruption);
        if (failure !== null) ownListener.onFailure(failure.error);
        work.then(resolve, reject).finally(clearListener);
      }),
    close: () => signal?.removeEventListener('abort', abort),
  };
}
