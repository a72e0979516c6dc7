// Opens what observes the engine: the service log always, and telemetry only with its option, whose modules are loaded
// then.

import type { Catalogue } from '../core/contract/policy/catalogue.js';
import { usageError } from '../core/errors.js';
import { findMember } from '../features/declare-features.js';
import { NO_TRACING } from '../runtime/agents/agents.js';
import type { EngineObservation } from '../runtime/engine-observation.js';
import { RunLog } from '../runtime/run-log.js';
import { winstonLog } from '../system/winston-log.js';
import type { TurnpikeOptions } from './turnpike-options.js';

/**
 * Imports the telemetry before the engine starts, so that it misses no event.
 * @throws UsageError for telemetry without the feature
 */
export async function openEngineObservation(
  { telemetry, log = winstonLog('warn') }: Pick<TurnpikeOptions, 'telemetry' | 'log'>,
  catalogue: Catalogue,
): Promise<EngineObservation> {
  if (telemetry === undefined) {
    return {
      log,
      tickObserver: new RunLog({ log, catalogue }),
      tracing: NO_TRACING,
      effectObserver: null,
      observeApprovals: () => undefined,
    };
  }
  const observeEngine = findMember('observeEngine');
  if (observeEngine === undefined) throw usageError('telemetry: this installation has no feature that observes');
  const observe = await observeEngine();
  return observe({ telemetry, log, catalogue });
}
