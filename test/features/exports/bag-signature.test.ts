// What the signature of a bag covers, and its format: faults in bags that are otherwise valid.

import { describe, expect, test } from '@jest/globals';
import {
  CHECKPOINT_CHARACTERS_MAX,
  type BagEntry,
  type BagProof,
} from '../../../src/core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { BagError } from '../../../src/core/errors.js';
import { EMPTY_HEAD } from '../../../src/core/ledger/proof/merkle.js';
import type { BagTree } from '../../../src/engine/ports/bag-tree.js';
import type { CaseEntries } from '../../../src/features/exports/bag-contents.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { bagLogFiles } from '../../../src/features/exports/bag-payload.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { json, linesIn, linesOf, signedAgain, signer, stranger, signedBag, withJson } from './bag-forging.js';
import { rulesOf, sealed, type Files } from './material.js';

const { verified, good } = signedBag();

const ENTRIES = 'data/entries.jsonl';
const PROOF = 'data/proof.json';
const MANIFEST = 'data/manifest.json';

/** The line that a signer adds to another signer's note. */
const signatureOf = (note: string): string => note.slice(note.indexOf('\n\n') + 2);

describe('the signature of a bag', () => {
  test('is that of the key in the bag, also if another key has signed, too', async () => {
    const proof = json<BagProof>(good(), PROOF);
    const others = json<BagProof>(signedAgain(good(), stranger), PROOF);
    const both = { ...proof, checkpoint: `${proof.checkpoint}${signatureOf(others.checkpoint)}` };
    expect(await verified(sealed(withJson(good(), PROOF, both)))).toMatchObject({ valid: true });
    const claimed = sealed(withJson(good(), PROOF, { ...both, key: stranger.vkey }));
    const report = await verified(claimed);
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.proof_unsigned']]);
    expect(report.authentication).toMatchObject({ verdict: 'unauthenticated' });
  });

  test('of one bag does not fit another bag with a complete but different manifest', async () => {
    const manifest = json<ExportBundle>(good(), MANIFEST);
    const other = signedAgain(withJson(good(), MANIFEST, { ...manifest, export_reason: 'another one' }));
    expect(rulesOf(await verified(other))).toEqual(['bundle.request_differs']);
    const report = await verified(sealed({ ...other, [PROOF]: good()[PROOF]! }));
    expect([report.valid, rulesOf(report)]).toEqual([false, ['bundle.proof_unsigned']]);
  });
});

test('a proof whose first bytes contain no checkpoint is not read further', async () => {
  let pieces = 0;
  const tree: BagTree = {
    async *entries() {
      yield await Promise.resolve({ kind: 'file', path: PROOF, bytes: 1_000_000 } as const);
    },
    async *read() {
      for (; pieces < 1_000; pieces += 1) yield await Promise.resolve(Buffer.alloc(1_000, ' '));
    },
    close: () => Promise.resolve(),
  };
  expect(await verifyExportBag(tree, signer)).toMatchObject({
    valid: false,
    findings: [{ rule_id: 'bundle.proof_unsigned' }],
  });
  expect(pieces).toBeLessThan((3 * CHECKPOINT_CHARACTERS_MAX) / 1_000);
});

test.each<readonly [string, string | BagError]>([
  ['with malformed JSON', '{"checkpoint":"\\q"}'],
  ['that cannot be read', new BagError({ code: 'BAG_HOSTILE', message: 'gone' })],
])('a proof %s is not signed', async (_what, content) => {
  const tree: BagTree = {
    async *entries() {
      yield await Promise.resolve({ kind: 'file', path: PROOF, bytes: 18 } as const);
    },
    async *read() {
      if (typeof content !== 'string') throw content;
      yield await Promise.resolve(Buffer.from(content));
    },
    close: () => Promise.resolve(),
  };
  const findings = [{ rule_id: 'bundle.proof_unsigned' }];
  expect(await verifyExportBag(tree, signer)).toMatchObject({ valid: false, findings });
});

test('a bag is not written with a proof that exceeds the limit for reading', async () => {
  const [hash, bytes] = ['f'.repeat(64), Buffer.byteLength(`,"${'f'.repeat(64)}"`)];
  const proof = Array.from({ length: Math.ceil(EXPORT_BAG_LIMITS.proof_bytes_max / bytes) }, () => hash);
  const none: CaseEntries = { slice: { case_id: 'case-0001', head: EMPTY_HEAD }, async *entries() {} };
  const contents = { history: none, proof, artifacts: [], files: [], runs: new Map(), audit_event_ids: [] };
  const [entries, written] = bagLogFiles(contents, json<ExportBundle>(good(), MANIFEST), signer);
  for await (const piece of entries!.content) expect(piece).toBeUndefined();
  const writing = async (): Promise<void> => {
    for await (const piece of written!.content) expect(piece).toBeUndefined();
  };
  await expect(writing()).rejects.toMatchObject({ code: 'BAG_UNWRITABLE' });
});

test.each([PROOF, ENTRIES])(
  'a bag with only %s that declares itself as one without a log is rejected',
  async (path) => {
    const rest = Object.fromEntries(Object.entries(good()).filter(([name]) => ![PROOF, ENTRIES].includes(name)));
    const info = Buffer.from(good()['bag-info.txt']!.toString().replace('Turnpike-Log: signed', 'Turnpike-Log: none'));
    const without = { ...rest, 'bag-info.txt': info };
    expect(await verified(sealed(without), null)).toMatchObject({ valid: true });
    expect(await verified(sealed({ ...without, [path]: good()[path]! }), null)).toMatchObject({ valid: false });
  },
);

/** The n-th entry that `fits`, changed, with its line. */
function changed(fits: (entry: string) => boolean, change: (line: string) => string): (files: Files) => Files {
  return (files) => {
    const lines = linesIn(files, ENTRIES);
    const index = lines.findIndex((line) => fits((JSON.parse(line) as BagEntry).entry));
    expect(index).toBeGreaterThan(-1);
    return { ...files, [ENTRIES]: linesOf(lines.with(index, change(lines[index]!))) };
  };
}

const inEntry = (change: (entry: string) => string) => (line: string) => {
  const { entry, index } = JSON.parse(line) as BagEntry;
  return canonicalJson({ entry: change(entry), index });
};
const isOf = (type: string) => (entry: string) => entry.includes(`"type":"${type}"`);

/** Swaps two adjacent lines of different trees: each tree stays in order. */
function crossed(files: Files): Files {
  const lines = linesIn(files, ENTRIES);
  const treeOf = (line: string): string => (JSON.parse((JSON.parse(line) as BagEntry).entry) as BagTreeEntry).tree_id;
  const index = lines.findIndex((line, n) => n > 0 && treeOf(lines[n - 1]!) !== treeOf(line));
  expect(index).toBeGreaterThan(0);
  return { ...files, [ENTRIES]: linesOf(lines.with(index, lines[index - 1]!).with(index - 1, lines[index]!)) };
}
interface BagTreeEntry {
  readonly tree_id: string;
}

describe('a bag that the key of its ledger has signed', () => {
  test.each<readonly [string, (files: Files) => Files, string]>([
    ['a line with white space', changed(isOf('input'), (line) => `${line} `), 'bundle.json_not_canonical'],
    [
      'an entry with white space',
      changed(
        isOf('input'),
        inEntry((entry) => `${entry} `),
      ),
      'bundle.entry_malformed',
    ],
    [
      'an entry whose body does not match its type',
      changed(
        isOf('run_created'),
        inEntry((entry) => entry.replace('"run_kind":"', '"run_kind":"no_')),
      ),
      'bundle.entry_malformed',
    ],
    [
      'a record with a changed creation',
      (files) => {
        const [first = '', ...rest] = linesIn(files, 'data/runs.jsonl');
        const record = JSON.parse(first) as { readonly role_id: string };
        const other = canonicalJson({ ...record, role_id: `${record.role_id}_x` });
        return { ...files, 'data/runs.jsonl': linesOf([other, ...rest]) };
      },
      'bundle.not_logged',
    ],
    ['an entry after a later one', crossed, 'bundle.entry_place'],
    [
      'a proof with white space',
      (files) => ({ ...files, [PROOF]: Buffer.from(`${files[PROOF]!.toString()}\n`) }),
      'bundle.proof_malformed',
    ],
    [
      'machines that no tree has pinned',
      (files) => ({ ...files, [`data/machines/${sha256('{}')}.json`]: Buffer.from('{}') }),
      'bundle.not_logged',
    ],
    [
      'an artifact of another kind',
      (files) => {
        const manifest = json<ExportBundle>(files, MANIFEST);
        const [first, ...rest] = manifest.contents.artifacts;
        const artifacts = [{ ...first!, artifact_kind: 'prompt' }, ...rest];
        return withJson(files, MANIFEST, { ...manifest, contents: { artifacts } });
      },
      'bundle.not_logged',
    ],
  ])('and that contains %s is rejected', async (_what, change, rule) => {
    const isProof = rule === 'bundle.proof_malformed';
    const forged = isProof ? sealed(change(signedAgain(good()))) : signedAgain(change(good()));
    const report = await verified(forged);
    expect(report.valid).toBe(false);
    expect(rulesOf(report)).toContain(rule);
    expect(report.authentication).toMatchObject({ verdict: 'unauthenticated' });
  });
});
