// Signals of a command that is the first process of a container. The kernel ignores there what the process does not
// handle; elsewhere it ends the process.

/** The part of `process` that this needs. */
export interface SignalledProcess {
  readonly pid: number;
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  exit(code: number): unknown;
}

const NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Ends the first process of a container on a signal, as the kernel ends another one.
 * @param isStopping whether the command stops by itself after this signal
 */
export function endFirstProcessOnSignals(own: SignalledProcess, isStopping: () => boolean): void {
  if (own.pid !== 1) return;
  for (const [signal, number] of Object.entries(NUMBERS) as [keyof typeof NUMBERS, number][]) {
    own.on(signal, () => {
      // After the other listeners of this signal.
      if (!isStopping()) queueMicrotask(() => own.exit(128 + number));
    });
  }
}
