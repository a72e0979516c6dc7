// Shared by the tests of bags with a proof: the parts of a bag, changed, and the bag signed again.

import { afterAll, beforeAll } from '@jest/globals';
import type { BagProof } from '../../../src/core/contract/evidence/bag-proof.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { checkpointText } from '../../../src/core/ledger/proof/checkpoint.js';
import { notePrivateKey, noteSigner, signNote, type NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { manifestHash } from '../../../src/features/exports/bag-manifest.js';
import type { ExportBagReport } from '../../../src/features/exports/verify/bag-report.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { inMemory } from './bundle-changes.js';
import {
  assembleBundle,
  exportRequested,
  filesOf,
  ledgerOf,
  place,
  requestFor,
  sealed,
  SECOND,
  STORY,
  type Files,
} from './material.js';

export const signerOf = (name: string, seed: number): NoteSigner =>
  noteSigner(notePrivateKey(name, Buffer.alloc(32, seed))!)!;
export const signer = signerOf('turnpike/of-the-tests', 1);
export const stranger = signerOf('turnpike/of-the-tests', 2);

/**
 * A bag with a proof, in the folder `good` of a directory that is removed after the tests of the file. `verified`
 * verifies files as a bag, by default with the key of the ledger.
 */
export function signedBag() {
  const { at, remove } = place();
  let good: Files = {};
  beforeAll(async () => {
    const store = await ledgerOf([...STORY, exportRequested(SECOND)]);
    await assembleBundle(store, requestFor(at('good'), { approvals: [] }), { signer });
    good = filesOf(at('good'));
  });
  afterAll(remove);
  const verified = (files: Files, key: NoteSigner | null = signer): Promise<ExportBagReport> =>
    verifyExportBag(inMemory(files), key);
  return { at, verified, good: () => good };
}

/** The tag manifests list the same files in another order. */
export const digestsOf = (files: Files) =>
  Object.fromEntries(
    Object.entries(files).flatMap(([path, bytes]) => (path.startsWith('tagmanifest') ? [] : [[path, sha256(bytes)]])),
  );
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows what it wrote
export const json = <T>(files: Files, path: string): T => JSON.parse(files[path]!.toString()) as T;
export const withJson = (files: Files, path: string, value: object): Files => ({
  ...files,
  [path]: Buffer.from(canonicalJson(value)),
});

/** Signs a bag again, as a holder of the key can. */
export function signedAgain(files: Files, by: NoteSigner = signer): Files {
  const proof = json<BagProof>(files, 'data/proof.json');
  const [origin = '', size = '', root = ''] = proof.checkpoint.split('\n');
  const manifest = json<ExportBundle>(files, 'data/manifest.json');
  const hashed = { ...manifest, integrity: { manifest_hash_sha256: manifestHash(manifest) } };
  const digest = {
    entries_sha256: sha256(files['data/entries.jsonl']!),
    manifest_hash_sha256: hashed.integrity.manifest_hash_sha256,
  };
  const head = { origin, size: Number(size), root: Buffer.from(root, 'base64').toString('hex') };
  const note = signNote(`${checkpointText(head)}bag sha256:${sha256(canonicalJson(digest))}\n`, by);
  const info = files['bag-info.txt']!.toString().replace(
    /(Turnpike-Manifest-SHA256: ?\n? *)\S+/,
    `$1${digest.manifest_hash_sha256}`,
  );
  return sealed({
    ...withJson(withJson(files, 'data/manifest.json', hashed), 'data/proof.json', {
      ...proof,
      key: by.vkey,
      checkpoint: note,
    }),
    'bag-info.txt': Buffer.from(info),
  });
}
