// Faults that a store could have, each planted in a real one: the commit checks must find every one of them.

import { EMPTY_HEAD, extendHead } from '../../../src/core/ledger/proof/merkle.js';
import type {
  Batch,
  LedgerStore,
  LogHead,
  MarkKey,
  StoredEntry,
  TreeAppend,
} from '../../../src/engine/ports/ledger/ledger-store.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import { all } from '../../fixtures/entries.js';

export interface PlantedStore {
  readonly name: string;
  /** A check that finds the fault; others may too. */
  readonly found_by: string;
  readonly plant: (store: LedgerStore) => LedgerStore;
}

const AWAITED = { head: null, first_log_indexes: null };

const replaced = (inner: LedgerStore, methods: Partial<LedgerStore>): LedgerStore =>
  Object.assign(new ForwardingStore(inner), methods);

/** Reports every batch of more than one tree as committed, and drops it. */
const unwritten = (inner: LedgerStore): LedgerStore =>
  replaced(inner, {
    commit: (batch) => (batch.trees.length > 1 ? Promise.resolve(AWAITED) : inner.commit(batch)),
  });

const halved = (inner: LedgerStore): LedgerStore =>
  replaced(inner, { commit: ({ epoch, trees }) => inner.commit({ epoch, trees: trees.slice(0, 1) }) });

/** Appends a repeated batch again. */
function twice(inner: LedgerStore): LedgerStore {
  const seen = new Set<string>();
  const lengths = new Map<string, number>();
  const commit = async ({ epoch, trees }: Batch) => {
    const again = trees.some(({ entries }) => seen.has(entries[0]?.leaf_hash ?? ''));
    const moved = again ? trees.map((append) => behind(append, lengths.get(append.tree_id) ?? 0)) : trees;
    const result = await inner.commit({ epoch, trees: moved });
    for (const { tree_id, from, entries } of moved) {
      seen.add(entries[0]?.leaf_hash ?? '');
      lengths.set(tree_id, from + entries.length);
    }
    return result;
  };
  return replaced(inner, { commit });
}

const behind = (append: TreeAppend, from: number): TreeAppend => ({
  ...append,
  from,
  entries: append.entries.map((sealed, n) => ({ ...sealed, entry: { ...sealed.entry, seq: from + n } })),
  opened: from === 0 ? append.opened : null,
  proposals: [],
  inputs: [],
});

/** Writes the entries of an append in reverse order. */
const backwards = (inner: LedgerStore): LedgerStore =>
  replaced(inner, {
    commit: ({ epoch, trees }) =>
      inner.commit({
        epoch,
        trees: trees.map((append) => ({
          ...behind({ ...append, entries: append.entries.toReversed() }, append.from),
          proposals: append.proposals,
          inputs: append.inputs,
          opened: append.opened,
        })),
      }),
  });

/** The log changed by `change`, with a matching head. */
function logged(inner: LedgerStore, change: (log: readonly StoredEntry[]) => readonly StoredEntry[]): LedgerStore {
  const entries = async (): Promise<readonly StoredEntry[]> =>
    change(await all(inner.log())).map((entry, log_index) => ({ ...entry, log_index }));
  return replaced(inner, {
    log: async function* (fromIndex = 0) {
      yield* (await entries()).slice(fromIndex);
    },
    head: async (): Promise<LogHead> =>
      extendHead(
        EMPTY_HEAD,
        (await entries()).map(({ leaf_hash }) => leaf_hash),
      ),
    integrate: async (integration) => {
      const head = await inner.head();
      const leaves = integration.appends.flatMap(({ leaf_hashes }) => leaf_hashes);
      return inner.integrate({ ...integration, from: head.size, head: extendHead(head, leaves) });
    },
  });
}

const forgetful = (inner: LedgerStore, forgets: (key: MarkKey) => boolean): LedgerStore =>
  replaced(inner, {
    marks: async (keys) => (await inner.marks(keys)).map((mark, at) => (forgets(keys[at]!) ? null : mark)),
  });

const WRITING: readonly PlantedStore[] = [
  {
    name: 'acknowledges a batch that it does not write',
    found_by: 'an acknowledged batch is in its trees, complete and in order',
    plant: unwritten,
  },
  {
    name: 'writes half of a batch',
    found_by: 'an acknowledged batch is in its trees, complete and in order',
    plant: halved,
  },
  {
    name: 'writes a repeated batch twice',
    found_by: 'a repeated batch is reported as committed, and nothing is written',
    plant: twice,
  },
  {
    name: 'reverses the entries of an append',
    found_by: 'an acknowledged batch is in its trees, complete and in order',
    plant: backwards,
  },
  {
    name: 'accepts every batch as one of its own epoch',
    found_by: 'a batch that is repeated after its epoch ended conflicts',
    plant: (inner) => {
      let epoch = 0;
      const acquire = async () => (epoch = await inner.acquire());
      return replaced(inner, { acquire, commit: ({ trees }) => inner.commit({ epoch, trees }) });
    },
  },
  {
    name: 'reports every conflicting batch as committed',
    found_by: 'different entries at the same position of a tree conflict, and nothing of them is written',
    plant: (inner) => replaced(inner, { commit: (batch) => inner.commit(batch).catch(() => AWAITED) }),
  },
  {
    name: 'commits the trees of a batch one by one',
    found_by: 'a batch of which only one append is committed conflicts, and nothing of it is written',
    plant: (inner) =>
      replaced(inner, {
        commit: async ({ epoch, trees }) => {
          let result = null;
          for (const append of trees) result = await inner.commit({ epoch, trees: [append] });
          return result ?? inner.commit({ epoch, trees });
        },
      }),
  },
];

const PLACING: readonly PlantedStore[] = [
  {
    name: 'integrates with a gap',
    found_by: 'integrated entries are in the log once, in the order of their trees',
    plant: (inner) => logged(inner, (log) => log.filter((_, index) => index !== 7)),
  },
  {
    name: 'integrates an entry twice',
    found_by: 'integrated entries are in the log once, in the order of their trees',
    plant: (inner) => logged(inner, (log) => [...log.slice(0, 5), ...log.slice(4)]),
  },
  {
    name: 'integrates the entries of a tree in another order',
    found_by: 'integrated entries are in the log once, in the order of their trees',
    plant: (inner) => logged(inner, (log) => [...log.slice(0, 2), ...log.slice(2, 4).toReversed(), ...log.slice(4)]),
  },
  {
    name: 'forgets pending appends',
    found_by: 'integrated entries are in the log once, in the order of their trees',
    plant: (inner) => replaced(inner, { pending: () => Promise.resolve([]) }),
  },
  {
    name: 'integrates at any size of the log',
    found_by: 'an integration at another size of the log, with a gap, or repeated, is refused',
    plant: (inner) => replaced(inner, { integrate: (one) => inner.integrate(one).then(() => true) }),
  },
  {
    name: 'returns a wrong first log index of a commit',
    found_by: 'the result of a commit contains the first log index of each append',
    plant: (inner) =>
      replaced(inner, {
        commit: async (batch) => {
          const { head, first_log_indexes: firsts } = await inner.commit(batch);
          return { head, first_log_indexes: firsts?.map((first) => first + 1) ?? null };
        },
      }),
  },
];

const READING: readonly PlantedStore[] = [
  {
    name: 'loses the mark of an input',
    found_by: 'several marks are looked up in one call, in order, with null for a missing one',
    plant: (inner) => forgetful(inner, (key) => 'input_id' in key),
  },
  {
    name: 'loses the mark of a proposal',
    found_by: 'several marks are looked up in one call, in order, with null for a missing one',
    plant: (inner) => forgetful(inner, (key) => 'proposal_id' in key),
  },
  {
    name: 'returns marks in another order',
    found_by: 'several marks are looked up in one call, in order, with null for a missing one',
    plant: (inner) => replaced(inner, { marks: async (keys) => (await inner.marks(keys)).toReversed() }),
  },
  {
    name: 'returns the content of another entry',
    found_by: 'the returned content belongs to the given entry, even if the given log index is wrong',
    plant: (inner) =>
      replaced(inner, { artifactsOf: ({ tree_id, seq }) => inner.artifactsOf({ tree_id, seq: seq - 1 }) }),
  },
  {
    name: 'trusts the log index that a caller passes',
    found_by: 'the returned content belongs to the given entry, even if the given log index is wrong',
    plant: (inner) =>
      replaced(inner, {
        artifactsOf: async (place) => {
          const named = (await all(inner.log())).find(({ log_index }) => log_index === place.log_index);
          return inner.artifactsOf(named ?? place);
        },
      }),
  },
  {
    name: 'finds no tree of a case that has ended',
    found_by: 'the trees of a case are found, ended or not, in the order in which they were opened',
    plant: (inner) =>
      replaced(inner, { treesOf: async (id) => (await inner.treesOf(id)).filter(({ ended }) => !ended) }),
  },
  {
    name: 'reports every open tree as finished',
    found_by: 'open trees are listed with their recovery hints, and ended ones are not',
    plant: (inner) =>
      replaced(inner, {
        openTrees: async function* () {
          for await (const tree of inner.openTrees()) yield { ...tree, unfinished: false };
        },
      }),
  },
  {
    name: 'omits content from histories',
    found_by: 'histories of several trees come tree by tree, from the given positions, with their content',
    plant: (inner) =>
      replaced(inner, {
        histories: async function* (places) {
          for await (const { entry } of inner.histories(places)) yield { entry, artifacts: [] };
        },
      }),
  },
];

export const PLANTED_STORES: readonly PlantedStore[] = [...WRITING, ...PLACING, ...READING];
