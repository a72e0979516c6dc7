import type { Clock, ClockReading } from '../engine/ports/clock.js';

/** The longest delay of setTimeout; a longer wait uses several timers. */
const DELAY_MS_MAX = 2_147_483_647;
/** The speed of time while the clock of the machine is behind it. */
const CATCH_UP_RATE = 0.5;

/**
 * The system clock. Within the process time never goes back, even if the system clock is set back. It then runs at half
 * speed until the system clock has caught up: it must not stand still, because every interval is measured with it.
 */
export function systemClock(): Clock {
  const read = steadyTime();
  const now = (): number => Math.floor(read().now);
  return {
    now,
    monotonic: () => performance.now(),
    wake(at, onWake) {
      let timer: NodeJS.Timeout;
      const wait = (): void => {
        const rest = at - now();
        if (rest <= 0) onWake();
        else timer = setTimeout(wait, Math.min(rest, DELAY_MS_MAX)).unref();
      };
      timer = setTimeout(wait, Math.max(0, Math.min(at - now(), DELAY_MS_MAX))).unref();
      return () => clearTimeout(timer);
    },
  };
}

/**
 * Follows how the clock of this machine is set, from now on.
 * @returns a function to call every few seconds
 */
export function watchSystemClock(): () => ClockReading {
  const read = steadyTime();
  const start = Date.now() - performance.now();
  return () => {
    const [wall, monotonic] = [Date.now(), performance.now()];
    return { offset_ms: wall - monotonic - start, behind_ms: Math.max(0, read().now - wall) };
  };
}

/** Time that follows the system clock and never goes back, in ms. */
function steadyTime(): () => { readonly now: number } {
  const latest = { now: 0, monotonic: performance.now() };
  return () => {
    const monotonic = performance.now();
    latest.now = Math.max(Date.now(), latest.now + (monotonic - latest.monotonic) * CATCH_UP_RATE);
    latest.monotonic = monotonic;
    return latest;
  };
}
