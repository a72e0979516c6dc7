// Pins from a manifest, the choice between manifest and Git, and unreadable policy files.

import { valuesOf } from '../../../src/core/contract/policy/pins.js';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { gitPolicySource } from '../../../src/home/policy/git-policy-source.js';
import { gitBlobId, manifestPolicySource, pinManifest } from '../../../src/home/policy/manifest-policy-source.js';
import { policySource } from '../../../src/home/policy/home-policy.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { commit, contractFolder, FILES, git, pinned, pins, problem, write } from '../../fixtures/contract-folder.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

let folder: string;
beforeEach(() => {
  folder = tempFolder('policy');
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('C45 D19 the pin from a manifest', () => {
  const at = (name: string) => ({
    path: `policy/${name}.yaml`,
    bytes: new Uint8Array(readFileSync(join(folder, 'policy', `${name}.yaml`))),
    pin: { problem: 'no_source' as const },
  });
  const manifest = (...names: string[]) => pinManifest(names.map(at));
  const put = (value: unknown): void => writeFileSync(join(folder, 'pins.json'), JSON.stringify(value));

  test('is the one in the manifest, as long as the bytes are the pinned ones', async () => {
    contractFolder(folder);
    put(manifest(...FILES));
    expect((await pins(manifestPolicySource(folder))).lanes).toEqual({
      git_sha: gitBlobId(new TextEncoder().encode('lanes: 1\n')),
      sha256: sha256('lanes: 1\n'),
      source: 'manifest',
    });
  });

  test('is stale for a file that was edited afterwards', async () => {
    contractFolder(folder);
    put(manifest(...FILES));
    write(folder, 'lanes', 'lanes: 2\n');
    const { lanes, roles } = await pins(manifestPolicySource(folder));
    expect(lanes).toEqual({ problem: 'stale' });
    expect(roles).toMatchObject({ source: 'manifest' });
  });

  test('is missing for a file that is not listed', async () => {
    contractFolder(folder);
    put(manifest('lanes', 'actions'));
    expect((await pins(manifestPolicySource(folder))).roles).toEqual({ problem: 'not_in_manifest' });
  });

  test.each([
    ['is not JSON', '{'],
    ['is not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['is a list', '[]'],
    ['has a member too many', '{"version":"v1","files":[],"signature":"x"}'],
    [
      'has a hash that is none',
      '{"version":"v1","files":[{"path":"policy/lanes.yaml","git_sha":"main","sha256":"x"}]}',
    ],
  ])('a manifest that %s is POLICY_INVALID', async (_what, content) => {
    writeFileSync(join(contractFolder(folder), 'pins.json'), content);
    await expect(manifestPolicySource(folder).load()).rejects.toMatchObject({ code: 'POLICY_INVALID' });
  });

  test('a manifest that names a file twice is POLICY_INVALID', async () => {
    contractFolder(folder);
    put(manifest(...FILES, 'lanes'));
    await expect(manifestPolicySource(folder).load()).rejects.toMatchObject({ code: 'POLICY_INVALID' });
  });

  test('contains the last commit of a file that is clean in Git, and the blob id of every other', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    write(folder, 'roles', 'roles: 2\n');
    const files = valuesOf(await gitPolicySource(folder).load());
    const made = pinManifest(files.map(({ name, bytes, pin }) => ({ path: `policy/${name}.yaml`, bytes, pin })));
    expect(made.files.map(({ path, git_sha }) => [path, git_sha])).toEqual([
      ['policy/lanes.yaml', sha],
      ['policy/roles.yaml', git(folder, 'hash-object', 'policy/roles.yaml')],
      ['policy/actions.yaml', sha],
    ]);
  });

  test('gitBlobId is the id that git computes', () => {
    expect(gitBlobId(new Uint8Array())).toBe('e69de29bb2d1d6434b8b29ae775ad8c2e48c5391');
    expect(gitBlobId(new TextEncoder().encode('hello\n'))).toBe('ce013625030ba8dba906f756967f9e9ca394464a');
  });
});

describe('C45 which source is used', () => {
  test('the manifest if it exists, even in a repository', async () => {
    git(contractFolder(folder), 'init', '-q');
    writeFileSync(join(folder, 'pins.json'), '{"version":"v1","files":[]}');
    commit(folder, 'one');
    expect(await pins(policySource(folder))).toEqual(problem('not_in_manifest'));
  });

  test('Git without a manifest', async () => {
    git(contractFolder(folder), 'init', '-q');
    const sha = commit(folder, 'one');
    expect((await pins(policySource(folder))).lanes).toEqual(pinned(sha, 'lanes: 1\n'));
  });

  test('S4-29 none without both: the files are loaded, without pins', async () => {
    const { lanes, roles, actions } = await policySource(contractFolder(folder)).load();
    expect([lanes.pin, roles.pin, actions.pin]).toEqual(Object.values(problem('no_source')));
    expect(Buffer.from(lanes.bytes).toString()).toBe('lanes: 1\n');
  });

  test('a manifest that is a dead link is not ignored', async () => {
    git(contractFolder(folder), 'init', '-q');
    commit(folder, 'one');
    symlinkSync('gone.json', join(folder, 'pins.json'));
    await expect(policySource(folder).load()).rejects.toMatchObject({ code: 'POLICY_UNREADABLE' });
  });
});

describe('an unreadable policy file is POLICY_UNREADABLE', () => {
  test.each<readonly [string, (path: string) => void]>([
    ['is missing', (path) => rmSync(path)],
    [
      'is a folder',
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
    [
      'is a FIFO',
      (path) => {
        rmSync(path);
        execFileSync('mkfifo', [path]);
      },
    ],
    ['is larger than 1 MiB', (path) => writeFileSync(path, ' '.repeat(1_048_577))],
    ['is in a missing folder', (path) => rmSync(dirname(path), { recursive: true })],
  ])('because it %s', async (_what, spoil) => {
    spoil(join(contractFolder(folder), 'policy', 'roles.yaml'));
    await expect(policySource(folder).load()).rejects.toMatchObject({ code: 'POLICY_UNREADABLE' });
  });

  test('a file of exactly 1 MiB is read', async () => {
    writeFileSync(join(contractFolder(folder), 'policy', 'roles.yaml'), ' '.repeat(1_048_576));
    expect((await policySource(folder).load()).roles.bytes).toHaveLength(1_048_576);
  });
});

test.each(['../secrets.yaml', 'a/b.yaml', '', '-x', '.hidden', '/etc/passwd'])(
  'only a plain name is accepted for the actions file: "%s"',
  (actions) => {
    expect(() => policySource(folder, { actions })).toThrow(expect.objectContaining({ code: 'USAGE' }));
  },
);
