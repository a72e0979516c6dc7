import type { Clock } from '../../ports/clock.js';

/** The longest delay of setTimeout; a longer wait uses several timers. */
const DELAY_MS_MAX = 2_147_483_647;

/** The system clock. Within the process time never goes back, even if the system clock is set back. */
export function systemClock(): Clock {
  let latest = 0;
  const now = (): number => {
    latest = Math.max(latest, Date.now());
    return latest;
  };
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
