import type { ClusterDirectory } from '../../ports/ledger/cluster.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import { Metrics } from './metrics.js';
import { readinessGauges } from './readiness-gauges.js';

/** The metrics of a process that has no HTTP service. */
export const workerMetrics = (turnpike: Turnpike, cluster: Pick<ClusterDirectory, 'status'>): Metrics =>
  new Metrics({ size: () => turnpike.ledger.size(), gauges: readinessGauges(turnpike), cluster });
