import type { ClusterDirectory, ClusterWorker } from '../../engine/ports/ledger/cluster.js';
import type { Turnpike } from '../turnpike.js';
import type { ReadinessCheck } from './readiness-reporter.js';

const NAME = 'database';

/**
 * Adds the checks of a shared ledger, once: of its database, and of its trees that this version cannot serve.
 * @param version that of this worker
 */
export function addDatabaseCheck(
  { readiness, vitals }: Pick<Turnpike, 'readiness' | 'vitals'>,
  cluster: Pick<ClusterDirectory, 'isActive' | 'status'>,
  version: string,
): void {
  if (readiness.has(NAME)) return;
  const database: ReadinessCheck = {
    name: NAME,
    run: async () => {
      // A restart has compared it with the head file, and refuses it.
      if (vitals.condition().permanentCode === 'LEDGER_BELOW_HEAD') return 'the database has lost commits';
      return (await cluster.isActive()) ? null : 'this process has no session with the database';
    },
    thrown: 'the database cannot be reached',
  };
  // Without a worker that can take them, it serves the other trees: a version that was withdrawn stops no older one.
  const laterTrees: ReadinessCheck = {
    name: 'later-trees',
    run: async () => {
      if (vitals.condition().laterTrees === 0) return null;
      const { workers } = await cluster.status();
      const isPassed = workers.some((worker) => canServeLater(worker, version));
      return isPassed ? 'cannot serve run trees of a later version: a worker of another version has to' : null;
    },
    thrown: 'the list of workers cannot be read',
  };
  readiness.add(database, laterTrees);
}

/** Whether a worker can be expected to serve the trees that a worker of version `own` cannot. */
export const canServeLater = (
  { over_at, connected, version, refuses, later_trees }: ClusterWorker,
  own: string,
): boolean =>
  over_at === null && connected && refuses === null && later_trees === 0 && version !== null && version !== own;
