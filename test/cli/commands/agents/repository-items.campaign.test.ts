// What a repository runs without a hook, for each client and each place: after an allowed write of it, `agents doctor`
// does not say ok and `agents sessions` does not say that there are no gaps (0088). Hook program, service and commands
// are the real ones.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { REPOSITORY_PLACES } from '../../../../src/hooks/clients/repository-places.js';
import { CLIENTS, type Client } from '../../../../src/hooks/hook-event.js';
import { Bench } from '../../../fixtures/bench.js';
import { codingEdit } from '../../../fixtures/coding-policy.js';
import { writeCall } from '../../../fixtures/hooks/call-event.js';
import { HookClient, isAllowed } from '../../../fixtures/hooks/hook-client.js';
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
  ...REPOSITORY_PLACES[client].map((path) => [/\.json$/.test(path) ? path : `${path}/x/SKILL.md`, '{}'] as const),
  ...SETTINGS[client],
];

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
  /** Asks, executes and reports. */
  async function write(path: string, text: string): Promise<void> {
    const [session, file] = [`${client}-${(sessions += 1)}`, join(agent.machine.project, path)];
    const call = agent.event(writeCall(client, file, 'x'), session);
    expect(isAllowed(await agent.send(call))).toBe(true);
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    agent.machine.write(
      file,
      before.startsWith('{') ? JSON.stringify({ ...JSON.parse(before), ...JSON.parse(text) }) : text,
    );
    expect(await agent.report(call)).toMatchObject({ code: 0 });
    const { notes, line } = await commands();
    expect(notes.filter((note) => note.includes('.repository: ')).join()).toContain(path);
    expect(line).toContain(`not compared: `);
    expect(line).toContain('of the repository run without a hook');
    expect(line).not.toContain('no gaps');
    if (before === '') rmSync(file);
    else agent.machine.write(file, before);
  }

  test('has nothing else that is reported', async () => {
    const call = agent.event(writeCall(client, join(agent.machine.project, 'a.md'), 'x'), `${client}-plain`);
    expect(isAllowed(await agent.send(call))).toBe(true);
    expect(await agent.report(call)).toMatchObject({ code: 0 });
    const { notes, line } = await commands();
    expect(notes.join()).not.toContain('.repository: ');
    expect(line).toMatch(PLAIN[client] ?? /0 open · no gaps\n/);
  });

  test.each(placesOf(client))('%s: %s', write);
});
