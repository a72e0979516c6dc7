// Mutations of bags that know their structure. Each result is left as it is, made a valid bag again, or signed again as
// well.

import { createHash } from 'node:crypto';
import type { BagEntry, BagProof } from '../../../src/core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { checkpointText } from '../../../src/core/ledger/proof/checkpoint.js';
import { leafHash } from '../../../src/core/ledger/proof/merkle.js';
import { signNote, type NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { SubsetRoot } from '../../../src/features/exports/subset-proof.js';
import type { Draw } from './draw.js';
import type { Files } from './independent-bag.js';

export type BagSigning = 'nothing' | 'manifests' | 'proof' | 'another root';

type Change = (files: Files, draw: Draw) => Files;

const [AUDIT, ENTRIES, RUNS] = ['data/audit.jsonl', 'data/entries.jsonl', 'data/runs.jsonl'];
const [MANIFEST, PROOF] = ['data/manifest.json', 'data/proof.json'];
const payloads = (files: Files): string[] => Object.keys(files).filter((path) => path.startsWith('data/'));
const without = (files: Files, path: string): Files =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));
const linesIn = (files: Files, path: string): string[] =>
  (files[path] ?? Buffer.alloc(0)).toString().split('\n').slice(0, -1);
const withLines = (files: Files, path: string, lines: readonly string[]): Files => ({
  ...files,
  [path]: Buffer.from(lines.map((line) => `${line}\n`).join('')),
});
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows what it wrote
const json = <T>(files: Files, path: string): T => JSON.parse((files[path] ?? Buffer.from('{}')).toString()) as T;
const withJson = (files: Files, path: string, value: unknown): Files => ({
  ...files,
  [path]: Buffer.from(canonicalJson(value)),
});

const LIES = [
  ['"outcome":"denied"', '"outcome":"success"'],
  ['"outcome":"deny"', '"outcome":"allow"'],
  ['"decision":"deny"', '"decision":"allow"'],
  ['"outcome":"success"', '"outcome":"failure"'],
  ['"status":"denied"', '"status":"completed"'],
  ['"status":"completed"', '"status":"failed"'],
  ['extension.not_allowed', 'lane.allowed'],
  ['2026-01-01', '2025-01-01'],
  ['"actor_id":"', '"actor_id":"x'],
] as const;

const everywhere: Change = (files, draw) => {
  const [from, to] = draw.of(LIES);
  const replaced = (text: string): string => text.replaceAll(from, to);
  const entries = linesIn(files, ENTRIES).map((line) => {
    const { entry, index } = JSON.parse(line) as BagEntry;
    return canonicalJson({ entry: replaced(entry), index });
  });
  const lied = [AUDIT, RUNS].reduce((all, path) => withLines(all, path, linesIn(all, path).map(replaced)), files);
  return draw.chance(0.5) ? withLines(lied, ENTRIES, entries) : lied;
};

const CHANGES: Readonly<Record<string, Change>> = {
  everywhere,
  lieInOneFile: (files, draw) => {
    const path = draw.of([AUDIT, ENTRIES, RUNS]);
    const [from, to] = draw.of(LIES);
    return { ...files, [path]: Buffer.from((files[path] ?? Buffer.alloc(0)).toString().replace(from, to)) };
  },
  deleteLine: (files, draw) => {
    const path = draw.of([AUDIT, ENTRIES, RUNS]);
    const lines = linesIn(files, path);
    return withLines(files, path, lines.toSpliced(draw.below(lines.length), 1 + draw.below(2)));
  },
  duplicateLine: (files, draw) => {
    const path = draw.of([AUDIT, ENTRIES, RUNS]);
    const lines = linesIn(files, path);
    return withLines(files, path, lines.toSpliced(draw.below(lines.length), 0, draw.of(lines)));
  },
  exchangeLines: (files, draw) => {
    const path = draw.of([AUDIT, ENTRIES, RUNS]);
    const lines = linesIn(files, path);
    const [one, other] = [draw.below(lines.length), draw.below(lines.length)];
    return withLines(files, path, lines.with(one, lines[other] ?? '').with(other, lines[one] ?? ''));
  },
  indexes: (files, draw) =>
    withLines(
      files,
      ENTRIES,
      linesIn(files, ENTRIES).map((line) => {
        const entry = JSON.parse(line) as BagEntry;
        return draw.chance(0.1) ? canonicalJson({ ...entry, index: entry.index + draw.of([-1, 1, 1e9]) }) : line;
      }),
    ),
  deleteEvent: (files, draw) => {
    const audit = linesIn(files, AUDIT);
    const at = draw.below(audit.length);
    const manifest = json<ExportBundle>(files, MANIFEST);
    const audit_event_ids = (manifest.audit?.audit_event_ids ?? []).toSpliced(at, 1);
    const less = withLines(files, AUDIT, audit.toSpliced(at, 1));
    return withJson(less, MANIFEST, { ...manifest, audit: { run_ids: [], ...manifest.audit, audit_event_ids } });
  },
  deleteFile: (files, draw) => without(files, draw.of(Object.keys(files))),
  duplicateFile: (files, draw) => ({
    ...files,
    [`${draw.of(Object.keys(files))}${draw.of(['2', '.bak', '/x'])}`]: Buffer.from('x'),
  }),
  addFile: (files, draw) => {
    const bytes = Buffer.from(`lanes: ${draw.below(1e6)}`);
    const path = draw.of([
      `data/policies/lanes-${sha256(bytes)}.yaml`,
      `data/artifacts/${sha256(bytes)}`,
      `data/machines/${sha256(bytes)}.json`,
      'data/../x',
      'fetch.txt',
      'data/x',
    ]);
    return { ...files, [path]: bytes };
  },
  swapContents: (files, draw) => {
    const [one, other] = [draw.of(payloads(files)), draw.of(payloads(files))];
    return { ...files, [one]: files[other] ?? Buffer.alloc(0), [other]: files[one] ?? Buffer.alloc(0) };
  },
  swapPolicy: (files, draw) => {
    const path = draw.of(payloads(files).filter((name) => /policies|machines|artifacts/.test(name)));
    const bytes = Buffer.from(`${(files[path] ?? Buffer.alloc(0)).toString()}\n# ${draw.below(9)}\n`);
    return { ...without(files, path), [path.replace(/[0-9a-f]{64}/, sha256(bytes))]: bytes };
  },
  flip: (files, draw) => {
    const path = draw.of(Object.keys(files));
    const bytes = Buffer.from(files[path] ?? Buffer.alloc(1));
    if (bytes.length > 0) bytes[draw.below(bytes.length)] = draw.below(256);
    return { ...files, [path]: bytes };
  },
  manifestHead: (files, draw) => {
    const manifest = json<ExportBundle>(files, MANIFEST);
    const other = draw.of([
      { export_reason: 'another' },
      { created_at_utc: '2025-01-01T00:00:00.000Z' },
      { created_by: { ...manifest.created_by, actor_id: 'another-person' } },
      { approvals: [] },
      {
        approvals: [
          { approval_type: 'compliance', approved_by: 'another-person', approved_at_utc: manifest.created_at_utc },
        ],
      },
      { bundle_kind: 'court_filing_support' },
      { case_id: 'case-0002' },
    ]);
    return withJson(files, MANIFEST, { ...manifest, ...other });
  },
  artifactList: (files, draw) => {
    const manifest = json<ExportBundle>(files, MANIFEST);
    const { artifacts } = manifest.contents;
    return withJson(files, MANIFEST, {
      ...manifest,
      contents: { artifacts: artifacts.toSpliced(draw.below(artifacts.length), 1) },
    });
  },
  proofHashes: (files, draw) => {
    const proof = json<BagProof>(files, PROOF);
    const at = draw.below(Math.max(1, proof.hashes.length));
    const hashes = draw.of([
      proof.hashes.toSpliced(at, 1),
      [...proof.hashes, 'ab'.repeat(32)],
      proof.hashes.toReversed(),
      proof.hashes.with(at, 'cd'.repeat(32)),
    ]);
    return withJson(files, PROOF, { ...proof, hashes });
  },
  noProof: (files, draw) => {
    const stripped = without(without(files, PROOF), draw.chance(0.7) ? ENTRIES : 'none');
    const info = (files['bag-info.txt'] ?? Buffer.alloc(0))
      .toString()
      .replace('Turnpike-Bag-Format: 1', `Turnpike-Bag-Format: ${draw.of(['1', '2', '3'])}`);
    return { ...stripped, 'bag-info.txt': Buffer.from(info) };
  },
  info: (files, draw) => {
    const lines = (files['bag-info.txt'] ?? Buffer.alloc(0)).toString().split('\n');
    return { ...files, 'bag-info.txt': Buffer.from(lines.toSpliced(draw.below(lines.length), 1).join('\n')) };
  },
  manyIds: (files, draw) => {
    const manifest = json<ExportBundle>(files, MANIFEST);
    const count = draw.chance(0.02) ? draw.of([650_000, 1_700_000]) : 5_000;
    const audit_event_ids = Array.from({ length: count }, (_, n) => `run_000000000000000000001:${n}`);
    return withJson(files, MANIFEST, { ...manifest, audit: { run_ids: [], ...manifest.audit, audit_event_ids } });
  },
  deepJson: (files, draw) => {
    const path = draw.of([MANIFEST, PROOF, AUDIT, ENTRIES, RUNS]);
    const depth = draw.chance(0.05) ? 5_000_000 : 5_000;
    return { ...files, [path]: Buffer.from(`${draw.of(['[', '{"a":'])[0]?.repeat(depth) ?? ''}\n`) };
  },
  largeFile: (files, draw) => {
    const path = draw.of(Object.keys(files));
    const bytes = draw.chance(0.03) ? 40_000_000 : 400_000;
    return {
      ...files,
      [path]: Buffer.concat([files[path] ?? Buffer.alloc(0), Buffer.alloc(bytes, draw.of([',', '\n', '[', 'x', '0']))]),
    };
  },
};

const hashed = (algorithm: string, bytes: Buffer): string => createHash(algorithm).update(bytes).digest('hex');

/** Makes a valid bag of the files: manifests, sizes and tag manifests are rewritten. */
function sealed(files: Files): Files {
  const own = Object.entries(files).filter(([path]) => path.startsWith('data/'));
  const bytes = own.reduce((sum, [, content]) => sum + content.length, 0);
  const info = (files['bag-info.txt'] ?? Buffer.alloc(0))
    .toString()
    .replace(/Payload-Oxum: .*/, `Payload-Oxum: ${bytes}.${own.length}`);
  const tags: Record<string, Buffer> = {
    'bag-info.txt': Buffer.from(info),
    'bagit.txt': files['bagit.txt'] ?? Buffer.alloc(0),
  };
  const listing = (algorithm: string, of: readonly (readonly [string, Buffer])[]): Buffer =>
    Buffer.from(of.map(([path, content]) => `${hashed(algorithm, content)}  ${path}\n`).join(''));
  for (const algorithm of ['sha256', 'sha512']) tags[`manifest-${algorithm}.txt`] = listing(algorithm, own);
  const whole = Object.entries(tags);
  for (const algorithm of ['sha256', 'sha512']) tags[`tagmanifest-${algorithm}.txt`] = listing(algorithm, whole);
  return { ...Object.fromEntries(own), ...tags };
}

/** Signs the proof for these files: with the old root, or with the root that they have now. */
function signedAgain(files: Files, key: NoteSigner, anew: boolean): Files {
  const manifest = json<ExportBundle>(files, MANIFEST);
  const bare = { ...manifest, integrity: undefined };
  const manifest_hash_sha256 = sha256(canonicalJson(JSON.parse(JSON.stringify(bare))));
  const proof = json<BagProof>(files, PROOF);
  const [, size = '', root = ''] = proof.checkpoint.split('\n');
  const computed = new SubsetRoot(Number(size), proof.hashes);
  for (const line of linesIn(files, ENTRIES)) {
    const { entry, index } = JSON.parse(line) as BagEntry;
    computed.take(index, leafHash(entry));
  }
  const found = (anew ? computed.root() : null) ?? Buffer.from(root, 'base64').toString('hex');
  const digest = sha256(
    canonicalJson({ entries_sha256: sha256(files[ENTRIES] ?? Buffer.alloc(0)), manifest_hash_sha256 }),
  );
  const text = `${checkpointText({ origin: key.name, size: Number(size), root: found })}bag sha256:${digest}\n`;
  const info = (files['bag-info.txt'] ?? Buffer.alloc(0))
    .toString()
    .replace(/(Turnpike-Manifest-SHA256:\s+)\S+/, `$1${manifest_hash_sha256}`)
    .replace(/(Turnpike-Ledger-Root:\s+)\S+/, `$1${found}`);
  const written = withJson(files, MANIFEST, { ...manifest, integrity: { manifest_hash_sha256 } });
  const note = { ...proof, key: key.vkey, checkpoint: signNote(text, key) };
  return sealed({ ...withJson(written, PROOF, note), 'bag-info.txt': Buffer.from(info) });
}

export interface MutatedBag {
  readonly name: string;
  readonly files: Files;
  readonly signing: BagSigning;
  readonly by: 'owner' | 'stranger' | 'no key';
}

interface Signers {
  readonly signer: NoteSigner;
  readonly stranger: NoteSigner;
}

export function mutatedBag(files: Files, { signer, stranger }: Signers, draw: Draw): MutatedBag {
  const names = Array.from({ length: 1 + draw.below(2) }, () => draw.of(Object.keys(CHANGES)));
  const changed = names.reduce<Files>((all, name) => CHANGES[name]?.(all, draw) ?? all, files);
  const signing = draw.of(['nothing', 'manifests', 'proof', 'proof', 'another root'] as const);
  if (signing === 'nothing') return { name: names.join('+'), files: changed, signing, by: 'no key' };
  if (signing === 'manifests') return { name: names.join('+'), files: sealed(changed), signing, by: 'no key' };
  const by = draw.chance(0.8) ? 'owner' : 'stranger';
  const key = by === 'owner' ? signer : stranger;
  return { name: names.join('+'), files: signedAgain(changed, key, signing === 'another root'), signing, by };
}
