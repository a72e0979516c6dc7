// What a repository runs without a hook, for each client, each place and each depth: after an allowed write of it,
// `agents doctor` does not say ok and `agents sessions` does not say that there are no gaps (0088). The same for what
// the user has, and for folders that are not looked at. Hook program, service and commands are the real ones.

import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CLIENT_SETTINGS } from '../../../../../src/features/hooks/clients/clients.js';
import { CLIENTS, type Client } from '../../../../../src/features/hooks/hook-event.js';
import { Bench } from '../../../../fixtures/bench.js';
import { codingEdit } from '../../../../fixtures/coding-policy.js';
import { writeCall } from '../../../../fixtures/hooks/call-event.js';
import { HookClient, isAllowed } from '../../../../fixtures/hooks/hook-client.js';
import { turnpike } from '../../fake-io.js';

/** The settings in which a repository names servers and commands. */
const SETTINGS: Readonly<Record<Client, readonly (readonly [path: string, text: string])[]>> = {
  'claude-code': [['.mcp.json', '{"mcpServers":{"x":{"command":"x"}}}']],
  codex: [['.codex/config.toml', '[mcp_servers.x]\ncommand = "x"\n']],
  'gemini-cli': [['.gemini/settings.json', '{"mcpServers":{"x":{"command":"x"}}}']],
  opencode: ['mcp', 'command', 'agent', 'formatter', 'lsp'].map((name) => ['opencode.json', `{"${name}":{"x":{}}}`]),
  cline: [],
  cursor: [['.cursor/mcp.json', '{"mcpServers":{"x":{"command":"x"}}}']],
};
const placesOf = (client: Client): readonly (readonly [string, string])[] => [
  ...CLIENT_SETTINGS[client].unhooked.repository.map(
    (path) => [/\.json$/.test(path) ? path : `${path}/x/SKILL.md`, '{}'] as const,
  ),
  ...SETTINGS[client],
];

/** What a user has, below the home folder. */
const USER_ITEMS: Readonly<Record<Client, readonly (readonly [path: string, text: string])[]>> = {
  'claude-code': [
    ...['commands', 'skills', 'agents', 'workflows'].map((name) => [`.claude/${name}/x.md`, ''] as const),
    ['.claude/settings.json', '{"enabledPlugins":{"x@y":true}}'],
    ['.claude.json', '{"mcpServers":{"x":{"command":"x"}}}'],
    ['.claude.json', '{"projects":{"PROJECT":{"mcpServers":{"x":{"command":"x"}}}}}'],
  ],
  codex: [
    ...['prompts', 'skills', 'agents'].map((name) => [`.codex/${name}/x.md`, ''] as const),
    ['.agents/skills/x/SKILL.md', ''],
    ['.codex/config.toml', '[mcp_servers.x]\ncommand = "x"\n'],
  ],
  'gemini-cli': [
    ...['commands', 'skills', 'agents', 'extensions'].map((name) => [`.gemini/${name}/x.md`, ''] as const),
    ['.agents/skills/x/SKILL.md', ''],
    ['.gemini/settings.json', '{"mcpServers":{"x":{"command":"x"}}}'],
  ],
  opencode: [
    ...[
      'command',
      'commands',
      'agent',
      'agents',
      'skill',
      'skills',
      'mode',
      'modes',
      'plugin',
      'tool',
      'tools',
    ].flatMap((name) => [`.config/opencode/${name}/x.md`, `.opencode/${name}/x.md`].map((path) => [path, ''] as const)),
    ['.claude/skills/x/SKILL.md', ''],
    ['.agents/skills/x/SKILL.md', ''],
    ['.config/opencode/opencode.json', '{"mcp":{"x":{}}}'],
  ],
  cline: [
    ...['skills', 'agents', 'plugins', 'cron', 'data/workflows', 'hooks'].map(
      (name) => [`.cline/${name}/x`, ''] as const,
    ),
    ...['Hooks', 'Workflows'].map((name) => [`Documents/Cline/${name}/x`, ''] as const),
    ['.agents/skills/x/SKILL.md', ''],
    ['.cline/data/settings/cline_mcp_settings.json', '{"mcpServers":{"x":{"command":"x"}}}'],
  ],
  cursor: [
    ...['commands', 'skills', 'agents', 'plugins/local'].map((name) => [`.cursor/${name}/x.md`, ''] as const),
    ...['.claude/skills', '.claude/agents', '.codex/skills', '.codex/agents'].map(
      (name) => [`${name}/x.md`, ''] as const,
    ),
    ['.agents/skills/x/SKILL.md', ''],
    ['.cursor/mcp.json', '{"mcpServers":{"x":{"command":"x"}}}'],
  ],
};

/** The folders in which the items are: the project, one in it, and one deep in it. */
const FOLDERS = ['', 'sub/', 'packages/a/b c/.d/'];

/** No version of Cursor was measured, and Gemini CLI ignores settings of a folder that is not trusted. */
const PLAIN: Readonly<Partial<Record<Client, RegExp>>> = {
  cursor: /0 open · not compared: the hooks of its version were never measured\n/,
  'gemini-cli': /0 open · not compared: its client ignores the hook in a folder that is not trusted\n/,
};

let bench: Bench;
beforeAll(async () => {
  const edit: typeof codingEdit = (name, text) =>
    codingEdit(name, text).replace("paths: ['*', '[a-z]*/**', 'b/**']", "paths: ['**']");
  bench = await Bench.open({ edit, hooks: true });
});
afterAll(() => bench.close());

describe.each(CLIENTS)('0088: the repository of %s', (client) => {
  let agent: HookClient;
  let sessions = 0;
  beforeAll(() => {
    agent = new HookClient(client, bench.home);
  });
  const commands = async () => {
    const { machine } = agent;
    const environment = { HOME: machine.home, PATH: machine.environment['PATH'] ?? '' };
    const doctor = await turnpike(machine.project, ['agents', 'doctor', client], { environment });
    const limit = ['--limit', '1', '--home', bench.home];
    const listed = await turnpike(machine.project, ['agents', 'sessions', ...limit], { environment });
    return { notes: doctor.stdout.split('\n').filter((line) => /^ {2}(?:note|opens)/.test(line)), line: listed.stdout };
  };
  const merged = (before: string, text: string): string =>
    before.startsWith('{')
      ? JSON.stringify({ ...JSON.parse(before), ...JSON.parse(text) })
      : text.startsWith('[')
        ? `${before}\n${text}`
        : text;
  /** Asks about a write, lets it happen, reports it, and gets what the commands say then. */
  async function execute(file: string, change: () => void) {
    const call = agent.event(writeCall(client, file, 'x'), `${client}-${(sessions += 1)}`);
    expect(isAllowed(await agent.send(call))).toBe(true);
    change();
    expect(await agent.report(call)).toMatchObject({ code: 0 });
    return commands();
  }
  async function withFile<T>(file: string, text: string, work: (change: () => void) => Promise<T>): Promise<T> {
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const found = await work(() => agent.machine.write(file, merged(before, text)));
    if (before === '') rmSync(file);
    else agent.machine.write(file, before);
    return found;
  }

  test('has nothing else that is reported', async () => {
    const { notes, line } = await execute(join(agent.machine.project, 'a.md'), () => undefined);
    expect(notes.join()).not.toMatch(/\.(?:repository|user_items|folders): /);
    expect(line).toMatch(PLAIN[client] ?? /0 open · no gaps\n/);
  });

  test.each(FOLDERS.flatMap((folder) => placesOf(client).map(([path, text]) => [`${folder}${path}`, text] as const)))(
    '%s: %s',
    async (path, text) => {
      const file = join(agent.machine.project, path);
      const { notes, line } = await withFile(file, text, (change) => execute(file, change));
      expect(notes.filter((note) => note.includes('.repository: ')).join()).toContain(path);
      expect(line).toContain('not compared: ');
      expect(line).toContain('of the repository run without a hook');
      expect(line).not.toContain('no gaps');
    },
  );

  test.each(USER_ITEMS[client])('the user has %s: %s', async (path, text) => {
    const file = join(agent.machine.home, path);
    const { notes, line } = await withFile(file, text.replace('PROJECT', agent.machine.project), (change) => {
      change();
      return execute(join(agent.machine.project, 'a.md'), () => undefined);
    });
    expect(notes.filter((note) => note.includes('.user_items: ')).join()).toContain(path);
    expect(notes.join()).not.toContain('.repository: ');
    expect(line).toContain('not compared: ');
    expect(line).toContain('of the user run without a hook');
    expect(line).not.toContain('no gaps');
  });

  test('a folder that is not looked at', async () => {
    const link = join(agent.machine.project, 'outside');
    mkdirSync(join(agent.machine.folder, 'outside'), { recursive: true });
    symlinkSync(join(agent.machine.folder, 'outside'), link);
    const { notes, line } = await execute(join(agent.machine.project, 'a.md'), () => undefined);
    rmSync(link);
    expect(notes.join()).toContain('.folders: ');
    expect(line).toContain('not all folders of the project were looked at');
    expect(line).not.toContain('no gaps');
  });
});
