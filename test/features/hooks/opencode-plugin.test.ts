// The opencode plugin without opencode: its hook command is a program that answers what the test says.
// `npm run campaign -- agents` runs the plugin in opencode.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { DIALECTS } from '../../../src/features/hooks/dialects.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ROOT } from '../../root.js';

interface Plugin {
  'tool.execute.before': (input: object, output: object) => Promise<void>;
  'tool.execute.after': (input: object, output: object) => Promise<void>;
  event: (input: object) => Promise<void>;
  dispose: () => Promise<void>;
}

/** opencode's own API: a main session with a subagent below it, one that it does not know, and two MCP servers. */
const API = {
  session: {
    get: ({ path }: { path: { id: string } }) =>
      Promise.resolve({ data: { main: {}, sub: { parentID: 'main' }, loop: { parentID: 'loop' } }[path.id] }),
  },
  mcp: { status: () => Promise.resolve({ data: { 'my.notes': {}, other: {} } }) },
};

const folder = tempFolder('plugin');
const seen = join(folder, 'events.jsonl');
let count = 0;

const SOURCE = readFileSync(join(ROOT, 'packaging/opencode/turnpike.js'), 'utf8');

/** The plugin with a hook command that writes the event to a file and then does `act`. */
const load = (act: string, command?: readonly string[]): Promise<Plugin> => {
  const hook = join(folder, `hook-${count}.sh`);
  writeFileSync(hook, `cat >> ${seen}; echo >> ${seen}\n${act}\n`);
  return loadWith(JSON.stringify({ hook: command ?? ['/bin/sh', hook] }));
};

/** The plugin with this text as its options. */
const loadWith = async (options: string): Promise<Plugin> => {
  const own = join(folder, `plugin-${++count}`);
  mkdirSync(own);
  writeFileSync(join(own, 'turnpike.json'), options);
  writeFileSync(join(own, 'turnpike.mjs'), SOURCE);
  const url = pathToFileURL(join(own, 'turnpike.mjs')).href;
  const { Turnpike } = (await import(url)) as { Turnpike: (input: object) => Promise<Plugin> };
  return Turnpike({ client: API, directory: '/project' });
};

const events = (): JsonObject[] =>
  readFileSync(seen, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JsonObject);

const call = (sessionID = 'main', tool = 'bash'): object => ({ tool, sessionID, callID: 'call-1' });
const ALLOW = `echo '{"decision":"allow"}'`;

beforeAll(() => writeFileSync(seen, ''));

describe('opencode plugin', () => {
  test('U-08: an allowed call goes on, and every event is one that the dialect reads', async () => {
    writeFileSync(seen, '');
    const plugin = await load(ALLOW);
    await plugin['tool.execute.before'](call(), { args: { command: 'ls' } });
    await plugin['tool.execute.after']({ ...call(), args: { command: 'ls' } }, { output: '', metadata: { exit: 0 } });
    await plugin['tool.execute.before'](call('sub', 'my_notes_take'), { args: {} });
    await plugin.event({ event: { type: 'session.idle', properties: { sessionID: 'sub' } } });
    await plugin.event({ event: { type: 'session.idle', properties: { sessionID: 'main' } } });
    await plugin.dispose();
    const read = events().map((event) => DIALECTS.opencode.readEvent(event));
    expect(read.map((event) => event?.kind)).toEqual([
      'session_start',
      'call',
      'outcome',
      'call',
      'agent_end',
      'session_end',
    ]);
    expect(new Set(read.map((event) => event?.session))).toEqual(new Set(['main']));
    expect(read[2]).toMatchObject({ outcome: { status: 'done' }, call: { tool: 'native.shell' } });
    expect(read[3]).toMatchObject({ agent: 'sub', call: { input: { server: 'my.notes', tool: 'take' } } });
  });

  test.each([
    ['denies', `echo '{"decision":"deny","reason":"not in this lane"}'`, /^not in this lane$/],
    ['says nothing', '', /not decided/],
    ['writes no JSON', 'echo "{"', /not decided/],
    ['writes null', 'echo null', /not decided/],
    ['allows in other words', `echo '{"decision":"Allow"}'`, /not decided/],
    ['crashes', 'kill -SEGV $$', /not decided/],
  ])('U-08: a call is stopped if the hook command %s', async (_, act, reason) => {
    const plugin = await load(act);
    await expect(plugin['tool.execute.before'](call(), { args: {} })).rejects.toThrow(reason);
  });

  test('U-08: a call is stopped if the hook command is missing, or opencode does not know the session', async () => {
    const missing = await load('', [join(folder, 'missing')]);
    await expect(missing['tool.execute.before'](call(), { args: {} })).rejects.toThrow(/could not be started/);
    const plugin = await load(ALLOW);
    await expect(plugin['tool.execute.before'](call('unknown'), { args: {} })).rejects.toThrow(/does not know/);
    await expect(plugin['tool.execute.before'](call('loop'), { args: {} })).rejects.toThrow(/nested too deeply/);
  });

  test.each([
    ['no JSON', '{', /JSON/],
    ['no command', '{}', /no hook command/],
    ['an empty command', '{"hook":[]}', /no hook command/],
    ['a command that is no list of words', '{"hook":["a",1]}', /no hook command/],
  ])('U-08: a call is stopped if turnpike.json has %s', async (_, options, reason) => {
    const plugin = await loadWith(options);
    await expect(plugin['tool.execute.before'](call(), { args: {} })).rejects.toThrow(reason);
  });

  test('U-08: a failure to report an outcome does not stop the client', async () => {
    const plugin = await load('', [join(folder, 'missing')]);
    await expect(plugin['tool.execute.after']({ ...call(), args: {} }, {})).resolves.toBeUndefined();
  });
});
