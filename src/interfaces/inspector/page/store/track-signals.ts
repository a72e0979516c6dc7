import type { ReadonlySignal } from '@preact/signals';

/** Subscribes the current computation or view to these signals. */
export const trackSignals = (...signals: readonly ReadonlySignal<unknown>[]): void => {
  signals.forEach((signal) => signal.value);
};
