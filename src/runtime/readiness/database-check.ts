import type { ClusterDirectory } from '../../ports/ledger/cluster.js';
import type { Turnpike } from '../turnpike.js';
import type { ReadinessCheck } from './readiness.js';

const NAME = 'database';

/** Adds the check of the database of a shared ledger, once. */
export function addDatabaseCheck(
  { readiness, vitals }: Pick<Turnpike, 'readiness' | 'vitals'>,
  cluster: Pick<ClusterDirectory, 'isStanding'>,
): void {
  if (readiness.has(NAME)) return;
  const check: ReadinessCheck = {
    name: NAME,
    run: async () => {
      // A restart has compared it with the head file, and refuses it.
      if (vitals.condition().permanentCode === 'LEDGER_BELOW_HEAD') return 'the database has lost commits';
      return (await cluster.isStanding()) ? null : 'this process has no session with the database';
    },
    thrown: 'the database cannot be reached',
  };
  readiness.add(check);
}
