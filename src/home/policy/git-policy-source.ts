// Pins from a Git working tree (C45): the version of a policy file is the last commit that changed it, and the loaded
// bytes must be those of that commit.
//
// The repository is untrusted (git-command.ts). Only the pins depend on the answers, and an uncertain pin denies.

import { sha256 } from '../../core/contract/hash.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import { readRegular } from '../../system/files/open-file.js';
import { runGit as runGitCommand, type GitAnswer } from '../../system/git/git-command.js';
import {
  folderPolicySource,
  POLICY_BYTES_MAX,
  type FolderPins,
  type PinResult,
  type PolicySourceOptions,
} from './policy-files.js';

/** Limit of the file that lists the boundary commits of a shallow clone. */
const SHALLOW_BYTES_MAX = 16_777_216;

/**
 * Policies of the contract folder `dir` (`<dir>/policy/*.yaml`), pinned by the Git repository that contains it.
 * Problems: `never_committed`, `dirty`, and `no_source` if there is no repository, no git, or if the history of a
 * shallow clone ends before the commit was found.
 * @throws UsageError for an invalid file name in the options
 */
export const gitPolicySource = (dir: string, options: PolicySourceOptions = {}): PolicySource =>
  folderPolicySource(dir, openGitPins, options);

export async function openGitPins(root: string): Promise<FolderPins> {
  const shallowCommits = await readShallowCommits(root);
  return {
    pinOf: (path, bytes) =>
      shallowCommits === null ? { problem: 'no_source' } : pinOf(root, path, bytes, shallowCommits),
    // A deleted file must not lift what it forbids before the deletion is committed.
    has: async (path) => (await runGit(root, ['cat-file', '-e', `HEAD:./${path}`])).status === 'done',
  };
}

async function pinOf(
  root: string,
  path: string,
  bytes: Uint8Array,
  shallowCommits: ReadonlySet<string>,
): Promise<PinResult> {
  const found = await runGit(root, ['rev-list', '--max-count=1', 'HEAD', '--', path]);
  if (found.status === 'not_run') return { problem: 'no_source' };
  const commit = found.stdout.toString('latin1').trim();
  // Also if HEAD refers to no commit yet.
  if (found.status === 'refused' || commit === '') return { problem: 'never_committed' };
  // In a shallow clone, the boundary commit appears to have changed every file.
  if (shallowCommits.has(commit)) return { problem: 'no_source' };
  const blob = await runGit(root, ['cat-file', 'blob', `${commit}:./${path}`]);
  if (blob.status === 'not_run') return { problem: 'no_source' };
  if (blob.status === 'refused' || !blob.stdout.equals(bytes)) return { problem: 'dirty' };
  return { git_sha: commit, sha256: sha256(bytes), source: 'git' };
}

/** The boundary commits of a shallow clone; null if there is no working tree or Git fails. */
async function readShallowCommits(root: string): Promise<ReadonlySet<string> | null> {
  const answer = await runGit(root, [
    'rev-parse',
    '--is-inside-work-tree',
    '--is-shallow-repository',
    '--path-format=absolute',
    '--git-path',
    'shallow',
  ]);
  const [inside, shallow, ...file] = answer.stdout.toString().split('\n');
  if (answer.status !== 'done' || inside !== 'true') return null;
  if (shallow !== 'true') return new Set();
  return readRegular(file.join('\n').trim(), SHALLOW_BYTES_MAX).then(
    (bytes) => new Set(bytes.toString('latin1').split('\n')),
    () => null,
  );
}

const runGit = (root: string, args: readonly string[]): Promise<GitAnswer> =>
  runGitCommand(root, args, { bytesMax: POLICY_BYTES_MAX + 1 });
