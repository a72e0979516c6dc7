// A log that a holder of the key has invented for a bag: it is signed, and its entries lead to its root, but the
// platform would never write it.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { openBagFolder } from '../../../src/features/exports/bag/bag-folder.js';
import { artifactRef } from '../../../src/core/contract/artifact-ref.js';
import type { BagEntry, BagProof } from '../../../src/core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { NO_PREV, type Entry, type StartRunInput } from '../../../src/core/contract/run/entry.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { checkpointText } from '../../../src/core/ledger/proof/checkpoint.js';
import { EMPTY_HEAD, extendHead } from '../../../src/core/ledger/proof/merkle.js';
import { sealEntry } from '../../../src/core/ledger/entry-text.js';
import type { ExportBagReport, LogLimits } from '../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { json, linesIn, linesOf, signedAgain, signer, signedBag, withJson } from './bag-forging.js';
import { CASE, rulesOf, sealed, TREE, type Files } from './material.js';

const { at, verified, good } = signedBag();
let entries: readonly Entry[];
beforeAll(() => {
  entries = linesIn(good(), 'data/entries.jsonl').map(
    (line) => JSON.parse((JSON.parse(line) as BagEntry).entry) as Entry,
  );
});

/** The bag with a log of only these entries, signed; the entries of each tree are chained. */
function loggedAgain(files: Files, log: readonly Entry[]): Files {
  const last = new Map<string, string>();
  const sealedEntries = log.map((entry) => {
    const placed = sealEntry({ ...entry, prev: last.get(entry.tree_id) ?? NO_PREV });
    last.set(entry.tree_id, placed.leaf_hash);
    return placed;
  });
  const { size, root } = extendHead(
    EMPTY_HEAD,
    sealedEntries.map(({ leaf_hash }) => leaf_hash),
  );
  const lines = sealedEntries.map(({ text }, index) => canonicalJson({ entry: text, index } satisfies BagEntry));
  const info = files['bag-info.txt']!.toString()
    .replace(/(Turnpike-Ledger-Size: ).*/, `$1${size}`)
    .replace(/(Turnpike-Ledger-Root:\s+)\S+/, `$1${root}`);
  const proof = json<BagProof>(files, 'data/proof.json');
  const checkpoint = checkpointText({ origin: signer.name, size, root });
  const changed = { ...files, 'data/entries.jsonl': linesOf(lines), 'bag-info.txt': Buffer.from(info) };
  return signedAgain(withJson(changed, 'data/proof.json', { ...proof, hashes: [], checkpoint }));
}

/** The last entry that `fits`, changed, and moved by some places of its tree. */
function changedLast(fits: (entry: Entry) => boolean, change: (entry: Entry) => Entry): readonly Entry[] {
  const index = entries.findLastIndex(fits);
  expect(index).toBeGreaterThan(-1);
  return entries.with(index, change(entries[index]!));
}

const refusedFor = async (files: Files): Promise<readonly [boolean, readonly string[]]> => {
  const report = await verified(files);
  expect(report.authentication?.verdict).toBe(report.valid ? 'authenticated' : 'unauthenticated');
  return [report.valid, rulesOf(report)];
};

describe('a log that was invented for a bag, and signed', () => {
  test('is accepted if everything in it is as the platform writes it', async () => {
    expect(await refusedFor(loggedAgain(good(), entries))).toEqual([true, []]);
  });

  test('is rejected if an entry has a wrong previous hash or skips a sequence number', async () => {
    const log = changedLast(
      ({ type }) => type === 'input',
      (entry) => ({ ...entry, seq: entry.seq + 1 }),
    );
    expect(await refusedFor(loggedAgain(good(), log))).toEqual([false, ['bundle.entry_place']]);
  });

  test('is rejected if it has a run twice', async () => {
    const birth = entries.find(({ type, body }) => type === 'run_created' && body.run_id === `${TREE}.2`)!;
    const seq = Math.max(...entries.filter(({ tree_id }) => tree_id === TREE).map((entry) => entry.seq)) + 1;
    const twice = await refusedFor(loggedAgain(good(), [...entries, { ...birth, seq }]));
    expect(twice).toEqual([false, ['bundle.not_logged']]);
  });

  test('is rejected if it names a wrong size of a content', async () => {
    const log = changedLast(
      ({ type, body }) => type === 'input' && body.kind === 'proposal',
      (entry) => {
        const body = entry.body as Extract<Entry['body'], { readonly kind: 'proposal' }>;
        return { ...entry, body: { ...body, payload: { ...body.payload, byte_size: 1 } } } as Entry;
      },
    );
    expect(await refusedFor(loggedAgain(good(), log))).toEqual([false, ['bundle.not_logged']]);
  });
});

test('a bag whose request is nested without limit is rejected', async () => {
  const bytes = Buffer.from(`{"args":${'['.repeat(100_000)}`);
  const request = artifactRef({ kind: 'request', case_id: CASE, bytes });
  const isRequest = ({ type, body }: Entry): boolean => type === 'input' && body.kind === 'start_run';
  let requestSha256 = '';
  const log = changedLast(isRequest, (entry) => {
    const body = entry.body as StartRunInput;
    requestSha256 = body.request.hash_sha256;
    return { ...entry, body: { ...body, request } } as Entry;
  });
  const manifest = json<ExportBundle>(good(), 'data/manifest.json');
  const others = manifest.contents.artifacts.filter(({ hash_sha256 }) => hash_sha256 !== requestSha256);
  const artifacts = [...others, request].sort((one, other) => (one.hash_sha256 < other.hash_sha256 ? -1 : 1));
  const rest = Object.entries(good()).filter(([path]) => path !== `data/artifacts/${requestSha256}`);
  const files = { ...Object.fromEntries(rest), [`data/artifacts/${request.hash_sha256}`]: bytes };
  const listed = withJson(files, 'data/manifest.json', { ...manifest, contents: { artifacts } });
  expect(await refusedFor(loggedAgain(listed, log))).toEqual([false, ['bundle.request_differs']]);
});

test('a bag that lists an artifact of its log with another kind, too, is rejected', async () => {
  const manifest = json<ExportBundle>(good(), 'data/manifest.json');
  const [first, ...rest] = manifest.contents.artifacts;
  const artifacts = [first!, { ...first!, artifact_kind: 'zzz' }, ...rest];
  const files = signedAgain(withJson(good(), 'data/manifest.json', { ...manifest, contents: { artifacts } }));
  expect(await refusedFor(files)).toEqual([false, ['bundle.not_logged']]);
});

test.each([
  ['size', /(Turnpike-Ledger-Size: ).*/],
  ['root', /(Turnpike-Ledger-Root:\s+)\S/],
])('a bag whose bag-info.txt names another %s than the checkpoint is rejected', async (_what, pattern) => {
  const info = good()['bag-info.txt']!.toString();
  const other = info.replace(pattern, '$1z');
  expect(other).not.toBe(info);
  expect(await refusedFor(sealed({ ...good(), 'bag-info.txt': Buffer.from(other) }))).toEqual([
    false,
    ['bundle.info_differs'],
  ]);
});

describe('of the log of a bag', () => {
  async function limited(limits: Partial<LogLimits>, key: typeof signer | null): Promise<ExportBagReport> {
    const tree = openBagFolder(at('good'));
    try {
      return await verifyExportBag(tree, key, limits);
    } finally {
      await tree.close();
    }
  }

  test('a limited number of entries is read, and fewer without a key', async () => {
    const count = entries.length;
    const whole = { entries_max: count, untrusted_entries_max: count };
    expect((await limited(whole, signer)).valid).toBe(true);
    expect((await limited(whole, null)).valid).toBe(true);
    expect((await limited({ untrusted_entries_max: 0 }, signer)).valid).toBe(true);
    expect(rulesOf(await limited({ entries_max: count - 1 }, signer))).toEqual(['bundle.limit']);
    expect(rulesOf(await limited({ untrusted_entries_max: count - 1 }, null))).toEqual(['bundle.limit']);
  });
});
