import type { AgentRun } from '../agent-run.js';

/** What may happen to a loop while it waits for something else. */
export type Interruption = 'run_ended' | 'aborted';

export interface Watch {
  /** What has happened by now. */
  readonly stopped: Interruption | null;
  /**
   * What the work comes to, or what happens before that, if it is among `heeded`. What becomes of the work then is its
   * own affair. Rejects when the process lets go of the run. One work at a time.
   */
  during<T>(work: Promise<T>, heeded: readonly Interruption[]): Promise<T | Interruption>;
  close(): void;
}

interface Listener {
  readonly happens: (what: Interruption) => void;
  readonly breaks: (error: unknown) => void;
}

// One listener that is let go with its work: a promise of the whole loop would keep every proposal ever raced with it.
export function watchOver(run: Pick<AgentRun, 'finished'>, signal: AbortSignal | undefined): Watch {
  let stopped: Interruption | null = null;
  let broken: { readonly error: unknown } | null = null;
  let listener: Listener | null = null;
  const happen = (what: Interruption): void => {
    stopped ??= what;
    listener?.happens(what);
  };
  const abort = (): void => happen('aborted');
  run.finished.then(
    () => happen('run_ended'),
    (error: unknown) => {
      broken = { error };
      listener?.breaks(error);
    },
  );
  if (signal?.aborted === true) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  return {
    get stopped() {
      return stopped;
    },
    during: (work, heeded) =>
      new Promise((resolve, reject) => {
        const own: Listener = { happens: (what) => heeded.includes(what) && resolve(what), breaks: reject };
        const letGo = (): void => {
          if (listener === own) listener = null;
        };
        listener = own;
        if (stopped !== null) own.happens(stopped);
        if (broken !== null) own.breaks(broken.error);
        work.then(resolve, reject).finally(letGo);
      }),
    close: () => signal?.removeEventListener('abort', abort),
  };
}
