import type { ObserveEngine } from '../../runtime/engine-observation.js';
import { EngineTelemetry } from './engine-telemetry.js';
import { observeApprovals } from './observe-approvals.js';
import { EffectTraces, TracedEffects } from './traced-effects.js';

/** Traces and measures an engine and its effects. */
export const observeEngine: ObserveEngine = (engine) => {
  const engineTelemetry = new EngineTelemetry(engine);
  const traces = new EffectTraces(engineTelemetry);
  return {
    log: engineTelemetry.log,
    tickObserver: engineTelemetry,
    tracing: engineTelemetry,
    effectTraces: traces,
    measureEffects: (effects) =>
      new TracedEffects(effects, { telemetry: engineTelemetry, traces, catalogue: engine.catalogue }),
    observeApprovals: (ledger, clock) => observeApprovals(engine.telemetry, ledger, clock),
  };
};
