// Pins for deployments without Git (C45, D19): a manifest next to the policy folder states the version of each file and
// its SHA-256, which proves that the file is unchanged.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Check } from 'typebox/value';
import { readJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { PinManifest, type AcceptedCaution } from '../../core/contract/policy/pins.js';
import { PolicyError } from '../../core/errors.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import {
  folderPolicySource,
  readPolicyFile,
  type FolderPins,
  type PinResult,
  type PolicySourceOptions,
} from './policy-files.js';

/** The name of the manifest in the contract folder. */
export const PIN_MANIFEST = 'pins.json';

/**
 * Policies of the contract folder `dir`, pinned by `<dir>/pins.json`. Problems: `stale` if the bytes differ from the
 * pinned ones, `not_in_manifest` if the manifest does not name the file.
 * `load` also throws PolicyError POLICY_INVALID for an invalid manifest, or one that names a file twice.
 * @throws UsageError for an invalid file name in the options
 */
export const manifestPolicySource = (dir: string, options: PolicySourceOptions = {}): PolicySource =>
  folderPolicySource(dir, openManifestPins, options);

export async function openManifestPins(root: string): Promise<FolderPins> {
  const { files } = await readManifest(root);
  const pinned = new Map(files.map((file) => [file.path, file]));
  if (pinned.size !== files.length) throw invalidManifestError(join(root, PIN_MANIFEST), 'names a file twice');
  return { pinOf: (path, bytes) => pinOf(pinned.get(path), bytes), has: (path) => pinned.has(path) };
}

/** A policy file to be pinned; `path` is relative to the contract folder, with forward slashes. */
export interface PinnableFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly pin: PinResult;
}

/** The manifest for these files: the last commit of a file that is clean in Git, else the blob id of its bytes. */
export const pinManifest = (
  files: readonly PinnableFile[],
  accepted: readonly AcceptedCaution[] = [],
): PinManifest => ({
  version: 'v1',
  files: files.map(({ path, bytes, pin }) => ({
    path,
    git_sha: 'problem' in pin ? gitBlobId(bytes) : pin.git_sha,
    sha256: sha256(bytes),
  })),
  ...(accepted.length === 0 ? {} : { accepted: [...accepted] }),
});

/** The cautions that the manifest of `dir` accepts; none if the manifest is missing or invalid. */
export async function readAcceptedCautions(dir: string): Promise<readonly AcceptedCaution[]> {
  try {
    return (await readManifest(dir)).accepted ?? [];
  } catch (error) {
    if (error instanceof PolicyError) return [];
    throw error;
  }
}

/** The blob id of these bytes in Git (with SHA-1, its default). */
export const gitBlobId = (bytes: Uint8Array): string =>
  createHash('sha1').update(`blob ${bytes.byteLength}\0`).update(bytes).digest('hex');

const invalidManifestError = (path: string, why: string): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `${path} ${why}` });

async function readManifest(root: string): Promise<PinManifest> {
  const path = join(root, PIN_MANIFEST);
  const value = readJson(await readPolicyFile(root, PIN_MANIFEST));
  if (value === undefined) throw invalidManifestError(path, 'is not JSON');
  if (Check(PinManifest, value)) return value;
  throw invalidManifestError(path, 'is not a pin manifest; write a new one with `turnpike policy pin`');
}

function pinOf(pinned: PinManifest['files'][number] | undefined, bytes: Uint8Array): PinResult {
  if (pinned === undefined) return { problem: 'not_in_manifest' };
  if (pinned.sha256 !== sha256(bytes)) return { problem: 'stale' };
  return { git_sha: pinned.git_sha, sha256: pinned.sha256, source: 'manifest' };
}
