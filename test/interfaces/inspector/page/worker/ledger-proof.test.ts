// The proof in a reader's browser, compared with the ledger's own code, and run on tampered ledgers.

import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { packRows, toEventRow } from '../../../../../src/interfaces/inspector/contract/event-row.js';
import type { EventRow, LedgerInfo } from '../../../../../src/core/contract/inspection/inspection.js';
import { appendLeaf, leafHash, rootOf } from '../../../../../src/core/ledger/proof/merkle.js';
import { notePrivateKey, noteSigner } from '../../../../../src/core/ledger/proof/signed-note.js';
import { signCheckpoint } from '../../../../../src/core/ledger/proof/checkpoint.js';
import { InlineFeed } from '../../../../../src/interfaces/inspector/page/data/inline-feed.js';
import type { InlineData } from '../../../../../src/interfaces/inspector/render-one-file.js';
import { ProofTracker, type ProofSource } from '../../../../../src/interfaces/inspector/page/store/proof-tracker.js';
import { Rows } from '../../../../../src/interfaces/inspector/page/store/rows/rows.js';
import { Store } from '../../../../../src/interfaces/inspector/page/store/store.js';
import {
  hasContentHash,
  isTextOfRow,
  LedgerProof,
  type ProofState,
} from '../../../../../src/interfaces/inspector/page/worker/ledger-proof.js';
import {
  CompactRange,
  fromHex,
  hex,
  leafBytes,
  browserSha256,
  type Hash,
} from '../../../../../src/interfaces/inspector/page/worker/compact-range.js';
import {
  parseCheckpoint,
  verifySignature,
} from '../../../../../src/interfaces/inspector/page/worker/checkpoint-note.js';
import { PartProver } from '../../../../../src/interfaces/inspector/page/worker/part-prover.js';
import {
  createWorkerProver,
  type ProofMessage,
  type ProofRequest,
  type WorkerLike,
} from '../../../../../src/interfaces/inspector/page/worker/worker-prover.js';
import { infoOf } from '../../../../fixtures/inspected-tree.js';

const signer = noteSigner(notePrivateKey('turnpike/test', new Uint8Array(32).fill(7)) ?? '');
const stranger = noteSigner(notePrivateKey('turnpike/test', new Uint8Array(32).fill(8)) ?? '');
if (signer === null || stranger === null) throw new Error('no signer');

/** Entries of two trees, each naming its predecessor in its own tree. */
function ledger(count: number): string[] {
  const last = new Map<string, { prev: string; seq: number }>();
  return Array.from({ length: count }, (_, at) => {
    const tree_id = at % 3 === 0 ? 'run_a' : 'run_b';
    const { prev, seq } = last.get(tree_id) ?? { prev: '0'.repeat(64), seq: 0 };
    const body = { kind: 'end', input_id: `x/${at}`, run_id: tree_id, time: '2026-11-22T10:00:00.000Z' };
    const text = JSON.stringify({ body, prev, seq, tree_id, type: 'input' });
    last.set(tree_id, { prev: leafHash(text), seq: seq + 1 });
    return text;
  });
}

const frontierOf = (texts: readonly string[]): readonly string[] =>
  texts.reduce<readonly string[]>((frontier, text, at) => appendLeaf(frontier, at, leafHash(text)), []);
const noteOf = (texts: readonly string[], by = signer): string =>
  signCheckpoint({ size: texts.length, root: rootOf(frontierOf(texts)) }, by);
const shownFor =
  (texts: readonly string[]) =>
  (at: number): EventRow | null => {
    const text = texts[at];
    return text === undefined ? null : toEventRow(text, at, leafHash(text));
  };

const TEXTS = ledger(23);
const WHOLE = infoOf(23);

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
};

async function proved(texts: readonly string[], shown = texts, note: string | null = null): Promise<ProofState> {
  const proof = new LedgerProof({ begin: 0, frontier: [] });
  await proof.checkpoint(note, signer?.vkey ?? '');
  for (let at = 0; at < texts.length && proof.broken === null; at += 5) {
    await proof.take(texts.slice(at, at + 5), shownFor(shown));
  }
  return proof.state();
}

describe('the Merkle tree', () => {
  test('has the root of RFC 6962, however the leaves are split, and wherever the log starts', async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(cuts, fc.nat({ max: 22 }), async (sizes, begin) => {
        const range = new CompactRange(browserSha256, begin, frontierOf(TEXTS.slice(0, begin)));
        for (const size of sizes) {
          const part = TEXTS.slice(range.size, range.size + size);
          await range.append(await Promise.all(part.map((text) => browserSha256(leafBytes(text)))));
        }
        expect(await range.root()).toBe(rootOf(frontierOf(TEXTS.slice(0, range.size))));
      }),
      { numRuns: 60 },
    );
  });

  test('an empty log has the root of no leaves; a frontier that does not match the size is rejected', async () => {
    expect(await new CompactRange(browserSha256).root()).toBe(rootOf([]));
    expect(() => new CompactRange(browserSha256, 3, ['00'])).toThrow('frontier');
    expect(hex(await browserSha256(leafBytes(TEXTS[0] ?? '')))).toBe(leafHash(TEXTS[0] ?? ''));
  });
});

describe('the checkpoint', () => {
  test('has size and root, and the signature of its key', async () => {
    const note = noteOf(TEXTS);
    expect(parseCheckpoint(note)).toEqual({ origin: 'turnpike/test', size: 23, root: rootOf(frontierOf(TEXTS)) });
    expect(await verifySignature(note, signer.vkey, browserSha256)).toBe('right');
  });

  test('rejects a changed text, another key of the same name, two signatures, and a malformed note', async () => {
    const note = noteOf(TEXTS);
    const wrong = [
      note.replace('\n23\n', '\n22\n'),
      noteOf(TEXTS, stranger),
      note + (note.split('\n\n')[1] ?? ''),
      note.replace('turnpike/test\n', 'turnpike/else\n'),
      note.slice(0, -9),
      'nothing',
    ];
    for (const text of wrong)
      expect([text, await verifySignature(text, signer.vkey, browserSha256)]).toEqual([text, 'wrong']);
    expect(await verifySignature(note, signer.vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+'), browserSha256)).toBe(
      'wrong',
    );
    // A key must be selected by its own name, even if the note names another key id.
    const [text = '', line = ''] = note.split('\n\n');
    const bytes = Buffer.from(line.trim().split(' ')[2] ?? '', 'base64');
    bytes.fill(0, 0, 4);
    const renamed = `${text}\n\n— turnpike/test ${bytes.toString('base64')}\n`;
    expect(await verifySignature(renamed, signer.vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+'), browserSha256)).toBe(
      'wrong',
    );
    expect(parseCheckpoint('x\n-1\nAAAA\n')).toBe(null);
  });
});

describe('the proof', () => {
  test('verifies a whole ledger to its end, and at its checkpoint', async () => {
    const state = await proved(TEXTS, TEXTS, noteOf(TEXTS.slice(0, 13)));
    expect(state).toMatchObject({ verified: 23, broken: null, root: rootOf(frontierOf(TEXTS)) });
    expect(state.checkpoint).toMatchObject({ size: 13, signature: 'right', fits: true });
  });

  test('names the entry that was changed, whatever the change', async () => {
    const entries = fc.nat({ max: 22 });
    await fc.assert(
      fc.asyncProperty(entries, async (at) => {
        const changed = TEXTS.map((text, place) => (place === at ? text.replace('10:00:00', '10:00:01') : text));
        expect((await proved(changed, TEXTS)).broken?.at).toBe(at);
        // If the list was changed as well, the next entry of the tree or the root reveals it.
        const { broken } = await proved(changed, changed, noteOf(TEXTS));
        expect(broken === null ? -1 : (broken.at ?? 99)).toBeGreaterThan(at);
      }),
      { numRuns: 40 },
    );
  });

  test('without a signature, the next entry of its tree reveals a changed one', async () => {
    const changed = TEXTS.map((text, place) => (place === 6 ? text.replace('10:00:00', '10:00:01') : text));
    const { broken } = await proved(changed, changed);
    expect(broken).toEqual({ at: 9, why: 'It names another entry as its predecessor' });
  });

  test('finds an omitted, inserted or moved entry', async () => {
    const without = TEXTS.filter((_, at) => at !== 7);
    const twice = [...TEXTS.slice(0, 8), ...TEXTS.slice(7)];
    const moved = TEXTS.map((text, at) => (at === 7 ? (TEXTS[8] ?? '') : at === 8 ? (TEXTS[7] ?? '') : text));
    for (const texts of [without, twice, moved]) {
      const { broken } = await proved(texts);
      expect([7, 8]).toContain(broken?.at);
    }
  });

  test('finds a list that differs from the ledger', async () => {
    const proof = new LedgerProof({ begin: 0, frontier: [] });
    const lie = (at: number): EventRow | null => {
      const row = shownFor(TEXTS)(at);
      return row !== null && at === 4 ? { ...row, tone: 'denied' } : row;
    };
    await proof.take(TEXTS, lie);
    expect(proof.broken).toMatchObject({ at: 4 });
    // Of a broken ledger nothing counts as verified.
    expect(await proof.state()).toMatchObject({ verified: 0, read: 4 });
  });

  test('finds a root that differs from the signed one, although every entry is valid', async () => {
    const other = ledger(23).map((text) => text.replaceAll('10:00', '11:00'));
    const state = await proved(TEXTS, TEXTS, noteOf(other));
    expect(state.broken).toMatchObject({ at: null });
    expect(state.checkpoint).toMatchObject({ fits: false });
  });

  test('continues from the start of a truncated log', async () => {
    const proof = new LedgerProof({ begin: 9, frontier: frontierOf(TEXTS.slice(0, 9)) });
    await proof.checkpoint(noteOf(TEXTS), signer.vkey);
    await proof.take(TEXTS.slice(9), shownFor(TEXTS));
    expect(await proof.state()).toMatchObject({ verified: 23, broken: null, checkpoint: { fits: true } });
  });

  test('reports a malformed entry, and throws nothing', async () => {
    const state = await proved([...TEXTS.slice(0, 3), 'null', '{']);
    expect(state.broken).toMatchObject({ at: 3 });
  });
});

describe('the prover', () => {
  let states: (ProofState | null)[] = [];
  beforeAll(() => {
    states = [];
  });

  test('reads the whole log, and again after it has grown, with newer signatures', async () => {
    const asked: number[] = [];
    const prover = new PartProver(
      (from, to) => {
        asked.push(from);
        return Promise.resolve(TEXTS.slice(from, Math.min(to, from + 4)));
      },
      (state) => {
        states.push(state);
        // It is still busy when it reports its progress for the last time.
        if (state?.verified === 10 && states.filter((one) => one?.verified === 10).length === 2)
          prover.onGrowth({ size: 23, checkpoint: noteOf(TEXTS), key: signer.vkey });
      },
    );
    prover.begin(WHOLE);
    prover.addRows(packRows(TEXTS.map((text, at) => toEventRow(text, at, leafHash(text)))));
    prover.onGrowth({ size: 10, checkpoint: null, key: null });
    await until(() => states.at(-1)?.checkpoint?.fits === true);
    expect(states.at(-1)).toMatchObject({ verified: 23, broken: null, checkpoint: { signature: 'right', fits: true } });
    expect(asked).toEqual([0, 4, 8, 10, 14, 18, 22]);
  });

  test('verifies nothing of an empty ledger until an entry arrives', async () => {
    const rows = new Rows(0, 0);
    const states: (ProofState | null)[] = [];
    const proof = new ProofTracker(
      (tell) =>
        new PartProver(
          (from, to) => Promise.resolve(TEXTS.slice(from, to)),
          (state) => {
            states.push(state);
            tell(state);
          },
        ),
    );
    const info: LedgerInfo = { ...WHOLE, size: 0 };
    proof.begin(
      { rows, info: { value: info } as ProofSource['info'], feed: { info: () => Promise.resolve(info) } },
      info,
    );
    await until(() => states.length > 0);
    expect([states[0]?.verified, proof.phase.value]).toEqual([0, 'idle']);
    rows.addPage(packRows(TEXTS.map((text, at) => toEventRow(text, at, leafHash(text)))));
    const timers = jest.spyOn(globalThis, 'setTimeout');
    proof.onGrowth();
    await until(() => proof.phase.value === 'verified');
    for (const { value } of timers.mock.results) clearTimeout(value as ReturnType<typeof setTimeout>);
    timers.mockRestore();
    expect(proof.state.value).toMatchObject({ verified: 23, broken: null });
  });

  test('unavailable entries prove nothing', async () => {
    const states: (ProofState | null)[] = [];
    const prover = new PartProver(
      () => Promise.resolve([]),
      (state) => void states.push(state),
    );
    prover.begin(WHOLE);
    prover.onGrowth({ size: 5, checkpoint: null, key: null });
    await until(() => states.length > 0);
    expect(states).toEqual([null]);
  });
});

test('invalid hashes of earlier entries are the result, without waiting', () => {
  const states: (ProofState | null)[] = [];
  const prover = new PartProver(
    () => Promise.resolve(TEXTS),
    (state) => void states.push(state),
  );
  prover.begin({ ...WHOLE, begin: 3, frontier: ['00'] });
  prover.onGrowth({ size: 23, checkpoint: null, key: null });
  expect(states).toMatchObject([{ verified: 3, root: null, broken: { at: null, why: expect.stringContaining('@3') } }]);
});

test('the first entry of a run tree names no predecessor', async () => {
  const [first = ''] = TEXTS;
  const cut = first.replace('0'.repeat(64), 'ab'.repeat(32));
  expect((await proved([cut])).broken).toEqual({ at: 0, why: 'It starts a run tree but names a previous entry' });
});

describe('an entry from a service', () => {
  const [text = '', other = ''] = TEXTS;
  const row = toEventRow(text, 0, leafHash(text));
  const held = (said: string, leaf_hash = leafHash(said)): Promise<boolean> =>
    isTextOfRow({ text: said, leaf_hash }, { row, leaf: null });

  test('is the proved one, or is not shown', async () => {
    expect(await held(text)).toBe(true);
    expect(await held(text.replace('x/0', 'x/9'))).toBe(false);
    expect(await held(other)).toBe(false);
    // The service claims that the other text has the hash of the row.
    expect(await held(other, leafHash(text))).toBe(false);
    expect(await held(text, leafHash(other))).toBe(false);
  });

  test('is rejected if only the beginning of its hash equals the proved one', async () => {
    // Its body differs in a member that no row shows. A forged hash with the same first 32 bits replaces a long search.
    const forged = text.replace('}', ',"zz":"another"}');
    const alike: Hash = async (bytes) => {
      const real = await browserSha256(bytes);
      if (new TextDecoder().decode(bytes).includes('another')) real.set(fromHex(row.hash));
      return real;
    };
    const leaf_hash = hex(await alike(leafBytes(forged)));
    expect(leaf_hash.slice(0, 8)).toBe(leafHash(text).slice(0, 8));
    const said = { text: forged, leaf_hash };
    expect(await isTextOfRow(said, { row, leaf: null }, alike)).toBe(true);
    expect(await isTextOfRow(said, { row, leaf: leafHash(text) }, alike)).toBe(false);
    expect(await isTextOfRow({ text, leaf_hash: leafHash(text) }, { row, leaf: leafHash(text) }, alike)).toBe(true);
  });

  test('is compared with the full hash in the worker, for every proved entry', async () => {
    const leaf_hash = (at: number): string => leafHash(TEXTS[at] ?? '');
    const data: InlineData = {
      info: WHOLE,
      pages: [packRows(TEXTS.map((one, at) => toEventRow(one, at, leafHash(one))))],
      entries: TEXTS,
      events: Object.fromEntries(TEXTS.map((_, at) => [at, { leaf_hash: leaf_hash(at), artifacts: [] }])),
      ...{ artifacts: {}, charts: {}, courses: {}, steps: {}, sessions: {}, whys: {} },
    };
    const feed = new InlineFeed(data);
    const proof = new ProofTracker((tell) => {
      const prover = new PartProver((from, to) => feed.entries(from, to), tell);
      return {
        begin: (of) => prover.begin(of),
        addRows: (page) => prover.addRows(page),
        onGrowth: (growth) => prover.onGrowth(growth),
        // The worker has proved another text than the service returns later, with the same hash prefix as the row.
        leafOf: async (at) => {
          const leaf = await prover.leafOf(at);
          return at === 4 ? (leaf?.replace(/.$/, (last) => (last === '0' ? '1' : '0')) ?? null) : leaf;
        },
      };
    });
    const store = new Store(feed, proof);
    expect(await proof.leafOf(4)).toBeNull();
    await store.open();
    await until(() => proof.phase.value === 'verified');
    expect(await proof.leafOf(3)).toBe(leaf_hash(3));
    expect(await store.event(3)).toMatchObject({ leaf_hash: leaf_hash(3) });
    await expect(store.event(4)).rejects.toThrow('a different entry');
  });

  test('the hashes of a log that starts later are those of its own entries, up to the first invalid one', async () => {
    const proof = new LedgerProof({ begin: 9, frontier: frontierOf(TEXTS.slice(0, 9)) });
    await proof.take([...TEXTS.slice(9, 20), 'null'], shownFor(TEXTS));
    const known = Array.from({ length: 23 }, (_, at) => proof.leafOf(at));
    expect(known).toEqual(TEXTS.map((one, at) => (at >= 9 && at < 20 ? leafHash(one) : null)));
  });

  test('a worker that has died leaves no request pending', async () => {
    const listeners = new Map<string, (event: { readonly data: ProofMessage }) => void>();
    const states: (ProofState | null)[] = [];
    const asked: ProofRequest[] = [];
    const worker: WorkerLike = {
      postMessage: (message) => void asked.push(message),
      addEventListener: (type: string, listener: (event: { readonly data: ProofMessage }) => void) =>
        void listeners.set(type, listener),
    };
    const prover = createWorkerProver(worker, { base: '', token: null }, (state) => void states.push(state));
    const [first, second] = [prover.leafOf(1), prover.leafOf(2)];
    const [, { id = 0 }] = asked as { id?: number }[] as [unknown, { id?: number }];
    listeners.get('message')?.({ data: { id, leaf: 'ab' } });
    expect(await second).toBe('ab');
    expect(states).toEqual([]);
    listeners.get('error')?.({ data: null });
    expect([await first, await prover.leafOf(3), states]).toEqual([null, null, [null]]);
  });

  test('content belongs to an entry only if the entry names it', () => {
    const named = JSON.stringify({ body: { payload: { hash_sha256: 'aa'.repeat(32) } } });
    expect(hasContentHash(named, 'aa'.repeat(32))).toBe(true);
    expect(hasContentHash(named, 'bb'.repeat(32))).toBe(false);
    // Text of an agent is inside quotation marks of its own.
    const quoted = JSON.stringify({ body: { note: `"hash_sha256":"${'bb'.repeat(32)}"` } });
    expect(hasContentHash(quoted, 'bb'.repeat(32))).toBe(false);
  });
});
