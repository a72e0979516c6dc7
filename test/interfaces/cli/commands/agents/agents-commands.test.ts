// `turnpike agents install`, `uninstall` and `doctor`, as their users see them.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ClientMachine } from '../../../../fixtures/client-machine.js';
import { turnpike, type Said, type World } from '../../fake-io.js';

let machine: ClientMachine;
let settings: string;
beforeEach(() => {
  machine = new ClientMachine();
  machine.addClient('claude-code');
  settings = join(machine.project, '.claude/settings.json');
});

const call = (argv: readonly string[], world: World = {}): Promise<Said> => {
  const environment = { HOME: machine.home, PATH: machine.environment['PATH'] ?? '' };
  return turnpike(machine.project, argv, { environment, ...world });
};

describe('0064: turnpike agents', () => {
  test('shows the changes, asks, and writes nothing without a yes', async () => {
    machine.write(settings, '{\n  "theme": "dark"\n}\n');
    const refused = await call(['agents', 'install', 'claude-code'], { stdin: 'n\n' });
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain('give --yes');
    expect(refused.stdout).toContain(`change ${settings}`);
    expect(refused.stdout).toMatch(/\+ .*"PreToolUse": \[/);
    expect(readFileSync(settings, 'utf8')).toBe('{\n  "theme": "dark"\n}\n');
  });

  test('installs, finds nothing open, and restores', async () => {
    expect((await call(['agents', 'doctor', 'claude-code'])).code).toBe(1);
    const installed = await call(['agents', 'install', 'claude-code', '--yes']);
    expect(installed).toMatchObject({ code: 0, stderr: '' });
    expect(installed.stdout).toContain('installed for claude-code');
    expect(installed.stdout).not.toContain('still open');
    const looked = await call(['agents', 'doctor']);
    expect(looked).toMatchObject({ code: 0, stderr: '' });
    expect(looked.stdout).toBe('claude-code 2.1.330\n  ok\n');
    expect((await call(['agents', 'install', 'claude-code', '--yes'])).stdout).toContain('installed already');
    expect((await call(['agents', 'uninstall', 'claude-code', '--yes'])).stdout).toContain('restored claude-code');
    expect(existsSync(join(machine.project, '.claude'))).toBe(false);
    expect((await call(['agents', 'uninstall', 'claude-code', '--yes'])).stdout).toContain('has nothing of Turnpike');
  });

  test.each(['.claude/commands/x.md', '.claude/skills/x/SKILL.md', '.claude/agents/x.md', '.mcp.json'])(
    '0088: never says ok while the repository has %s',
    async (path) => {
      await call(['agents', 'install', 'claude-code', '--yes']);
      machine.write(join(machine.project, path), '{"mcpServers":{"x":{"command":"x"}}}');
      const { code, stdout } = await call(['agents', 'doctor', 'claude-code']);
      expect({ code, isOk: /^ {2}ok$/m.test(stdout) }).toEqual({ code: 0, isOk: false });
      expect(stdout).toMatch(
        /note {2}claude\.repository: 1 commands, skills, agents and servers of the repository run/,
      );
      expect(stdout).toContain(path);
    },
  );

  test('names what is open and the remedy, as text and as JSON', async () => {
    const found = await call(['agents', 'doctor', 'claude-code']);
    expect(found.stdout).toMatch(/opens {2}claude\.hook_missing: .*\n +Run `turnpike agents install claude-code`\./);
    const { stdout } = await call(['agents', 'doctor', 'claude-code', '--json']);
    const { client, version, findings } = JSON.parse(stdout) as { client: string; version: string; findings: object[] };
    expect({ client, version }).toEqual({ client: 'claude-code', version: '2.1.330' });
    expect(findings).toContainEqual(expect.objectContaining({ id: 'claude.hook_missing', severity: 'opens' }));
  });

  test('text of a file cannot control the terminal', async () => {
    machine.write(settings, '{\n  "theme": "\\u001b[2J\u009b"\n}\n');
    const { stdout } = await call(['agents', 'install', 'claude-code', '--yes']);
    expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(stdout)).toBe(false);
  });

  test.each([
    [['agents', 'install', 'vim'], 'is no client'],
    [['agents', 'install', 'claude-code', '--level', 'machine'], '--level takes'],
    [['agents', 'install', 'claude-code', '--profile', 'weak'], '--profile takes'],
    [['agents', 'install', 'cursor', '--profile', 'strong', '--yes'], 'has no profile strong'],
    [['agents', 'install', 'codex', '--http', 'http://x', '--token-env', 'T'], 'has no hooks by HTTP'],
    [['agents', 'install', 'claude-code', '--http', 'http://x'], 'go together'],
    [['agents', 'install', 'claude-code', '--http', 'ftp://x', '--token-env', 'T'], 'begins with http'],
    [['agents', 'install', 'claude-code', '--http', 'http://x', '--token-env', 'tok-en'], 'never a token'],
  ])('%j is refused', async (argv, message) => {
    const said = await call(argv);
    expect(said).toMatchObject({ code: 2, stdout: '' });
    expect(said.stderr).toContain(message);
  });
});
