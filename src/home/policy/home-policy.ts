// Where the files of a contract folder come from: the policy, and identities.yaml, both with their pins.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { IDENTITIES_PATH } from '../../core/contract/policy/identities.js';
import type { IdentitiesSource, PolicySource } from '../../engine/ports/policy-sources.js';
import { openGitPins } from './git-policy-source.js';
import { openManifestPins, PIN_MANIFEST } from './manifest-policy-source.js';
import {
  folderPolicySource,
  isPresent,
  loadPinned,
  type FolderPins,
  type PolicySourceOptions,
} from './policy-files.js';

/**
 * Policies of the contract folder `dir`, pinned by its manifest if it has one, else by Git. If it has neither, the
 * files are loaded and every pin is the problem `no_source`: runs under them are created, recorded and denied. Each
 * load checks again, so a manifest that is added later applies to the next tree.
 * @throws UsageError for an invalid file name in the options
 */
export const policySource = (dir: string, options: PolicySourceOptions = {}): PolicySource =>
  folderPolicySource(dir, openPins, options);

/** A broken manifest is not ignored. */
const openPins = async (root: string): Promise<FolderPins> =>
  (await isPresent(root, PIN_MANIFEST)) ? openManifestPins(root) : openGitPins(root);

/** Whether a contract folder has identities.yaml. Without it, issuers identify no callers. */
export const hasIdentities = (dir: string): boolean => existsSync(join(dir, IDENTITIES_PATH));

/**
 * The mappings of identities in a contract folder, pinned as its policy is.
 * @param pins `git`: as the file would be pinned, whatever the manifest says
 */
export function identitiesSource(dir: string, pins: 'any' | 'git' = 'any'): IdentitiesSource {
  const root = resolve(dir);
  const open = pins === 'git' ? openGitPins : openPins;
  return { load: async () => loadPinned(root, IDENTITIES_PATH, await open(root)) };
}
