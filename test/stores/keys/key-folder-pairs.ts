// Every pair of a ledger and a key folder: which one may write, and what an owner can still read afterwards.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { KEY_FOLDER_NAME } from '../../../src/stores/keys/case-keys.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { answered, content, opening, Scribe, scribeOf, treeId, type Draft } from '../../fixtures/entries.js';

/** A kind of store: each `ledger` is another one, which the folder of its caller's choice opens. */
export interface StoreKind {
  create(ledger: string, caseKeysDir: string): Promise<LedgerStore>;
  open(ledger: string, caseKeysDir: string, readOnly?: boolean): Promise<LedgerStore>;
}

const [ONE, TWO, NEW] = ['case-one', 'case-two', 'case-new'] as const;
const CASES = [ONE, TWO, NEW] as const;
const KEY_OF = (case_id: string): string => `${case_id}.1.key`;

/** What the ledgers contain: the n-th tree and the cases of its contents. */
const LEDGERS = {
  'with cases': [ONE, TWO],
  'with the same cases': [ONE, TWO],
  'without a case': [],
  empty: null,
} as const;
type Ledger = keyof typeof LEDGERS;

const FOLDERS = {
  own: () => undefined,
  'own, without a name': (folder) => rmSync(join(folder, KEY_FOLDER_NAME), { force: true }),
  'own, without one key': (folder) => rmSync(join(folder, KEY_OF(ONE)), { force: true }),
  'own, without one key and a name': (folder) => {
    FOLDERS['own, without a name'](folder);
    FOLDERS['own, without one key'](folder);
  },
  'own, with swapped keys': (folder) => {
    renameSync(join(folder, KEY_OF(ONE)), join(folder, 'kept'));
    renameSync(join(folder, KEY_OF(TWO)), join(folder, KEY_OF(ONE)));
    renameSync(join(folder, 'kept'), join(folder, KEY_OF(TWO)));
  },
  'own, with a foreign key': (folder, foreign) => cpSync(join(foreign, KEY_OF(ONE)), join(folder, KEY_OF(ONE))),
  empty: (folder) => rmSync(folder, { recursive: true }),
  foreign: (folder, foreign) => {
    rmSync(folder, { recursive: true });
    cpSync(foreign, folder, { recursive: true });
  },
  'foreign, without a name': (folder, foreign) => {
    FOLDERS.foreign(folder, foreign);
    FOLDERS['own, without a name'](folder);
  },
} as const satisfies Record<string, (folder: string, foreign: string) => void>;
type Folder = keyof typeof FOLDERS;

/** Whether the folder may write the case. A ledger without a case has no key to compare with. */
function isAllowed(ledger: Ledger, folder: Folder, case_id: string): boolean {
  if (folder.startsWith('own')) {
    const isChanged = folder === 'own, with swapped keys' ? case_id !== NEW : case_id === ONE;
    return folder === 'own' || folder === 'own, without a name' || !isChanged;
  }
  const hasCases = (LEDGERS[ledger] ?? []).length > 0;
  return !hasCases && folder !== 'foreign';
}

/** Folders that need keys of two cases exist only where the ledger has them. */
const pairs = (): readonly (readonly [Ledger, Folder, string])[] =>
  (Object.keys(LEDGERS) as Ledger[]).flatMap((ledger) =>
    (Object.keys(FOLDERS) as Folder[])
      .filter((folder) => (LEDGERS[ledger] ?? []).length > 0 || !folder.startsWith('own, with'))
      .flatMap((folder) => CASES.map((case_id) => [ledger, folder, case_id] as const)),
  );

interface Owned {
  readonly ledger: string;
  readonly scribe: Scribe;
  readonly keys: string;
}

/** Adds the tests for one kind of store. `folder` is a new folder for every test. */
export function testKeyFolderPairs(kind: () => StoreKind, folder: () => string): void {
  const build = async (ledger: Ledger, number: number): Promise<Owned> => {
    const [name, keys] = [`ledger_${number}`, join(folder(), `keys-${number}`)];
    mkdirSync(keys, { recursive: true, mode: 0o700 });
    const store = await kind().create(name, keys);
    const scribe = await scribeOf(store);
    for (const [at, case_id] of (LEDGERS[ledger] ?? []).entries())
      await scribe.write(store, contentOf(number * 10 + at, case_id));
    if (LEDGERS[ledger]?.length === 0) await scribe.write(store, [opening(treeId(number * 10), ONE)]);
    await store.close();
    // The first opening after a key was made names the folder.
    const again = await kind().open(name, keys);
    await again.acquire();
    await again.close();
    return { ledger: name, scribe, keys };
  };

  test.each(pairs())(
    'a ledger %s, a key folder %s, and a content of %s',
    async (ledger, folderKind, case_id) => {
      const owned = await build(ledger, 1);
      const foreign = await build('with the same cases', 2);
      expect(existsSync(join(foreign.keys, KEY_FOLDER_NAME))).toBe(true);
      const used = join(folder(), 'used');
      cpSync(owned.keys, used, { recursive: true });
      FOLDERS[folderKind](used, foreign.keys);
      const before = filesOf(used);
      const { scribe } = owned;
      const write = async (): Promise<void> => {
        const store = await kind().open(owned.ledger, used);
        try {
          scribe.epoch = await store.acquire();
          await scribe.write(store, contentOf(50, case_id));
        } finally {
          await store.close();
        }
      };
      if (isAllowed(ledger, folderKind, case_id)) {
        await write();
        return;
      }
      await expect(write()).rejects.toMatchObject({ code: expect.stringMatching(/^LEDGER_(?:CONFLICT|TAMPERED)$/) });
      // Nothing was encrypted with a wrong key, and no key was made for it.
      expect([...filesOf(used)].filter(([name]) => name.endsWith('.key') && !before.has(name))).toEqual([]);
      const store = await kind().open(owned.ledger, owned.keys);
      scribe.epoch = await store.acquire();
      await scribe.write(store, contentOf(60, case_id));
      for await (const { tree_id } of store.trees())
        for await (const { seq } of store.tree(tree_id)) await store.artifactsOf({ tree_id, seq });
      await store.close();
    },
    60_000,
  );

  test('a reader with the key folder of another ledger is refused, and does not call the ledger altered', async () => {
    const owned = await build('with cases', 1);
    const foreign = await build('with the same cases', 2);
    const open = async (keys: string): Promise<void> => (await kind().open(owned.ledger, keys, true)).close();
    await expect(open(foreign.keys)).rejects.toMatchObject({
      code: 'LEDGER_CONFLICT',
      message: expect.stringContaining('is not the key folder of the ledger'),
    });
    await open(owned.keys);
    await open(join(folder(), 'no-keys'));
  });
}

const contentOf = (tree: number, case_id: string): readonly Draft[] => [
  opening(treeId(tree), case_id),
  answered(treeId(tree), content('result', `of ${tree} in ${case_id}`, case_id)),
];

const filesOf = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    (existsSync(folder) ? readdirSync(folder) : []).map((name) => [name, readFileSync(join(folder, name), 'hex')]),
  );
