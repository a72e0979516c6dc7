// What observes an engine and its effects: the service log, or with the feature also telemetry.

import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../core/contract/run/effect.js';
import type { TraceCarrier } from '../core/contract/trace-context.js';
import type { Clock } from '../engine/ports/clock.js';
import type { Log } from '../engine/ports/log.js';
import type { Telemetry } from '../engine/ports/telemetry.js';
import type { TickObserver } from '../engine/tick/tick-observer.js';
import type { RunTracing } from './agents/agents.js';
import type { LedgerReader } from './ledger/ledger-reader.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

/** Measures the effects that run, and gives what they call its place in the trace. */
export interface EffectObserver {
  /**
   * @param isSettled whether a process that has ended left the outcome of the effect open
   * @returns what `work`, which runs or settles the effect, returns; throws what it throws
   */
  measure(effect: Effect, isSettled: boolean, work: () => EffectReturn): EffectReturn;
  /** For the code behind an effect in flight. */
  carrierOf(effect: Effect): { readonly trace?: TraceCarrier };
}

export interface EngineObservation {
  /** The service log. With traces, a line that names a run has its trace. */
  readonly log: Log;
  readonly tickObserver: TickObserver;
  readonly tracing: RunTracing;
  /** Null without telemetry. */
  readonly effectObserver: EffectObserver | null;
  observeApprovals(ledger: Pick<LedgerReader, 'countApprovals'>, clock: Clock): void;
}

/** What telemetry observes, and the log that it adds to. */
export interface ObservedEngine {
  readonly telemetry: Telemetry;
  readonly log: Log;
  readonly catalogue: Catalogue;
}

export type ObserveEngine = (engine: ObservedEngine) => EngineObservation;
