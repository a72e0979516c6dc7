// What observes an engine and its effects: the service log, or with the feature also telemetry.

import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { Effect } from '../core/contract/run/effect.js';
import type { TraceCarrier } from '../core/contract/trace-context.js';
import type { Clock } from '../engine/ports/clock.js';
import type { Log } from '../engine/ports/log.js';
import type { Telemetry } from '../engine/ports/telemetry.js';
import type { TickObserver } from '../engine/tick/tick-observer.js';
import type { Effects } from '../engine/tree-engine.js';
import type { RunTracing } from './agents/agents.js';
import type { LedgerReader } from './ledger/ledger-reader.js';

/** The trace contexts of the effects in flight. */
export interface EffectCarriers {
  /** For the code behind an effect. */
  carrierOf(effect: Effect): { readonly trace?: TraceCarrier };
}

export interface EngineObservation {
  /** The service log. With traces, a line that names a run has its trace. */
  readonly log: Log;
  readonly tickObserver: TickObserver;
  readonly tracing: RunTracing;
  /** The places of effects in their traces; null without telemetry. */
  readonly effectTraces: EffectCarriers | null;
  /** The same effects, measured if telemetry is wanted. */
  measureEffects(effects: Effects): Effects;
  observeApprovals(ledger: Pick<LedgerReader, 'countApprovals'>, clock: Clock): void;
}

/** What telemetry observes, and the log that it adds to. */
export interface ObservedEngine {
  readonly telemetry: Telemetry;
  readonly log: Log;
  readonly catalogue: Catalogue;
}

export type ObserveEngine = (engine: ObservedEngine) => EngineObservation;
