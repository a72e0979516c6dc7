// What lets a call pass without a decision: each change of safe settings is found, by its id.

import { describe, expect, test } from '@jest/globals';
import { chmodSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Profile } from '../../../../src/features/hooks/clients/judge-hooks.js';
import { isAtLeast } from '../../../../src/features/hooks/clients/claude-code-settings.js';
import { CLIENT_NAMES } from '../../../../src/features/hooks/clients/client-names.js';
import type { InstallTarget } from '../../../../src/features/hooks/clients/client-settings.js';
import { CLIENTS, type Client } from '../../../../src/features/hooks/hook-event.js';
import { applyInstall, planInstall } from '../../../../src/features/hooks/install/install-client.js';
import { missingComparisonTexts } from '../../../../src/features/hooks/comparisons/call-coverage.js';
import { checkClient } from '../../../../src/features/hooks/gate/hook-gate.js';
import { inspectClient } from '../../../../src/features/hooks/install/inspect-client.js';
import { ClientMachine, MEASURED } from '../../../fixtures/client-machine.js';
import { trustHooks } from '../../../fixtures/hooks/hook-client.js';
import { diskFolder } from '../../../fixtures/temp-folder.js';

/** A machine on which the client is installed, and safe. */
function installed(
  client: Client,
  profile: Profile,
  programOf: (machine: ClientMachine) => Partial<InstallTarget> = () => ({}),
): ClientMachine {
  // A file in memory may not be executable, and Cline runs files.
  const machine = new ClientMachine(diskFolder('clients'));
  machine.addClient(client);
  const { level } = CLIENT_NAMES[client];
  const target = { ...machine.target(client, level), ...programOf(machine) };
  applyInstall(planInstall(machine.place(client, level), profile, target));
  if (client === 'codex' && profile === 'gate') trustHooks(machine);
  return machine;
}

const edit = (machine: ClientMachine, file: string, change: (text: string) => string): void => {
  const path = join(machine.folder, file);
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  // A change that changes nothing would test nothing.
  if (changed === text) throw new Error(`${file} is not changed`);
  machine.write(path, changed);
};
const replace =
  (file: string, from: string | RegExp, to: string) =>
  (machine: ClientMachine): void =>
    edit(machine, file, (text) => text.replace(from, to));
const write =
  (file: string, text: string) =>
  (machine: ClientMachine): void =>
    machine.write(join(machine.folder, file), text);
const remove =
  (file: string) =>
  (machine: ClientMachine): void =>
    rmSync(join(machine.folder, file));
const version =
  (client: Client, text: string) =>
  (machine: ClientMachine): void =>
    edit(machine, `lib/${client}/package.json`, (old) => old.replace(MEASURED[client], text));

const openings = async (client: Client, profile: Profile, machine: ClientMachine): Promise<readonly string[]> => {
  const { project, environment } = machine;
  const { findings } = await inspectClient(client, { project, profile, environment });
  return findings.filter(({ severity }) => severity === 'opens').map(({ id }) => id);
};

const CLAUDE = 'project/.claude/settings.json';
const CODEX = 'home/.codex/config.toml';
const CODEX_HOOKS = 'home/.codex/hooks.json';
/** It may change the input after the decision. */
const SECOND_HOOK = '{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"rewrite"}]}]}}';
const GEMINI = 'project/.gemini/settings.json';
const PLUGIN = 'project/.opencode/plugins/turnpike.js';
const OPTIONS = 'project/.opencode/plugins/turnpike.json';
const CLINE = 'home/.cline/hooks/PreToolUse';
const CURSOR = 'project/.cursor/hooks.json';

type Change = readonly [what: string, change: (machine: ClientMachine) => void, id: string];

const GATE: Readonly<Record<Client, readonly Change[]>> = {
  'claude-code': [
    ['a version that ignores onFailure', version('claude-code', '2.1.294'), 'claude.version'],
    ['a pre-release of the first safe version', version('claude-code', '2.1.295-beta.1'), 'claude.version'],
    ['a version that says nothing', version('claude-code', 'unknown'), 'claude.version_unknown'],
    [
      'onFailure of another value',
      replace(CLAUDE, '"onFailure": "block"', '"onFailure": "allow"'),
      'claude.hook_fails_open',
    ],
    ['no onFailure', replace(CLAUDE, /,\s*"onFailure": "block"/, ''), 'claude.hook_fails_open'],
    [
      'a matcher of some tools',
      replace(CLAUDE, /("PreToolUse": \[\s*\{)/, '$1 "matcher": "Bash",'),
      'claude.hook_matcher',
    ],
    [
      'another command',
      replace(CLAUDE, 'mjs hook claude-code', 'mjs hook claude-code || true;'),
      'claude.hook_command',
    ],
    [
      'a condition',
      replace(CLAUDE, '"onFailure": "block"', '"onFailure": "block", "if": "Bash(ls)"'),
      'claude.hook_members',
    ],
    [
      'hooks that are switched off',
      write('project/.claude/settings.local.json', '{"disableAllHooks":true}'),
      'claude.hooks_disabled',
    ],
    [
      'settings of the user that switch hooks off',
      write('home/.claude/settings.json', '{"disableAllHooks":true}'),
      'claude.hooks_disabled',
    ],
    ['settings that cannot be read', write('project/.claude/settings.local.json', '{'), 'claude.settings_unreadable'],
    ['a second hook of the project', write('project/.claude/settings.local.json', SECOND_HOOK), 'claude.other_hooks'],
    ['a second hook of the user', write('home/.claude/settings.json', SECOND_HOOK), 'claude.other_hooks'],
    ['no settings', remove(CLAUDE), 'claude.hook_missing'],
    ['the hook for another event only', replace(CLAUDE, '"PreToolUse"', '"PreCompact"'), 'claude.hook_missing'],
    ['the hook of another client', replace(CLAUDE, / hook claude-code/g, ' hook codex'), 'claude.hook_missing'],
  ],
  codex: [
    ['a shell tool', replace(CODEX, 'shell_tool = false', 'shell_tool = true'), 'codex.shell_tool'],
    ['no word about the shell tool', replace(CODEX, /shell_tool = false.*/, ''), 'codex.shell_tool'],
    [
      'a profile with a shell tool',
      (machine) => edit(machine, CODEX, (text) => `${text}\n[profiles.x.features]\nshell_tool = true\n`),
      'codex.shell_tool',
    ],
    ['hooks that are switched off', replace(CODEX, '[features]', '[features]\nhooks = false'), 'codex.hooks_disabled'],
    ['a hook that is switched off', replace(CODEX, 'enabled = true', 'enabled = false'), 'codex.hooks_disabled'],
    ['a hook that is not trusted', replace(CODEX, /trusted_hash = .*/, ''), 'codex.hook_untrusted'],
    [
      'a hook that was edited after it was trusted',
      replace(CODEX_HOOKS, '--case project-1', '--case project-2'),
      'codex.hook_edited',
    ],
    [
      'a hook without the form that fails closed',
      replace(CODEX_HOOKS, /timeout 10 (.*?mjs hook codex [^|]*) \|\| \{[^}]*\}/, '$1'),
      'codex.hook_fails_open',
    ],
    [
      'a client that waits less than the hook',
      replace(CODEX_HOOKS, '"timeout": 15', '"timeout": 5'),
      'codex.hook_timeout',
    ],
    [
      'a hook that runs beside the call',
      replace(CODEX_HOOKS, '"timeout": 15', '"timeout": 15, "async": true'),
      'codex.hook_members',
    ],
    ['settings that cannot be read', write(CODEX, 'a = '), 'codex.settings_unreadable'],
    ['no hooks', remove(CODEX_HOOKS), 'codex.hook_missing'],
  ],
  'gemini-cli': [
    [
      'hooks that are switched off',
      write('home/.gemini/settings.json', '{"hooksConfig":{"enabled":false}}'),
      'gemini.hooks_disabled',
    ],
    [
      'the older switch',
      write('home/.gemini/settings.json', '{"tools":{"enableHooks":false}}'),
      'gemini.hooks_disabled',
    ],
    [
      'a matcher of some tools',
      replace(GEMINI, '"matcher": "*"', '"matcher": "run_shell_command"'),
      'gemini.hook_matcher',
    ],
    [
      'a hook without the form that fails closed',
      replace(GEMINI, /timeout 10 (.*?mjs hook gemini-cli [^|]*) \|\| \{[^}]*\}/, '$1'),
      'gemini.hook_fails_open',
    ],
    ['half of that form', replace(GEMINI, / \|\| \{[^}]*\}/, ''), 'gemini.hook_command'],
    ['a form that turns failures into successes', replace(GEMINI, 'exit 2;', 'exit 0;'), 'gemini.hook_command'],
    [
      'a client that waits less than the hook',
      replace(GEMINI, '"timeout": 15000', '"timeout": 500'),
      'gemini.hook_timeout',
    ],
    ['settings that cannot be read', write('home/.gemini/settings.json', '['), 'gemini.settings_unreadable'],
    ['no settings', remove(GEMINI), 'gemini.hook_missing'],
  ],
  opencode: [
    ['a changed plugin', replace(PLUGIN, /\n/, '\nthrow new Error();\n'), 'opencode.plugin_changed'],
    ['no plugin', remove(PLUGIN), 'opencode.plugin_missing'],
    ['another command', replace(OPTIONS, '"hook",', '"hook", "|| true",'), 'opencode.hook_command'],
    ['a command of another program', replace(OPTIONS, /turnpike-hook-[^"]*/, 'other.js'), 'opencode.hook_command'],
    ['a second, changed plugin', write('home/.config/opencode/plugins/turnpike.js', ''), 'opencode.plugin_changed'],
    [
      'a variable that keeps plugins from loading',
      ({ environment }) => void (environment['OPENCODE_PURE'] = '1'),
      'opencode.plugins_disabled',
    ],
    ['a second plugin', write('home/.config/opencode/opencode.json', '{"plugin":["other"]}'), 'opencode.other_plugins'],
    ['settings that cannot be read', write('project/opencode.json', '['), 'opencode.settings_unreadable'],
  ],
  cline: [
    [
      'a script that is not executable',
      ({ folder }) => chmodSync(join(folder, CLINE), 0o600),
      'cline.hook_not_executable',
    ],
    ['another script', replace(CLINE, '"cancel":true', '"cancel":false'), 'cline.hook_fails_open'],
    ['a line more', replace(CLINE, '#!/bin/sh\n', '#!/bin/sh\nexit 0\n'), 'cline.hook_fails_open'],
    ['no script', remove(CLINE), 'cline.hook_missing'],
  ],
  cursor: [
    ['no failClosed', replace(CURSOR, /,\s*"failClosed": true/, ''), 'cursor.hook_fails_open'],
    ['another command', replace(CURSOR, ' hook cursor', ' hook cursor; true'), 'cursor.hook_command'],
    [
      'a matcher of some tools',
      replace(CURSOR, '"failClosed": true', '"failClosed": true, "matcher": "Shell"'),
      'cursor.hook_matcher',
    ],
    ['no settings', remove(CURSOR), 'cursor.hook_missing'],
    ['settings that cannot be read', write(CURSOR, '{'), 'cursor.settings_unreadable'],
  ],
};

describe.each(Object.entries(GATE))('0064: %s, profile gate', (name, changes) => {
  const client = name as Client;

  test('is safe after an installation', async () => {
    expect(await openings(client, 'gate', installed(client, 'gate'))).toEqual([]);
  });

  test.each(changes)('%s', async (_what, change, id) => {
    const machine = installed(client, 'gate');
    change(machine);
    expect(await openings(client, 'gate', machine)).toContain(id);
  });
});

/** Programs that settings start in place of the hook program, and the finding. */
const PROGRAMS: readonly (readonly [what: string, (machine: ClientMachine) => readonly string[], id: string])[] = [
  ['in the project', ({ project }) => [process.execPath, join(project, PACKAGE_MAIN)], 'hook_in_project'],
  [
    'behind a link into the project',
    ({ folder }) => [process.execPath, join(folder, 'linked/main.js')],
    'hook_in_project',
  ],
  ['with an interpreter of the project', ({ project }) => [join(project, 'bin/node'), OTHER_HOOK], 'hook_in_project'],
  ['of the path', () => ['turnpike'], 'hook_program'],
  ['of a package elsewhere', ({ folder }) => [process.execPath, join(folder, PACKAGE_MAIN)], 'hook_program'],
  ['that is not there', () => [process.execPath, OTHER_HOOK], 'hook_program'],
  ['with an interpreter of the path', ({ folder }) => ['node', join(folder, OTHER_HOOK)], 'hook_program'],
  ['that was changed', ({ folder }) => [process.execPath, join(folder, OTHER_HOOK)], 'hook_changed'],
];
const PACKAGE_MAIN = 'node_modules/turnpike/dist/src/interfaces/cli/main.js';
const OTHER_HOOK = `/data/turnpike-hook-${'0'.repeat(64)}.mjs`;

describe.each(CLIENTS)('0088: %s: the hook program', (client) => {
  test.each(PROGRAMS)('%s is found', async (_what, programOf, id) => {
    const machine = installed(client, 'gate', (made) => {
      for (const folder of [made.project, made.folder]) made.write(join(folder, PACKAGE_MAIN), '// changed');
      made.write(join(made.project, 'bin/node'), '');
      made.write(join(made.folder, OTHER_HOOK), '// changed');
      symlinkSync(dirname(join(made.project, PACKAGE_MAIN)), join(made.folder, 'linked'));
      return { program: programOf(made) };
    });
    expect([...new Set(await openings(client, 'gate', machine))]).toEqual([`${CLIENT_NAMES[client].prefix}.${id}`]);
  });
});

describe('0064: profile strong: a native tool that is left is found', () => {
  test.each<readonly [Client, ...Change]>([
    ['claude-code', 'a tool that is not denied', replace(CLAUDE, /\s*"Bash",/, ''), 'claude.native_tools'],
    [
      'codex',
      'a sandbox that can be written',
      replace(CODEX, '"read-only"', '"workspace-write"'),
      'codex.native_tools',
    ],
    ['codex', 'a shell tool', replace(CODEX, 'shell_tool = false', 'shell_tool = true'), 'codex.shell_tool'],
    [
      'gemini-cli',
      'a tool in the list',
      replace(GEMINI, '"mcp_turnpike_read_file"', '"run_shell_command"'),
      'gemini.native_tools',
    ],
    ['gemini-cli', 'no list', replace(GEMINI, '"core"', '"other"'), 'gemini.native_tools'],
    [
      'opencode',
      'a permission',
      replace('project/opencode.json', '"turnpike_*": "allow"', '"bash": "allow"'),
      'opencode.native_tools',
    ],
    [
      'opencode',
      'the permission of an agent',
      replace('project/opencode.json', '{', '{"agent":{"x":{"tools":{"bash":true}}},'),
      'opencode.native_tools',
    ],
  ])('%s: %s', async (client, _what, change, id) => {
    const machine = installed(client, 'strong');
    expect(await openings(client, 'strong', machine)).toEqual([]);
    change(machine);
    expect(await openings(client, 'strong', machine)).toContain(id);
  });

  test.each<Client>(['cline', 'cursor'])('%s has no such profile', async (client) => {
    expect(await openings(client, 'strong', installed(client, 'gate'))).toContain(`${client}.native_tools`);
  });
});

test('versions are compared by their numbers, and a pre-release is older than its version', () => {
  expect(['2.1.295', '2.1.296', '2.2.0', '3.0.0', '2.1.1000'].map((one) => isAtLeast(one, '2.1.295'))).not.toContain(
    false,
  );
  expect(['2.1.294', '2.1.295-rc.1', '1.9.9', '2.1', '', 'x'].map((one) => isAtLeast(one, '2.1.295'))).not.toContain(
    true,
  );
});

test('0088: a hook over HTTP is safe, and what it denies while the service is away is not counted', async () => {
  const machine = installed('claude-code', 'gate', () => ({ http: { url: 'http://127.0.0.1:1', tokenVariable: 'T' } }));
  const { project, environment } = machine;
  const { findings } = await inspectClient('claude-code', { project, profile: 'gate', environment });
  expect(findings).toMatchObject([{ id: 'claude.http_uncounted', severity: 'note' }]);
  const report = { version: '2.1.330', findings: [], environment: { HOME: machine.home } };
  expect((await checkClient('claude-code', project, report)).uncompared).toBe('http');
  expect(missingComparisonTexts('http').join()).toContain('over HTTP');
});
