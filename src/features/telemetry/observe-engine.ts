import type { ObserveEngine } from '../../runtime/engine-observation.js';
import { EngineTelemetry } from './engine-telemetry.js';
import { EffectTraces } from './effect-traces.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Telemetry } from '../../engine/ports/telemetry.js';
import type { LedgerReader } from '../../runtime/ledger/ledger-reader.js';

/** Traces and measures an engine and its effects. */
export const observeEngine: ObserveEngine = (engine) => {
  const engineTelemetry = new EngineTelemetry(engine);
  return {
    log: engineTelemetry.log,
    tickObserver: engineTelemetry,
    tracing: engineTelemetry,
    effectObserver: new EffectTraces(engineTelemetry, engine.catalogue),
    observeApprovals: (ledger, clock) => observeApprovals(engine.telemetry, ledger, clock),
  };
};

/** How old a count may be before it is made again, in ms. */
const FRESH_MS = 10_000;

/**
 * The number of requests that wait for people, over the whole ledger. Only the first collection waits for the count;
 * later ones get the last one, and cause a new one if it is old.
 */
function observeApprovals(telemetry: Telemetry, ledger: Pick<LedgerReader, 'countApprovals'>, clock: Clock): void {
  let last: { readonly value: number; readonly at: number } | null = null;
  let counting: Promise<number> | null = null;
  const refresh = (): Promise<number> => {
    counting ??= ledger
      .countApprovals(new Date(clock.now()).toISOString())
      // A ledger that cannot be read has no count.
      .catch(() => NaN)
      .then((value) => {
        last = { value, at: clock.now() };
        counting = null;
        return value;
      });
    return counting;
  };
  const options = { description: 'Requests that wait for the approval of people' };
  telemetry.meter.observe('gauge', 'turnpike_approvals_waiting', options, async () => {
    if (last === null) return [{ value: await refresh() }];
    if (clock.now() - last.at > FRESH_MS) void refresh();
    return [{ value: last.value }];
  });
}
