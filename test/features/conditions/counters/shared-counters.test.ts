// Two workers that count: only those that read or change the same counter overtake each other.

import { afterEach, expect, test } from '@jest/globals';
import { ephemeralKey } from '../../../../src/stores/keys/session-key.js';
import { memoryHeadStore } from '../../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../../fixtures/ledger-model/ledger-model.js';
import { sharedModelStore } from '../../../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import { artifactRef, type Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { sharedEngine } from '../../../../src/engine/shared.js';
import type { TreeEngine } from '../../../../src/engine/tree-engine.js';
import { ManualClock } from '../../../fixtures/manual-clock.js';
import { ABSENT, proposal } from '../../../fixtures/tree.js';
import { start, turns } from '../../../engine/start-tree.js';
import { COUNTED_WRITES } from './counted-writes.js';
import '../../../fixtures/conditions.js';
import { LOCAL_EFFECTS } from '../../../fixtures/local-effects.js';

class Workers {
  readonly #state = new LedgerModel({ integrates: false });
  readonly #engines: TreeEngine[] = [];
  /** Appends that were in conflict. */
  conflicts = 0;
  /** Versions of counters that were read. */
  reads = 0;
  #inputs = 0;

  async open(): Promise<TreeEngine> {
    const store = sharedModelStore(this.#state);
    const commitTrees = store.commitTrees.bind(store);
    store.commitTrees = async (batch) => {
      const statuses = await commitTrees(batch);
      this.conflicts += statuses.filter((status) => status === 'conflict').length;
      return statuses;
    };
    const caseQuotas = store.caseQuotas.bind(store);
    store.caseQuotas = (ids) => {
      this.reads += ids.filter((id) => id.startsWith('~')).length;
      return caseQuotas(ids);
    };
    const engine = sharedEngine({
      ...{ store, externalHeadStore: memoryHeadStore(this.#state.head), clock: new ManualClock() },
      ...{ log: winstonLog('silent'), secrets: ephemeralKey(), defer: (task) => void setImmediate(task) },
      effects: {
        ...LOCAL_EFFECTS,
        gather: () => ({ paths: [ABSENT], usage: { bytes: 0, files: 0 } }),
        run: () => ({ status: 'done', result: { bytes_written: 1 } }),
        settle: () => ({ status: 'failed', cause: 'INTERRUPTED' }),
      },
    });
    await engine.start();
    this.#engines.push(engine);
    return engine;
  }

  begin(engine: TreeEngine, tree_id: string, case_id: string, actor_id: string): Promise<void> {
    const link = { link: 'remote', idle_ms: null } as const;
    return start({ engine }, tree_id, link, COUNTED_WRITES, { case_id, actor_id });
  }

  async write(engine: TreeEngine, tree_id: string, case_id: string): Promise<void> {
    const number = (this.#inputs += 1);
    const bytes = Buffer.from(JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${number}.txt`, content: 'x' })));
    const artifact: Artifact = { kind: 'raw_payload', case_id, bytes };
    const place = { run_id: `${tree_id}.1`, input_id: `i${number}` };
    const input = { kind: 'proposal', ...place, payload: artifactRef(artifact), tokens: null } as const;
    await engine.submit(tree_id, { input, materials: [artifact], rememberInputId: true });
  }

  async close(): Promise<void> {
    for (const engine of this.#engines) await engine.stop();
  }
}

let workers: Workers;
afterEach(() => workers.close());

test.each([
  ['other cases and actors', ['case-1', 'case-2'], ['anna', 'berta'], 0],
  ['one actor', ['case-1', 'case-2'], ['anna', 'anna'], 1],
  ['one case', ['case-1', 'case-1'], ['anna', 'berta'], 1],
])('S0-50: workers that count for %s', async (_what, cases, actors, conflictsMin) => {
  workers = new Workers();
  const [one, other] = [await workers.open(), await workers.open()];
  await workers.begin(one, 'run_counted0001', cases[0] ?? '', actors[0] ?? '');
  await workers.begin(other, 'run_counted0002', cases[1] ?? '', actors[1] ?? '');
  workers.conflicts = 0;
  for (let round = 0; round < 5; round += 1) {
    await Promise.all([
      workers.write(one, 'run_counted0001', cases[0] ?? ''),
      workers.write(other, 'run_counted0002', cases[1] ?? ''),
    ]);
    await turns(20);
  }
  if (conflictsMin > 0) expect(workers.conflicts).toBeGreaterThanOrEqual(conflictsMin);
  else expect(workers).toMatchObject({ conflicts: 0, reads: 4 });
});
