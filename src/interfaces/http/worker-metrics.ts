import type { ClusterDirectory } from '../../engine/ports/ledger/cluster.js';
import type { Turnpike } from '../../host/turnpike.js';
import { Metrics, NO_METRICS, type MetricRegistry } from './metrics.js';
import { readinessGauges } from './readiness-gauges.js';

/** The metrics of a process that has no HTTP service. */
export const workerMetrics = (
  turnpike: Turnpike,
  cluster: Pick<ClusterDirectory, 'status'>,
  registry: MetricRegistry | null,
): Metrics =>
  new Metrics(
    { size: () => turnpike.ledger.size(), gauges: readinessGauges(turnpike), cluster },
    registry ?? NO_METRICS,
  );
