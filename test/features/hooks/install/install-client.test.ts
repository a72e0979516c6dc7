// The settings of coding agents, with real files: an installation keeps what is there, and its removal restores it.

import { beforeEach, describe, expect, test } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Profile } from '../../../../src/features/hooks/clients/judge-hooks.js';
import type { Client } from '../../../../src/features/hooks/hook-event.js';
import {
  applyInstall,
  applyUninstall,
  planInstall,
  planUninstall,
} from '../../../../src/features/hooks/install/install-client.js';
import { inspectClient } from '../../../../src/features/hooks/install/inspect-client.js';
import { ClientMachine } from '../../../fixtures/client-machine.js';
import { trustHooks } from '../../../fixtures/hooks/hook-client.js';

type Level = 'user' | 'project';
type Row = readonly [client: Client, profile: Profile, level: Level, file: string, foreign: string];

const OTHER_HOOK = { matcher: 'Bash', hooks: [{ type: 'command', command: 'echo hi' }] };
const JSON_SETTINGS = (event: string): string =>
  `${JSON.stringify({ theme: 'dark', hooks: { [event]: [OTHER_HOOK] } }, null, 4)}\n`;
const TOML_SETTINGS = '# mine\nmodel = "m"\n\n[features]\nother = true # stays\n\n[mcp_servers.mine]\ncommand = "x"\n';

/** Every profile and level of every client, a file that it changes, and a foreign text in that file. */
const ROWS: readonly Row[] = [
  ['claude-code', 'gate', 'project', '.claude/settings.json', JSON_SETTINGS('PreToolUse')],
  ['claude-code', 'gate', 'user', '.claude/settings.json', JSON_SETTINGS('PreToolUse')],
  ['codex', 'gate', 'user', '.codex/hooks.json', JSON_SETTINGS('PreToolUse')],
  ['codex', 'gate', 'user', '.codex/config.toml', TOML_SETTINGS],
  ['codex', 'strong', 'user', '.codex/config.toml', TOML_SETTINGS],
  ['codex', 'gate', 'project', '.codex/config.toml', TOML_SETTINGS],
  ['gemini-cli', 'gate', 'project', '.gemini/settings.json', JSON_SETTINGS('BeforeTool')],
  ['gemini-cli', 'gate', 'user', '.gemini/settings.json', JSON_SETTINGS('BeforeTool')],
  ['gemini-cli', 'strong', 'project', '.gemini/settings.json', JSON_SETTINGS('BeforeTool')],
  ['opencode', 'gate', 'project', '.opencode/plugins/other.js', 'export {}\n'],
  ['opencode', 'gate', 'user', '.config/opencode/plugins/other.js', 'export {}\n'],
  ['opencode', 'strong', 'project', 'opencode.json', '{\n\t"theme": "x"\n}'],
  ['cline', 'gate', 'user', '.cline/hooks/other', '#!/bin/sh\n'],
  ['cursor', 'gate', 'project', '.cursor/hooks.json', '{"version":1,"hooks":{"stop":[{"command":"x"}]}}'],
];

let machine: ClientMachine;
beforeEach(() => {
  machine = new ClientMachine();
});

const rootOf = (level: Level): string => (level === 'user' ? machine.home : machine.project);

/** Every file below the home and the project, with its text. */
const everything = (): Readonly<Record<string, string>> => {
  const paths = ['home', 'project'].flatMap((name) =>
    readdirSync(join(machine.folder, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name: file }) => join(parentPath, file)),
  );
  return Object.fromEntries(paths.map((path) => [relative(machine.folder, path), readFileSync(path, 'utf8')]));
};

const install = (client: Client, profile: Profile, level: Level): number => {
  const changes = planInstall(machine.place(client, level), profile, machine.target(client, level));
  applyInstall(changes);
  return changes.length;
};
const uninstall = (client: Client, level: Level): void => applyUninstall(planUninstall(machine.place(client, level)));

const openings = async (client: Client, profile: Profile): Promise<readonly string[]> => {
  const { project, environment } = machine;
  const { findings } = await inspectClient(client, { project, profile, environment });
  return findings.filter(({ severity }) => severity === 'opens').map(({ id }) => id);
};

/** A hook that was there before may change an input after the decision, so it opens the gate. */
const otherHooks = (client: string, profile: string, foreign: string): readonly string[] =>
  profile === 'gate' && /PreToolUse|BeforeTool/.test(foreign) ? [`${client.split('-')[0] ?? ''}.other_hooks`] : [];

describe.each(ROWS)('0064: %s, profile %s, level %s, with %s', (client, profile, level, file, foreign) => {
  test('closes the gate, keeps what is there, and is removed without a trace', async () => {
    machine.addClient(client);
    const path = join(rootOf(level), file);
    machine.write(path, foreign, 0o640);
    const before = everything();
    expect(await openings(client, profile)).not.toEqual([]);
    expect(install(client, profile, level)).toBeGreaterThan(0);
    if (client === 'codex' && profile === 'gate') {
      expect(await openings(client, profile)).toContain(
        level === 'user' ? 'codex.hook_untrusted' : 'codex.hook_missing',
      );
      const state = everything();
      trustHooks(machine, join(rootOf(level), '.codex/hooks.json'));
      expect(await openings(client, profile)).toEqual(otherHooks(client, profile, foreign));
      rmSync(join(machine.home, '.codex'), { recursive: true, force: true });
      for (const [name, text] of Object.entries(state)) machine.write(join(machine.folder, name), text, 0o640);
    } else if (client !== 'cline') {
      // A file in memory may not be executable.
      expect(await openings(client, profile)).toEqual(otherHooks(client, profile, foreign));
    }
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(install(client, profile, level)).toBe(0);
    uninstall(client, level);
    expect(everything()).toEqual(before);
    expect(readdirSync(machine.home).length + readdirSync(machine.project).length).toBe(1);
  });
});

test('0064: claude-code, profile strong, denies its own tools and adds the server', async () => {
  machine.addClient('claude-code');
  machine.write(join(machine.project, '.mcp.json'), '{"mcpServers":{"mine":{"command":"x"}}}');
  install('claude-code', 'strong', 'project');
  expect(await openings('claude-code', 'strong')).toEqual([]);
  const servers = JSON.parse(everything()['project/.mcp.json'] ?? '') as { mcpServers: object };
  expect(Object.keys(servers.mcpServers)).toEqual(['mine', 'turnpike']);
  uninstall('claude-code', 'project');
  expect(everything()).toEqual({ 'project/.mcp.json': '{"mcpServers":{"mine":{"command":"x"}}}' });
});

test('0064: what a user adds after an installation stays when it is removed', () => {
  const path = join(machine.project, '.claude/settings.json');
  machine.write(path, JSON_SETTINGS('PreToolUse'));
  install('claude-code', 'gate', 'project');
  machine.write(path, readFileSync(path, 'utf8').replace('"dark"', '"light"'));
  uninstall('claude-code', 'project');
  expect(readFileSync(path, 'utf8')).toBe(JSON_SETTINGS('PreToolUse').replace('dark', 'light'));
  expect(readdirSync(join(machine.project, '.claude'))).toEqual(['settings.json']);
});

describe('0064: a file that cannot be changed safely is refused, and nothing is written', () => {
  const refused = (client: Client, level: Level, message: RegExp): void => {
    const before = everything();
    expect(() => install(client, 'gate', level)).toThrow(message);
    expect(everything()).toEqual(before);
  };

  test.each([
    ['comments', '{\n  // mine\n  "a": 1\n}', /is not plain JSON/],
    ['a key twice', '{"a":1,"a":2}', /repeated key/],
    ['a number that changes', '{"a":12345678901234567890}', /rewriting would change/],
    ['no object', '[]', /is not plain JSON/],
    ['hooks of another form', '{"hooks":[]}', /something else than an object/],
    ['an event of another form', '{"hooks":{"PreToolUse":{}}}', /something else than a list/],
  ])('JSON with %s', (_name, text, message) => {
    machine.write(join(machine.project, '.claude/settings.json'), text);
    refused('claude-code', 'project', message);
  });

  test.each([
    ['what is no TOML', 'a = ', /is not TOML/],
    ['a shell that is switched on', '[features]\nshell_tool = true\n', /switches the shell tool on/],
    ['a header in a text', 'a = """\n[features]\n"""\n', /form in which lines cannot be added/],
  ])('TOML with %s', (_name, text, message) => {
    machine.write(join(machine.home, '.codex/config.toml'), text);
    refused('codex', 'user', message);
  });

  test('a link in place of the file', () => {
    machine.write(join(machine.folder, 'elsewhere.json'), '{}');
    mkdirSync(join(machine.project, '.claude'));
    symlinkSync(join(machine.folder, 'elsewhere.json'), join(machine.project, '.claude/settings.json'));
    refused('claude-code', 'project', /is a symbolic link/);
  });

  test('a folder that leads out of the project', () => {
    mkdirSync(join(machine.folder, 'elsewhere'));
    symlinkSync(join(machine.folder, 'elsewhere'), join(machine.project, '.claude'));
    refused('claude-code', 'project', /leads out of/);
    expect(readdirSync(join(machine.folder, 'elsewhere'))).toEqual([]);
  });

  test('a hook of Cline that is there already', () => {
    machine.write(join(machine.home, '.cline/hooks/PreToolUse'), '#!/bin/sh\n');
    refused('cline', 'user', /is a hook of its own/);
  });

  test.each([
    ['claude-code', 'strong', 'user'],
    ['cline', 'gate', 'project'],
    ['cursor', 'strong', 'project'],
  ] as const)('%s has no profile %s at the level %s', (client, profile, level) => {
    expect(() => install(client, profile, level)).toThrow('has no profile');
  });
});
