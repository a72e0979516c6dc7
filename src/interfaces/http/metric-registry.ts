import type { Log } from '../../engine/ports/log.js';
import { METRIC_REGISTRIES } from '../../features/feature-services.js';
import { readPackageVersion } from '../../system/package-version.js';
import { NO_METRICS, type MetricRegistry } from './metrics.js';

/** A registry for the metrics of one service: that of the feature, or one that has none. */
export function createMetricRegistry(log: Pick<Log, 'warn'>): MetricRegistry {
  const [create] = METRIC_REGISTRIES;
  return create?.(readPackageVersion(), log) ?? NO_METRICS;
}
