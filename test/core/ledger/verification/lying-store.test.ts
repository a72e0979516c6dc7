// A store that lies: it serves a fork, an older state, a truncated log, or different answers to different readers. Each
// lie is shown to every party that could detect it, with real homes and a real SQLite:
//
//   opening   the next process that opens the home for writing: it has the head file, and reads the log from there if
//             the file is behind the ledger
//   verify    `ledger verify`: it reads the whole log
//   keeper    a third party with the public key and an earlier checkpoint: `ledger prove --from`, `check-proof`
//
// If files and keys were replaced together, the home is consistent in itself, and only the keeper detects it.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { headFile } from '../../../../src/stores/ledger/head-file.js';
import { LedgerError } from '../../../../src/core/errors.js';
import { openCheckpoint } from '../../../../src/core/ledger/proof/checkpoint.js';
import { verifyProofFile } from '../../../../src/runtime/ledger/proof-file.js';
import { noteVerifier } from '../../../../src/core/ledger/proof/signed-note.js';
import type { LedgerStore, LogHead, StoredEntry } from '../../../../src/engine/ports/ledger/ledger-store.js';
import { writeEvidence } from '../../../../src/features/evidence/write-evidence.js';
import { createHome, homePaths, openHome, type HomePaths } from '../../../../src/home/home.js';
import {
  generateLedgerKey,
  installLedgerKey,
  readLedgerSigner,
  createHeadSeal,
} from '../../../../src/home/ledger-key.js';
import { LedgerReader } from '../../../../src/runtime/ledger/ledger-reader.js';
import { proveEntry, proveConsistency, requireSignedHead } from '../../../../src/runtime/ledger/ledger-proofs.js';
import { openTurnpike, openTurnpikeIn } from '../../../../src/host/turnpike.js';
import { openEvidence, verifyEvidence } from '../../../../src/runtime/ledger/open-evidence.js';
import { openLineFile } from '../../../../src/system/files/open-line-file.js';
import { writeFile } from 'node:fs/promises';
import { proposalId } from '../../../fixtures/entries.js';
import { EMPTY_HEAD } from '../../../../src/core/ledger/proof/merkle.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

const NAME = 'example.org/log';
const MS_MAX = 60_000;
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const folder = tempFolder('lying');

const at = (name: string): HomePaths => homePaths(join(folder, name));
const copy = (from: string, to: string): HomePaths => {
  rmSync(join(folder, to), { recursive: true, force: true });
  cpSync(join(folder, from), join(folder, to), { recursive: true });
  return at(to);
};

/** An agent that writes a few notes, each with this text. */
async function work(home: HomePaths, words: string, steps: number): Promise<void> {
  const turnpike = await openTurnpike({ home: home.home, control: false, log });
  const agent = await turnpike.startAgent({ case: 'case-0001' });
  for (let step = 0; step < steps; step += 1) {
    const args = { path: `/sandbox/note-${step}.md`, content: words };
    const proposal = { schema_version: '1.0.0', id: proposalId(step), reasoning: words, action: 'WRITE_FILE', args };
    await agent.submit(JSON.stringify(proposal));
  }
  await agent.end();
  await turnpike.close();
}

/** The signed head of a home, as a third party may have stored it. */
async function checkpointOf(home: HomePaths): Promise<string> {
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  const head = requireSignedHead(await externalHeadStore.read());
  await store.close();
  return head.note;
}

/** The ledger at an early state, its current state, and a fork of the early state that is longer. */
let early: string;
let keptCheckpoint: string;
let key: NonNullable<ReturnType<typeof noteVerifier>>;
beforeAll(async () => {
  const original = await createHome(join(folder, 'original'), generateLedgerKey(NAME));
  await work(original, 'before', 2);
  copy('original', 'early');
  early = await checkpointOf(original);
  await work(original, 'as it was', 2);
  keptCheckpoint = await checkpointOf(original);
  key = noteVerifier(readFileSync(original.ledgerKey.publicKey, 'utf8').trim())!;
  await work(copy('early', 'fork'), 'as it was not', 4);
}, MS_MAX);

/** The result for each party; `fine` if it detects nothing. */
interface Seen {
  readonly opening: string;
  readonly verify: string;
  readonly keeper: string;
}

type Lie = (store: LedgerStore) => LedgerStore;
const HONEST: Lie = (store) => store;

async function seenOf(home: HomePaths, lie: Lie = HONEST, note = keptCheckpoint): Promise<Seen> {
  const verify = await verified(home, lie);
  const keeper = await keeping(home, lie, note);
  return { opening: await opened(home, lie), verify, keeper };
}

const codeOf = (error: unknown): string => {
  if (error instanceof LedgerError) return error.code;
  throw error;
};

async function opened(home: HomePaths, lie: Lie): Promise<string> {
  try {
    const { store, externalHeadStore } = openHome(home, { readOnly: false });
    const turnpike = await openTurnpikeIn(
      { home, store: lie(store), externalHeadStore },
      { home: home.home, control: false, log },
    );
    await turnpike.close();
    return 'fine';
  } catch (error) {
    return codeOf(error);
  }
}

/** @returns the broken rules, in order */
async function verified(home: HomePaths, lie: Lie): Promise<string> {
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  try {
    const verdict = await new LedgerReader(lie(store), externalHeadStore).verify();
    return verdict.ok ? 'fine' : [...new Set(verdict.problems.map(({ rule }) => rule))].sort().join(' ');
  } catch (error) {
    return codeOf(error);
  } finally {
    await store.close();
  }
}

/** A log without an archived part. */
const whole = (store: Pick<LedgerStore, 'log'>) => ({ begin: EMPTY_HEAD, log: (from?: number) => store.log(from) });

async function keeping(home: HomePaths, lie: Lie, note: string): Promise<string> {
  const older = openCheckpoint(Buffer.from(note), key)!;
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  try {
    const proof = await proveConsistency(whole(lie(store)), await externalHeadStore.read(), { ...older, note }, key);
    const verdict = verifyProofFile(Buffer.from(proof), key);
    return verdict.ok ? 'fine' : verdict.why;
  } catch (error) {
    return codeOf(error);
  } finally {
    await store.close();
  }
}

const NOTHING: Seen = { opening: 'fine', verify: 'fine', keeper: 'fine' };

describe('a store that serves a fork', () => {
  test('no party detects anything in the honest home', async () => {
    expect(await seenOf(copy('original', 'own'))).toEqual(NOTHING);
    expect(await seenOf(copy('original', 'own'), HONEST, early)).toEqual(NOTHING);
  });

  test('D15: every party refuses a fork behind our head file', async () => {
    const home = copy('fork', 'forked');
    cpSync(at('original').head, home.head);
    expect(await seenOf(home)).toEqual({
      opening: 'LEDGER_BELOW_HEAD',
      verify: 'head.differs',
      keeper: 'LEDGER_TAMPERED',
    });
  });

  test('D15: a fork signed by our key looks correct locally; a holder of a checkpoint after the fork detects it', async () => {
    const home = copy('fork', 'forked');
    expect(await seenOf(home)).toEqual({ ...NOTHING, keeper: 'LEDGER_TAMPERED' });
    // A checkpoint from before the fork is true of both.
    expect(await seenOf(home, HONEST, early)).toEqual(NOTHING);
    // No consistency proof connects the two checkpoints, whatever hashes it contains.
    const proof = {
      format: 'turnpike/consistency-proof@v1',
      older: keptCheckpoint,
      newer: await checkpointOf(home),
      proof: [],
    };
    expect(verifyProofFile(Buffer.from(JSON.stringify(proof)), key)).toMatchObject({ ok: false });
  });

  test('D15: every party refuses a fork signed by another key; with the keys replaced too, every holder of our key refuses it', async () => {
    const home = await signedByAnother('early', 'strange');
    await work(home, 'as it was not', 4);
    const exchanged = copy('strange', 'exchanged');
    cpSync(at('original').keys, exchanged.keys, { recursive: true });
    expect(await seenOf(exchanged)).toEqual({
      opening: 'LEDGER_TAMPERED',
      verify: 'LEDGER_TAMPERED',
      keeper: 'LEDGER_TAMPERED',
    });
    expect(await seenOf(home)).toEqual({ ...NOTHING, keeper: 'LEDGER_TAMPERED' });
    const unsigned = 'one of its checkpoints is not signed by this key';
    expect(await seenOf(home, HONEST, early)).toEqual({ ...NOTHING, keeper: unsigned });
    const entry = await ofHome(home, async (store, head) => proveEntry(whole(store), head, 3));
    expect(verifyProofFile(Buffer.from(entry), key)).toEqual({
      ok: false,
      why: 'its checkpoint is not signed by this key',
    });
  });
});

describe('a store that serves an older state', () => {
  test('D15: with the current head file every party refuses it', async () => {
    const home = copy('early', 'older');
    cpSync(at('original').head, home.head);
    expect(await seenOf(home)).toEqual({
      opening: 'LEDGER_BELOW_HEAD',
      verify: 'head.below',
      keeper: 'LEDGER_TAMPERED',
    });
  });

  test('D15: with the old head file it looks correct locally; a holder of a later checkpoint detects it', async () => {
    const home = copy('early', 'older');
    expect(await seenOf(home)).toEqual({ ...NOTHING, keeper: 'LEDGER_TAMPERED' });
    // Also when the log has grown since, and is longer than the checkpoint.
    await work(home, 'other', 4);
    expect(await seenOf(home)).toEqual({ ...NOTHING, keeper: 'LEDGER_TAMPERED' });
  });
});

describe('a store that truncates the log', () => {
  const upTo = (end: (size: number) => number): Lie => {
    return (store) =>
      lying(store, {
        log: async function* (from = 0) {
          const { size } = await store.head();
          for await (const entry of store.log(from)) if (entry.log_index < end(size)) yield entry;
        },
      });
  };

  test.each([
    ['its last entry', (size: number) => size - 1],
    ['half of it', (size: number) => size >> 1],
    ['all of it', () => 0],
  ])('D15: every party refuses a log without %s whose head includes it', async (_what, end) => {
    expect(await seenOf(copy('original', 'cut'), upTo(end))).toEqual({
      opening: 'LEDGER_TAMPERED',
      verify: expect.stringContaining('head.below') as unknown,
      keeper: 'LEDGER_TAMPERED',
    });
    expect(await keeping(copy('original', 'cut'), upTo(end), early)).toBe('LEDGER_TAMPERED');
  });

  test('D15: and one whose head omits it too', async () => {
    const home = copy('original', 'cut');
    const older = await ofHome(at('early'), (store) => store.head());
    const both: Lie = (store) => lying(upTo(() => older.size)(store), { head: () => Promise.resolve(older) });
    expect(await seenOf(home, both)).toEqual({
      opening: 'LEDGER_BELOW_HEAD',
      verify: expect.stringContaining('head.below') as unknown,
      keeper: 'LEDGER_TAMPERED',
    });
  });

  test('D15: every recipient refuses a bundle made from a truncated log', async () => {
    expect(await bundleOf(HONEST)).toBe('fine');
    await expect(bundleOf(upTo((size) => size - 1))).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  });
});

describe('a store that changes its answers between reads', () => {
  /** The first reads of the log return ours; each later one returns the fork. */
  const twoFaced = (forked: readonly StoredEntry[], ours = 1): Lie => {
    let readings = 0;
    return (store) =>
      lying(store, {
        log: async function* (from = 0) {
          readings += 1;
          if (readings <= ours) yield* store.log(from);
          else yield* forked.filter(({ log_index }) => log_index >= from);
        },
      });
  };
  let forked: StoredEntry[];
  beforeAll(async () => {
    forked = await ofHome(at('fork'), async (store) => {
      const entries: StoredEntry[] = [];
      for await (const entry of store.log()) entries.push(entry);
      return entries;
    });
  });

  test('D15: a verdict covers one read of the log: the second read is refused', async () => {
    const lie = twoFaced(forked);
    const home = copy('original', 'faces');
    const { store, externalHeadStore } = openHome(home, { readOnly: true });
    const reader = new LedgerReader(lie(store), externalHeadStore);
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(await reader.verify()).toMatchObject({ ok: false });
    await store.close();
  });

  test('D15: an entry and its path to the root from different reads give no proof', async () => {
    const lie = twoFaced(forked);
    const proof = ofHome(at('original'), (store, head) => proveEntry(whole(lie(store)), head, 3));
    await expect(proof).rejects.toMatchObject({ code: 'LEDGER_TAMPERED' });
  });

  test('D15: the check at opening does not vouch for later reads', async () => {
    // With a head file that is behind: the opening reads the beginning, the entries up to that head, and the end.
    const home = copy('original', 'faces');
    cpSync(at('early').head, home.head);
    const { store, externalHeadStore } = openHome(home, { readOnly: false });
    const ground = { home, store: twoFaced(forked, 3)(store), externalHeadStore };
    const turnpike = await openTurnpikeIn(ground, { home: home.home, control: false, log });
    expect(await turnpike.ledger.verify()).toMatchObject({ ok: false });
    await turnpike.close();
  });
});

describe('a store whose head lies', () => {
  const other = 'f'.repeat(64);
  const saying = (change: (head: LogHead) => Partial<LogHead>): Lie => {
    return (store) =>
      lying(store, {
        head: async () => {
          const head = await store.head();
          return { ...head, ...change(head) };
        },
      });
  };

  test.each<[string, (head: LogHead) => Partial<LogHead>, Partial<Seen>]>([
    ['another root', () => ({ root: other }), { opening: 'LEDGER_BELOW_HEAD', verify: 'head.stored' }],
    ['a smaller size', ({ size }) => ({ size: size - 1 }), { opening: 'LEDGER_BELOW_HEAD', verify: 'head.stored' }],
    ['a larger size', ({ size }) => ({ size: size + 1 }), { opening: 'LEDGER_TAMPERED', verify: 'head.stored' }],
    [
      'another frontier',
      ({ frontier }) => ({ frontier: frontier.map(() => other) }),
      { opening: 'LEDGER_TAMPERED', verify: 'head.stored' },
    ],
  ])('D15: with %s: the opening and verify refuse it', async (_what, change, seen) => {
    // No proof depends on it: the keeper compares the entries with what was signed.
    expect(await seenOf(copy('original', 'head'), saying(change))).toEqual({ ...NOTHING, ...seen });
  });

  test('D15: a bundle states the head computed from its entries, whatever the stored head is', async () => {
    expect(await bundleOf(saying(() => ({ root: other })))).toBe('fine');
  });
});

/** A store that behaves like this one, except for its lies. */
function lying(store: LedgerStore, lies: Partial<LedgerStore>): LedgerStore {
  return new Proxy(store, {
    get(of, name) {
      const member: unknown = Reflect.get(lies, name) ?? Reflect.get(of, name, of);
      return typeof member === 'function' ? (member as () => unknown).bind(of) : member;
    },
  });
}

/** The home with a foreign key of the same name, and a head that this key has signed. */
async function signedByAnother(from: string, to: string): Promise<HomePaths> {
  const home = copy(from, to);
  const head = await ofHome(home, (store) => store.head());
  for (const path of [home.head, home.ledgerKey.privateKey, home.ledgerKey.publicKey]) rmSync(path);
  const file = headFile(home.head, createHeadSeal(installLedgerKey(home.ledgerKey, generateLedgerKey(NAME))));
  await file.write(head);
  await file.close();
  return home;
}

type SignedHead = ReturnType<typeof requireSignedHead>;

async function ofHome<T>(
  home: HomePaths,
  ask: (store: LedgerStore, head: SignedHead | null) => Promise<T>,
): Promise<T> {
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  try {
    const head = await externalHeadStore.read();
    return await ask(store, head === null ? null : requireSignedHead(head));
  } finally {
    await store.close();
  }
}

/** The bundle that a store produces, as verified by a third party with our public key. */
async function bundleOf(lie: Lie): Promise<string> {
  const lines: string[] = [];
  const signer = readLedgerSigner(at('original').ledgerKey)!;
  await ofHome(at('original'), (store, head) =>
    writeEvidence(lie(store), head!, signer, (line) => Promise.resolve(void lines.push(line))),
  );
  const path = join(folder, 'bundle');
  await writeFile(path, lines.join(''));
  const file = await openLineFile(path);
  const opened = openEvidence(file, key).then(verifyEvidence);
  const verdict = await opened.finally(() => file.close());
  return verdict.ok ? 'fine' : verdict.problems.map(({ rule }) => rule).join(' ');
}
