// What observes the engine: the service log always, and telemetry only with its option, whose modules are loaded then.

import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { Clock } from '../engine/ports/clock.js';
import type { Log } from '../engine/ports/log.js';
import type { TickObserver } from '../engine/tick/tick-observer.js';
import type { Effects } from '../engine/tree-engine.js';
import type { EffectTraces } from '../features/telemetry/traced-effects.js';
import { NO_TRACING, type RunTracing } from '../runtime/agents/run-tracing.js';
import type { LedgerReader } from '../runtime/ledger/ledger-reader.js';
import { RunLog } from '../runtime/run-log.js';
import { winstonLog } from '../system/winston-log.js';
import type { TurnpikeOptions } from './turnpike-options.js';

export interface EngineObservation {
  /** The service log. With traces, a line that names a run has its trace. */
  readonly log: Log;
  readonly tickObserver: TickObserver;
  readonly tracing: RunTracing;
  /** The places of effects in their traces; null without telemetry. */
  readonly effectTraces: Pick<EffectTraces, 'carrierOf'> | null;
  /** The same effects, measured if telemetry is wanted. */
  measureEffects(effects: Effects): Effects;
  observeApprovals(ledger: Pick<LedgerReader, 'countApprovals'>, clock: Clock): void;
}

/** Imports the telemetry before the engine starts, so that it misses no event. */
export async function openEngineObservation(
  { telemetry, log = winstonLog('warn') }: Pick<TurnpikeOptions, 'telemetry' | 'log'>,
  catalogue: Catalogue,
): Promise<EngineObservation> {
  if (telemetry === undefined) {
    return {
      log,
      tickObserver: new RunLog({ log, catalogue }),
      tracing: NO_TRACING,
      effectTraces: null,
      measureEffects: (effects) => effects,
      observeApprovals: () => undefined,
    };
  }
  const [{ EngineTelemetry }, { EffectTraces, TracedEffects }, { observeApprovals }] = await Promise.all([
    import('../features/telemetry/engine-telemetry.js'),
    import('../features/telemetry/traced-effects.js'),
    import('../features/telemetry/observe-approvals.js'),
  ]);
  const engineTelemetry = new EngineTelemetry({ telemetry, log, catalogue });
  const traces = new EffectTraces(engineTelemetry);
  return {
    log: engineTelemetry.log,
    tickObserver: engineTelemetry,
    tracing: engineTelemetry,
    effectTraces: traces,
    measureEffects: (effects) => new TracedEffects(effects, { telemetry: engineTelemetry, traces, catalogue }),
    observeApprovals: (ledger, clock) => observeApprovals(telemetry, ledger, clock),
  };
}
