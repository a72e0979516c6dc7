// identities.yaml of a contract folder, pinned as the other policy files are.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { IDENTITIES_PATH } from '../../core/contract/policy/identities.js';
import type { IdentitiesSource, LoadedIdentities } from '../../engine/ports/policy-sources.js';
import { loadGitFile } from './git-policy-source.js';
import { loadManifestFile, PIN_MANIFEST } from './manifest-policy-source.js';

/** The file is optional: without it, issuers identify no callers. */
export const hasIdentities = (dir: string): boolean => existsSync(join(dir, IDENTITIES_PATH));

/**
 * The mappings of identities in a contract folder, with their pin.
 * @param pins `git`: as the file would be pinned, whatever the manifest says
 */
export function identitiesSource(dir: string, pins: 'any' | 'git' = 'any'): IdentitiesSource {
  const root = resolve(dir);
  return {
    load(): Promise<LoadedIdentities> {
      const isPinnedByManifest = pins === 'any' && existsSync(join(root, PIN_MANIFEST));
      return isPinnedByManifest ? loadManifestFile(root, IDENTITIES_PATH) : loadGitFile(root, IDENTITIES_PATH);
    },
  };
}
