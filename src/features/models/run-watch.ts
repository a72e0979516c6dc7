import type { AgentRun } from '../../runtime/agents/agent-run.js';

/** Events that can interrupt a loop while it waits. */
export type Interruption = 'run_ended' | 'aborted';

export interface RunWatch {
  /** The event that has happened so far, or null. */
  readonly interruption: Interruption | null;
  /**
   * Resolves with the result of the work, or with an event of `relevant` that happens first. The work then continues
   * unobserved. Rejects when the process releases the run. Only one work at a time.
   */
  raceWith<T>(work: Promise<T>, relevant: readonly Interruption[]): Promise<T | Interruption>;
  close(): void;
}

interface InterruptionListener {
  readonly onInterruption: (what: Interruption) => void;
  readonly onFailure: (error: unknown) => void;
}

// One listener, removed with its work: a promise for the whole loop would keep every proposal raced with it in memory.
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
