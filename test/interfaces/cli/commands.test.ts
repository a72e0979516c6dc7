// init, policy check, policy pin, actions, help, version, and usage errors.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Compile } from 'typebox/compile';
import { Check } from 'typebox/value';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { PinManifest } from '../../../src/core/contract/policy/pins.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { gitBlobId } from '../../../src/home/policy/manifest-policy-source.js';
import { initialised, linesOf, put, tempFolder, think, turnpike, write } from './fake-io.js';

const json = (text: string): unknown => JSON.parse(text);

describe('init', () => {
  test('D19 creates a home directory only for its owner, and a contract folder with the policies of a template and pins', async () => {
    const folder = tempFolder();
    const { code, stderr } = await turnpike(folder, ['init', '--template', 'reference']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((statSync(join(folder, '.turnpike')).mode & 0o777).toString(8)).toBe('700');
    expect(readdirSync(join(folder, '.turnpike')).sort()).toEqual([
      '.gitignore',
      'artifacts',
      'keys',
      'ledger.db',
      'ledger.head',
      'sandbox',
    ]);
    expect(readdirSync(join(folder, 'contract')).sort()).toEqual(['pins.json', 'policy']);
    const shipped = 'policies/contract/v1/policy';
    const names = readdirSync(shipped).filter((name) => name.endsWith('.yaml'));
    const manifest = json(readFileSync(join(folder, 'contract/pins.json'), 'utf8'));
    expect(Check(PinManifest, manifest)).toBe(true);
    for (const name of names) {
      const bytes = readFileSync(join(folder, 'contract/policy', name));
      expect(bytes).toEqual(readFileSync(join(shipped, name)));
      const pin = { path: `policy/${name}`, git_sha: gitBlobId(bytes), sha256: sha256(bytes) };
      expect(manifest).toMatchObject({ files: expect.arrayContaining([pin]) });
    }
  });

  test.each([
    ['a home', '.turnpike'],
    ['a contract', 'contract'],
  ])('when there is %s already, nothing is made', async (_name, there) => {
    const folder = tempFolder();
    mkdirSync(join(folder, there));
    put(folder, `${there}/mine`, 'x');
    expect(await turnpike(folder, ['init'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/^USAGE: /) });
    expect(readdirSync(folder)).toEqual([there]);
    expect(readdirSync(join(folder, there))).toEqual(['mine']);
  });

  test('accepts other folders, and names them in the next commands', async () => {
    const folder = tempFolder();
    const { code, stdout } = await turnpike(folder, ['init', '--home', 'h', '--contract', 'a/b']);
    expect(code).toBe(0);
    expect(stdout).toContain('turnpike runs --home h --contract a/b');
    const where = ['--home', 'h', '--contract', 'a/b'];
    expect(await turnpike(folder, ['run', '-', ...where], { stdin: think() })).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, 'contract'))).toBe(false);
  });

  test('--json names the folders, the template and the files of the example', async () => {
    expect(json((await turnpike(tempFolder(), ['init', '--json'])).stdout)).toEqual({
      home: '.turnpike',
      contract: 'contract',
      template: 'documents',
      files: ['TURNPIKE.md', 'proposals.jsonl', 'proposals.test.mjs'].map((name) => ({ name, state: 'created' })),
    });
  });
});

describe('policy', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await initialised();
  });
  const edit = (name: string, from: string, to: string): void => {
    const path = `contract/policy/${name}.yaml`;
    const text = readFileSync(join(folder, path), 'utf8');
    expect(text).toContain(from);
    put(folder, path, text.replace(from, to));
  };

  test('check finds nothing in the shipped policy', async () => {
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('no findings'),
      stderr: '',
    });
  });

  test('check names file, line and rule of each finding, and exits with 1', async () => {
    edit('roles', 'lanes: [SANDBOX_FILES]', 'lanes: [SANDBOX_FILES, "NO\\u001b[31mWHERE"]');
    edit('lanes', 'roles: [SANDBOX_AGENT]', 'roles: []');
    const { code, stdout } = await turnpike(folder, ['policy', 'check']);
    expect(code).toBe(1);
    for (const found of linesOf(stdout))
      expect(found).toMatch(/^contract\/policy\/\w+\.yaml:[1-9]\d* [a-z]+\.[a-z_]+: [ -~]+$/);
    expect(stdout).toContain('contract/policy/roles.yaml:');
    const [first] = linesOf((await turnpike(folder, ['policy', 'check', '--json'])).stdout);
    expect(json(first!)).toMatchObject({
      file: expect.any(String),
      line: expect.any(Number),
      rule: expect.any(String),
    });
  });

  test('check names the files that are not pinned, which is not a finding', async () => {
    edit('lanes', 'Read and change', 'Read, and change');
    const { code, stderr } = await turnpike(folder, ['policy', 'check']);
    expect(code).toBe(0);
    expect(linesOf(stderr)).toEqual([expect.stringMatching(/^contract\/policy\/lanes\.yaml is not pinned \(stale\)/)]);
  });

  test('check of a missing folder exits with 1, and names the folder', async () => {
    expect(await turnpike(folder, ['policy', 'check', '--contract', 'none'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^POLICY_UNREADABLE: .*none/),
    });
  });

  test('D19 after an edit runs are denied until the policy is pinned again', async () => {
    edit('actions', 'exposure: detailed', 'exposure: decision');
    const run = () => turnpike(folder, ['run', '-'], { stdin: think() });
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('pin.') });
    const pinned = await turnpike(folder, ['policy', 'pin']);
    expect(pinned).toMatchObject({ code: 0, stderr: '' });
    expect(pinned.stdout).toMatch(/^[0-9a-f]{40} {2}policy\/\S+\n/);
    const { code, stdout } = await run();
    expect(code).toBe(0);
    expect(json(stdout)).toMatchObject({ decision: 'ALLOW' });
  });

  test('D20 the other action policy can be used', async () => {
    put(folder, 'contract/policy/actions.yaml', readFileSync(join(folder, 'contract/policy/actions.coding.yaml')));
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
    const { stdout } = await turnpike(folder, ['run', '-'], { stdin: write('/sandbox/a.py', 'x') });
    expect(json(stdout)).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('C45 pin uses the last commit of a file without uncommitted changes in Git', async () => {
    const git = (...args: string[]): string =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: folder, encoding: 'utf8' });
    git('init', '-q');
    git('add', 'contract/policy');
    git('commit', '-qm', 'policy');
    const commit = git('rev-parse', 'HEAD').trim();
    edit('roles', 'The platform itself', 'The platform');
    const { stdout } = await turnpike(folder, ['policy', 'pin']);
    expect(stdout).toContain(`${commit}  policy/lanes.yaml\n`);
    expect(stdout).toContain(
      `${gitBlobId(readFileSync(join(folder, 'contract/policy/roles.yaml')))}  policy/roles.yaml\n`,
    );
  });

  test('a policy with findings is not pinned', async () => {
    const before = readFileSync(join(folder, 'contract/pins.json'), 'utf8');
    edit('roles', 'SANDBOX_FILES', 'NOWHERE');
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^POLICY_INVALID: /),
    });
    expect(readFileSync(join(folder, 'contract/pins.json'), 'utf8')).toBe(before);
  });

  test('pin replaces a damaged manifest', async () => {
    put(folder, 'contract/pins.json', '{');
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({ code: 1 });
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({ code: 0, stderr: '' });
  });

  test('pin refuses lint errors unless their rule is accepted with a reason', async () => {
    const before = readFileSync(join(folder, 'contract/pins.json'), 'utf8');
    edit('actions', '      source: [.txt, .md]\n', '');
    const check = await turnpike(folder, ['policy', 'check']);
    expect(check).toMatchObject({ code: 1, stdout: expect.stringMatching(CARELESS) });
    const refused = await turnpike(folder, ['policy', 'pin']);
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(CARELESS) });
    expect(readFileSync(join(folder, 'contract/pins.json'), 'utf8')).toBe(before);
    const accept = ['--accept', 'action.path_unrestricted', '--reason', 'only old names are read'];
    expect(await turnpike(folder, ['policy', 'pin', ...accept])).toMatchObject({ code: 0, stderr: '' });
    const { accepted } = json(readFileSync(join(folder, 'contract/pins.json'), 'utf8')) as { accepted: object[] };
    expect(accepted).toContainEqual({
      rule: 'action.path_unrestricted',
      path: 'policy/actions.yaml',
      sha256: sha256(readFileSync(join(folder, 'contract/policy/actions.yaml'))),
      reason: 'only old names are read',
      message: expect.stringContaining('RENAME_FILE'),
    });
    // The same bytes stay accepted; an edit needs a new decision.
    expect(await turnpike(folder, ['policy', 'check'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('accepted: only old names'),
    });
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
    edit('actions', 'files_max: 10000', 'files_max: 9999');
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 1 });
  });

  test('an acceptance covers one finding: another finding of the same rule in the same file is refused', async () => {
    edit('lanes', '[GOVERNANCE_AGENT, ATTORNEY_ADMIN]', '[MAPPING_AGENT, GOVERNANCE_AGENT, ATTORNEY_ADMIN]');
    edit('roles', 'lanes: [WRITE_MAPPING_OUTPUTS]', 'lanes: [WRITE_MAPPING_OUTPUTS, PROMOTE_SHARED_KNOWLEDGE]');
    const accept = ['--accept', 'promotion.by_agent', '--reason', 'people approve each promotion'];
    expect(await turnpike(folder, ['policy', 'pin', ...accept])).toMatchObject({ code: 0, stderr: '' });
    expect(await turnpike(folder, ['policy', 'pin'])).toMatchObject({ code: 0 });
    // The lanes file does not change; the roles file changes the role of one of its lanes.
    const roles = readFileSync(join(folder, 'contract/policy/roles.yaml'), 'utf8');
    const at = roles.indexOf('class:', roles.indexOf('role_id: GOVERNANCE_AGENT'));
    put(folder, 'contract/policy/roles.yaml', `${roles.slice(0, at)}${roles.slice(at).replace('system', 'agent')}`);
    const refused = await turnpike(folder, ['policy', 'pin']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/promotion\.by_agent.*GOVERNANCE_AGENT/) });
    expect(refused.stderr).not.toContain('MAPPING_AGENT');
  });

  test.each([
    [['--accept', 'action.runs']],
    [['--accept', 'no.such_rule', '--reason', 'why not']],
    [['--accept', 'export.no_approval', '--reason', 'there is no such error']],
    [['--accept', 'action.runs', '--reason', ' ']],
  ])('pin with %j is wrong usage', async (args) => {
    expect(await turnpike(folder, ['policy', 'pin', ...args])).toMatchObject({ code: 2 });
  });

  test('the shipped policy is not pinned by accident', async () => {
    expect(await turnpike(tempFolder(), ['policy', 'pin'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--contract/),
    });
  });
});

const CARELESS = /^contract\/policy\/actions\.yaml:\d+ action\.path_unrestricted: .*RENAME_FILE.*source/m;

describe('actions', () => {
  test('lists the actions that an agent may propose, as text', async () => {
    const { code, stdout } = await turnpike(await initialised(), ['actions']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^WRITE_FILE +write +path, content +\S.*path ends in \.txt \.md$/m);
    expect(stdout).toMatch(/^ {2}content_bytes_max +49152$/m);
  });

  test('--json contains everything that a proposal must comply with', async () => {
    const { stdout } = await turnpike(await initialised(), ['actions', '--json']);
    const document = json(stdout) as {
      proposal: object;
      actions: { action: string; args: object; extensions?: object }[];
      limits: object;
    };
    const proposal = Compile(document.proposal);
    expect(proposal.Check(json(think()))).toBe(true);
    expect(proposal.Check({ ...(json(think()) as object), action: 'RUN_SHELL' })).toBe(false);
    expect(proposal.Check({ ...(json(think()) as object), more: 1 })).toBe(false);
    const file = document.actions.find(({ action }) => action === 'WRITE_FILE')!;
    expect(file).toMatchObject({ risk: 'write', extensions: { path: ['.txt', '.md'] } });
    const args = Compile(file.args);
    expect(args.Check({ path: '/sandbox/a.txt', content: 'x' })).toBe(true);
    expect(args.Check({ path: '/etc/passwd', content: 'x' })).toBe(false);
    expect(args.Check({ path: '/sandbox/a.txt' })).toBe(false);
    expect(document.limits).toMatchObject({ payload_bytes_max: 65_536 });
  });
});

describe('help', () => {
  test('names every command and the exit codes', async () => {
    const { code, stdout } = await turnpike(tempFolder(), ['help']);
    expect(code).toBe(0);
    for (const { name, summary } of COMMANDS)
      expect(stdout).toMatch(new RegExp(`^  ${name}\\b.*${summary.slice(0, 20)}`, 'm'));
    expect(stdout).toContain('Exit codes: 0 done');
    expect(await turnpike(tempFolder(), ['--help'])).toMatchObject({ code: 0, stdout });
  });

  test('version prints the version of the package', async () => {
    const { version } = json(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await turnpike(tempFolder(), ['--version'])).toMatchObject({ code: 0, stdout: `turnpike ${version}\n` });
    expect(json((await turnpike(tempFolder(), ['version', '--json'])).stdout)).toMatchObject({ turnpike: version });
  });

  test('without a command it prints the overview, and exits as a usage error', async () => {
    expect(await turnpike(tempFolder(), [])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/usage:/),
    });
  });

  test.each([
    ['an unknown command', ['frobnicate']],
    ['half a command', ['ledger']],
    ['an option before the command', ['--home', 'x', 'runs']],
    ['an argument too many', ['init', 'now']],
    ['an option without its value', ['runs', '--limit']],
    ['a value for a switch', ['runs', '--json=yes']],
    ['help for an unknown command', ['help', 'frobnicate']],
    ['control characters of a terminal', ['\u001b[2J\u202e']],
  ])('%s is one line that says where to look, and exit code 2', async (_name, argv) => {
    const { code, stdout, stderr, log } = await turnpike(tempFolder(), argv);
    expect({ code, stdout, log }).toEqual({ code: 2, stdout: '', log: [] });
    expect(stderr).toMatch(/^USAGE: [^\n]*see `turnpike help[^\n]*`\n$/);
    expect(stderr).not.toMatch(/[^\P{C}\n]/u);
  });
});
