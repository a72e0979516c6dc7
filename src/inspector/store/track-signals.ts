import type { ReadonlySignal } from '@preact/signals';

/** Whoever is computed or drawn now is so again when one of these changes. */
export const trackSignals = (...signals: readonly ReadonlySignal<unknown>[]): void => {
  signals.forEach((signal) => signal.value);
};
