// A run tree that a later version of the program started: it is refused as such, and not as a damaged one.

import { expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../src/stores/memory/memory-head-store.js';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import { artifactRef, checkAvailable, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { OpenInput } from '../../../src/core/contract/run/entry.js';
import { FLAGS } from '../../../machines/flags.js';
import { foldTree } from '../../../src/engine/trees/fold-trees.js';
import { isUnfoldable } from '../../../src/engine/failures.js';
import type { EntryWithContent, LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { openTurnpikeIn } from '../../../src/host/turnpike.js';
import { countedIds } from '../../fixtures/bench.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const LATER = FLAGS.length;

const flagsIn = ({ flags = [] }: Record<string, unknown>): number[] => flags as number[];

/** Changes the machine definitions that each tree has pinned, together with their reference. */
class ChangedStore extends ForwardingStore {
  change: (definitions: Record<string, unknown>) => Record<string, unknown> = (definitions) => definitions;

  override histories: LedgerStore['histories'] = (places) => this.#changed(this.inner.histories(places));

  async *#changed(entries: AsyncIterable<EntryWithContent>): AsyncGenerator<EntryWithContent> {
    for await (const found of entries) yield found.entry.seq === 0 ? this.#changedOpening(found) : found;
  }

  #changedOpening({ entry, artifacts }: EntryWithContent): EntryWithContent {
    const available = checkAvailable(artifacts);
    if ('withheld' in available) throw new Error('the policies of a tree are never withheld');
    const [lanes, roles, actions, definitions, ...rest] = available as [Artifact, Artifact, Artifact, Artifact];
    const parsed = JSON.parse(Buffer.from(definitions.bytes).toString()) as Record<string, unknown>;
    const changed = { ...definitions, bytes: Buffer.from(canonicalJson(this.change(parsed) as never)) };
    const sealed = JSON.parse(entry.text) as { body: OpenInput };
    const body = { ...sealed.body, machines: artifactRef(changed) };
    return {
      entry: { ...entry, text: canonicalJson({ ...sealed, body }) },
      artifacts: [lanes, roles, actions, changed, ...rest],
    };
  }
}

async function storeWithTree(): Promise<{ store: ChangedStore; tree_id: string }> {
  const state = new LedgerModel();
  const store = modelStore(state);
  const turnpike = await openTurnpikeIn(
    { home: null, store, externalHeadStore: memoryHeadStore(await store.head()) },
    { store, sandbox: tempFolder('later'), clock: new ManualClock(), ids: countedIds(), log: winstonLog('silent') },
  );
  const { root_run_id: tree_id } = await turnpike.startAgent({ case: 'case-local', link: 'remote' });
  await turnpike.close();
  return { store: new ChangedStore(modelStore(state)), tree_id };
}

test('a tree with a flag of a later version is refused with LEDGER_OF_LATER_VERSION, and blocks no other', async () => {
  const { store, tree_id } = await storeWithTree();
  expect(await foldTree(store, tree_id)).not.toBeNull();
  store.change = (definitions) => ({ ...definitions, flags: [...flagsIn(definitions), LATER] });
  const error: unknown = await foldTree(store, tree_id).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'LEDGER_OF_LATER_VERSION' });
  expect(isUnfoldable(error)).toBe(true);
});

test.each([
  ['flags that are no numbers', (flags: number[]) => [...flags, 'x']],
  ['flags that are no list', () => 1],
])('a tree with %s is damaged', async (_what, change) => {
  const { store, tree_id } = await storeWithTree();
  store.change = (definitions) => ({ ...definitions, flags: change(flagsIn(definitions)) });
  await expect(foldTree(store, tree_id)).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
});
