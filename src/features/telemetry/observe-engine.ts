import type { ObserveEngine } from '../../runtime/engine-observation.js';
import { EngineTelemetry } from './engine-telemetry.js';
import { observeApprovals } from './observe-approvals.js';
import { EffectTraces } from './effect-traces.js';

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
