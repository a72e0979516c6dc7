import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import { gitPolicySource } from './git-policy-source.js';
import { manifestPolicySource, PIN_MANIFEST } from './manifest-policy-source.js';
import type { PolicySourceOptions } from './policy-files.js';

/**
 * Policies of the contract folder `dir`, pinned by its manifest if it has one, else by Git. If it has neither, the
 * files are loaded and every pin is the problem `no_source`: runs under them are created, recorded and denied. Each
 * load checks again, so a manifest that is added later applies to the next tree.
 * @throws UsageError for an invalid file name in the options
 */
export function policySource(dir: string, options: PolicySourceOptions = {}): PolicySource {
  const manifest = manifestPolicySource(dir, options);
  const git = gitPolicySource(dir, options);
  return {
    async load() {
      return (await hasPath(join(dir, PIN_MANIFEST))) ? manifest.load() : git.load();
    },
  };
}

/** Whether the name exists, readable or not: a broken manifest must not be ignored. */
const hasPath = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    (error: unknown) => !(typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT'),
  );
