// `policy schema`, `policy format` and `policy test` in a contract folder with conditions.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shippedContract } from '../../../../../src/runtime/shipped-contract.js';
import { tempFolder, turnpike } from '../../fake-io.js';

const CONDITIONS = `// Files that no agent touches.
@id("secret_files") forbid (principal, action, resource is Path) when { resource.name like ".env*" || resource in Path::"/sandbox/.git" };
@id("large") @approvals("2") // two of them
forbid (principal, action == Action::"WRITE_FILE", resource) when { context.args.content_bytes > 5 };
@id("closed") forbid (principal, action == Action::"DELETE_FILE", resource) when { context.now < datetime("2026-01-02") };
@id("personal") forbid (principal, action == Action::"LIST_FILES", resource) when { context.label.flags.contains("contains_pii") };
`;

let folder: string;
beforeEach(() => {
  folder = tempFolder('authoring');
  cpSync(shippedContract(), join(folder, 'contract'), { recursive: true });
});

const conditions = (): string => join(folder, 'contract/policy/conditions.cedar');
const write = (text: string): void => writeFileSync(conditions(), text);
const run = (...argv: string[]) => turnpike(folder, ['policy', ...argv]);

describe('policy schema', () => {
  test('prints the types of actions, tools and tables, without a condition file too', async () => {
    const { code, stdout } = await run('schema');
    expect(code).toBe(0);
    expect(stdout).toMatch(/entity Path in \[Path\]/);
    expect(stdout).toMatch(/action "WRITE_FILE" in \[Action::"risk:\w+"\] appliesTo/);
    expect(stdout).toContain('content_bytes: __cedar::Long');
  });

  test('has the tools of --registrations; --json is the JSON format of Cedar', async () => {
    const input = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
    const output = { type: 'object', properties: {}, additionalProperties: false };
    const tool = {
      name: 'pay',
      summary: 'Pay.',
      input: { ...input, additionalProperties: false },
      output,
      idempotent: false,
      timeout_ms: 1_000,
      result_bytes_max: 1_000,
      outside: false,
      confidentiality: [],
    };
    writeFileSync(join(folder, 'r.json'), JSON.stringify({ actions: [], tools: [tool], targets: [] }));
    const { code, stdout, stderr } = await run('schema', '--registrations', 'r.json', '--json');
    expect([code, stderr]).toEqual([0, '']);
    const schema = JSON.parse(stdout) as { '': { actions: Record<string, unknown> } };
    expect(schema[''].actions).toHaveProperty('CALL_TOOL:pay');
  });
});

describe('policy format', () => {
  test('formats the file and keeps its comments; a formatted file stays as it is', async () => {
    write(CONDITIONS);
    expect(await run('format', '--check')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('is not formatted'),
    });
    expect(readFileSync(conditions(), 'utf8')).toBe(CONDITIONS);
    expect(await run('format')).toMatchObject({ code: 0 });
    const formatted = readFileSync(conditions(), 'utf8');
    expect(formatted).not.toBe(CONDITIONS);
    for (const kept of ['// Files that no agent touches.', '// two of them', '@id("secret_files")\nforbid (']) {
      expect(formatted).toContain(kept);
    }
    expect(await run('format', '--check')).toMatchObject({ code: 0 });
    expect(await run('format')).toMatchObject({ code: 0, stdout: expect.stringContaining('is formatted') });
  });

  test('changes no file with a mistake, and names its place', async () => {
    const broken = `${CONDITIONS}forbid (principal, action, resource) when { ;\n`;
    write(broken);
    const { code, stderr } = await run('format');
    expect(code).toBe(1);
    expect(stderr).toMatch(/conditions\.cedar:7:\d+ condition\.syntax: /);
    expect(readFileSync(conditions(), 'utf8')).toBe(broken);
  });

  test('a folder without conditions', async () => {
    expect(await run('format')).toMatchObject({ code: 2, stderr: expect.stringContaining('does not exist') });
  });
});

const request = (action: string, args: object, more: object = {}) => ({
  role: 'SANDBOX_AGENT',
  lane: 'SANDBOX_FILES',
  action,
  args,
  ...more,
});
const file = (path: string, content = 'hi'): object => ({ path, content });

describe('policy test', () => {
  const tests = (...all: readonly (readonly [object, object])[]): void => {
    const list = all.map(([asked, expected], index) => ({ name: `t${index}`, request: asked, expect: expected }));
    // JSON is YAML, on one line for each test.
    writeFileSync(join(folder, 't.yaml'), `tests:\n${list.map((one) => `  - ${JSON.stringify(one)}\n`).join('')}`);
  };

  test('decides by lanes, paths, conditions, time, label and files', async () => {
    write(CONDITIONS);
    tests(
      [request('WRITE_FILE', file('/sandbox/a.txt')), { decision: 'allow', rule: 'lane.granted' }],
      [request('WRITE_FILE', file('/sandbox/.env.txt')), { decision: 'deny', rule: 'secret_files' }],
      [
        request('WRITE_FILE', file('/sandbox/a.txt', 'larger')),
        { decision: 'approval', quorum: 2, roles: ['ATTORNEY_ADMIN'] },
      ],
      [request('WRITE_FILE', file('/etc/a.txt')), { decision: 'deny', rule: 'args.schema' }],
      [request('WRITE_FILE', file('/sandbox/a.sh')), { decision: 'deny', rule: 'extension.not_allowed' }],
      [
        request('DELETE_FILE', { path: '/sandbox/a.txt' }, { time: '2026-01-01T23:59:59Z' }),
        { decision: 'deny', rule: 'closed' },
      ],
      [request('DELETE_FILE', { path: '/sandbox/a.txt' }, { time: '2026-01-02T00:00:00Z' }), { decision: 'allow' }],
      [
        request('LIST_FILES', { path: '/sandbox/' }, { label: { flags: ['contains_pii'] } }),
        { decision: 'deny', rule: 'personal' },
      ],
      [request('FINISH', { response: 'Done.' }), { decision: 'allow' }],
      [request('WRITE_FILE', file('/sandbox/a.txt'), { role: 'NOBODY' }), { decision: 'deny', rule: 'role.unknown' }],
      [request('WRITE_FILE', file('/sandbox/a.txt'), { lane: 'NOWHERE' }), { decision: 'deny', rule: 'lane.unknown' }],
      [request('WRITE_FILE', { path: 7 }), { decision: 'deny' }],
    );
    const { code, stdout } = await run('test', 't.yaml');
    expect(stdout.split('\n').filter((line) => line.startsWith('✗'))).toEqual([]);
    expect([code, stdout.trim().split('\n').at(-1)]).toEqual([0, '12 tests passed, 0 failed']);
    expect(stdout).toContain('t.yaml:4 t2: approval of 2 by ATTORNEY_ADMIN');
  });

  test('fails for each kind of difference, with the line of the test', async () => {
    write(CONDITIONS);
    const large = request('WRITE_FILE', file('/sandbox/a.txt', 'larger'));
    tests([large, { decision: 'allow', rule: 'x', quorum: 1, roles: ['OTHER'] }], [large, { decision: 'approval' }]);
    const { code, stdout } = await run('test', 't.yaml');
    expect(code).toBe(1);
    expect(stdout.split('\n')[0]).toBe(
      '✗ t.yaml:2 t0: expected allow, decided approval; expected rule x, decided approval.required; ' +
        'expected 1 approvals, decided 2; expected approvers OTHER, decided ATTORNEY_ADMIN',
    );
    expect(stdout).toContain('1 test passed, 1 failed');
  });

  test('--junit prints each test, with the difference of a failed one; --json prints one line for each', async () => {
    tests([request('FINISH', { response: 'x' }), { decision: 'deny', rule: '<&"\'>' }]);
    const { code, stdout } = await run('test', 't.yaml', 't.yaml', '--junit');
    expect(code).toBe(1);
    expect(stdout).toContain('<testsuite name="policy" tests="2" failures="2">');
    expect(stdout).toContain(
      'message="expected deny, decided allow; expected rule &lt;&amp;&quot;&apos;&gt;, decided none"',
    );
    const lines = (await run('test', 't.yaml', '--json')).stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { line: 2, decided: { decision: 'allow' } },
    ]);
  });

  test.each([
    ['no tests', 'tests: []\n', /^.*t\.yaml:1 /],
    ['an unknown member', 'tests:\n  - name: a\n    request: {}\n    expect: { decision: maybe }\n', /t\.yaml:\d+ /],
    ['no YAML', 'tests: [\n', /t\.yaml:\d+ yaml\.syntax/],
  ])('a file with a mistake is refused with its line: %s', async (_what, text, message) => {
    writeFileSync(join(folder, 't.yaml'), text);
    const { code, stdout, stderr } = await run('test', 't.yaml');
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(message);
  });
});
