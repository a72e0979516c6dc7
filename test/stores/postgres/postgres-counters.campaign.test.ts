// Counters that three workers change at once, over a real PostgreSQL.

import { afterAll, describe, expect, test } from '@jest/globals';
import { createPostgresStore, openPostgresStore } from '../../../src/stores/postgres/index.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { artifactRef, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import type { TreeEngine } from '../../../src/engine/tree-engine.js';
import type { SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { COUNTED_WRITES, WRITES_PER_MINUTE } from '../../features/conditions/counters/counted-writes.js';
import { recount } from '../../features/conditions/counters/recount.js';
import { start } from '../../engine/start-tree.js';
import { startPostgres } from '../../fixtures/postgres.js';
import { ABSENT, proposal } from '../../fixtures/tree.js';
import { ledgerPlace, startWorker, type LedgerPlace } from './postgres-harness.js';
import '../../fixtures/conditions.js';
import { LOCAL_EFFECTS } from '../../fixtures/local-effects.js';

const WORKERS = 3;
const TREES = 6;
const ROUNDS = 6;

const server = await startPostgres({ isDurable: true });
afterAll(() => server?.stop());

class Workers {
  readonly #engines: TreeEngine[] = [];
  readonly #stores: SharedLedgerStore[] = [];
  #inputs = 0;

  async open(place: LedgerPlace): Promise<void> {
    await (await createPostgresStore(place)).close();
    for (let worker = 0; worker < WORKERS; worker += 1) {
      const store = await openPostgresStore(place);
      const { engine } = await startWorker(store, {
        clock: systemClock(),
        effects: {
          ...LOCAL_EFFECTS,
          gather: ({ paths }) => ({ paths: paths.map(() => ABSENT), usage: { bytes: 0, files: 0 } }),
          // Not at once: other workers decide meanwhile. Every fourth write fails.
          run: async ({ run_id }) => {
            await new Promise((resolve) => setTimeout(resolve, 2));
            return Number(run_id.at(-3)) % 4 === 3
              ? { status: 'failed', cause: 'IO_ERROR' }
              : { status: 'done', result: { bytes_written: 1 } };
          },
          settle: () => ({ status: 'failed', cause: 'INTERRUPTED' }),
        },
      });
      this.#engines.push(engine);
      this.#stores.push(store);
    }
  }

  start = (tree: string): Promise<void> =>
    start({ engine: this.#engine() }, tree, { link: 'remote', idle_ms: null }, COUNTED_WRITES);

  /** @returns the response to a write, at any worker */
  async write(tree: string): Promise<string> {
    this.#inputs += 1;
    const input_id = `input-${this.#inputs}`;
    const payload = proposal('WRITE_FILE', { path: `/sandbox/${this.#inputs}.txt`, content: 'x' });
    const artifact: Artifact = { kind: 'raw_payload', case_id: 'case-1', bytes: Buffer.from(JSON.stringify(payload)) };
    const input = {
      kind: 'proposal',
      run_id: `${tree}.1`,
      input_id,
      payload: artifactRef(artifact),
      tokens: null,
    } as const;
    const submission = { input, materials: [artifact], rememberInputId: true, expectsResponse: true } as const;
    const { response } = await this.#engine().submit(tree, submission);
    return (await response) ?? 'no response';
  }

  async close(): Promise<void> {
    for (const engine of this.#engines) await engine.stop();
    for (const store of this.#stores) await store.close();
  }

  #engine(): TreeEngine {
    const engine = this.#engines[this.#inputs % this.#engines.length];
    if (engine === undefined) throw new Error('no engine was started');
    return engine;
  }
}

/** The entries of each commit, in the order of the commits. */
async function commitsIn(place: LedgerPlace): Promise<readonly (readonly Entry[])[]> {
  const rows = await place.exec('SELECT commit_no, texts FROM blocks ORDER BY commit_no');
  return (rows as { readonly texts: string }[]).map(({ texts }) =>
    texts.split('\n').map((text) => JSON.parse(text) as Entry),
  );
}

(server === null ? describe.skip : describe)('three workers that count for one case', () => {
  test('every recorded value is that of a recount, and the limit is never exceeded', async () => {
    const place = ledgerPlace(server?.url ?? '');
    const workers = new Workers();
    await workers.open(place);
    const trees = Array.from({ length: TREES }, (_, index) => `run_count${String(index).padStart(4, '0')}`);
    for (const tree of trees) await workers.start(tree);
    const responses: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1)
      responses.push(...(await Promise.all(trees.map((tree) => workers.write(tree)))));
    await workers.close();
    const { values, differences } = recount(await commitsIn(place));
    await place.remove();
    expect(differences).toEqual([]);
    expect(values).toBe(3 * TREES * ROUNDS);
    const done = responses.filter((response) => response.includes('SUCCESS')).length;
    expect(done).toBe(WRITES_PER_MINUTE);
  });
});
