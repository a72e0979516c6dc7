import type { ReadonlySignal } from '@preact/signals';

/** Whoever is computed or drawn now is so again when one of these changes. */
export const heed = (...signals: readonly ReadonlySignal<unknown>[]): void => {
  signals.forEach((one) => one.value);
};
