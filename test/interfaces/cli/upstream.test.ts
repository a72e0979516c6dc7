// upstream list and upstream pin: the tools of servers, and how they are accepted.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UpstreamPins } from '../../../src/core/contract/policy/upstreams.js';
import { UpstreamGround, until, type Server } from '../../fixtures/upstreams.js';
import { jsonLines, linesOf, turnpike } from './fake-io.js';

let ground: UpstreamGround;
beforeEach(() => {
  ground = new UpstreamGround();
  mkdirSync(join(ground.folder, 'contract'));
});
afterEach(async () => {
  await ground.close();
});

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
const contract = (name: string): string => join(ground.folder, 'contract', name);
const configure = (...servers: readonly Server[]): void =>
  writeFileSync(contract('upstreams.json'), JSON.stringify({ version: 1, servers }));
const run = (...argv: readonly string[]) => turnpike(ground.folder, argv);
const pinsNow = (): UpstreamPins['pins'] =>
  (JSON.parse(readFileSync(contract('upstream-pins.json'), 'utf8')) as UpstreamPins).pins;

describe('upstream list', () => {
  test('lists new, pinned and changed tools, and exits 0 only if all are pinned', async () => {
    const server = ground.spy({ tools: [tool('say', { description: 'Say\u202e it.\n' }), tool('wipe')] });
    configure(server);
    const { 'spy.say': say, 'spy.wipe': wipe } = (await ground.pins(server)).pins;
    const fresh = await run('upstream', 'list');
    expect(linesOf(fresh.stdout)).toEqual([`spy.say   new  ${say}  Say\\u202e it.\\n`, `spy.wipe  new  ${wipe}`]);
    expect(fresh).toMatchObject({ code: 1, stderr: '' });
    expect(existsSync(contract('upstream-pins.json'))).toBe(false);

    expect(await run('upstream', 'pin')).toMatchObject({ code: 0 });
    expect(await run('upstream', 'list')).toMatchObject({ code: 0, stderr: '' });

    ground.behave({ tools: [tool('say'), tool('more')] });
    const { code, stdout, stderr } = await run('upstream', 'list');
    expect(linesOf(stdout).map((line) => line.split(/ +/).slice(0, 2))).toEqual([
      ['spy.more', 'new'],
      ['spy.say', 'changed'],
    ]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'spy.wipe is pinned, but spy no longer lists it\n' });
  });

  test('--json prints every complete definition, and every problem', async () => {
    const say = tool('say', { annotations: { readOnlyHint: true }, later: [1] });
    configure(ground.spy({ tools: [say, tool('a/b')] }), ground.hostile('dies_early'));
    const { code, stdout } = await run('upstream', 'list', '--json');
    expect(code).toBe(1);
    expect(jsonLines(stdout)).toMatchObject([
      { name: 'spy.say', server: 'spy', state: 'new', definition: say },
      { server: 'spy', tool: null, problem: 'unusable' },
      { server: 'spy', tool: 'spy.say', problem: 'not_pinned' },
      { server: 'hostile', tool: null, problem: 'unreachable' },
    ]);
  });

  test('leaves no process behind, even if it is stopped', async () => {
    configure(ground.hostile('silent'));
    const stop = new AbortController();
    const said = turnpike(ground.folder, ['upstream', 'list'], { stop: stop.signal });
    await until(() => ground.notes().includes('initialize'));
    stop.abort();
    expect(await said).toMatchObject({ code: 1, stderr: expect.stringContaining('hostile cannot be used') });
    await until(() => !ground.alive());
  });
});

describe('upstream pin', () => {
  test('pins all listed tools, removes missing ones, and keeps those of unreachable servers', async () => {
    const server = ground.spy({ tools: [tool('say'), tool('wipe')] });
    configure(server);
    const before = (await ground.pins(server)).pins;
    const said = await run('upstream', 'pin');
    expect(linesOf(said.stdout)).toEqual([
      `${before['spy.say']}  spy.say  new`,
      `${before['spy.wipe']}  spy.wipe  new`,
      'pinned in contract/upstream-pins.json',
    ]);
    expect(pinsNow()).toEqual(before);
    ground.behave({ tools: [tool('say', { description: 'Other.' })] });
    writeFileSync(
      contract('upstream-pins.json'),
      JSON.stringify({
        version: 1,
        pins: { ...before, 'hostile.act': before['spy.say'], 'else.where': before['spy.say'] },
      }),
    );
    configure(server, ground.hostile('dies_early'));
    const again = await run('upstream', 'pin');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('hostile cannot be used') });
    expect(linesOf(again.stdout).slice(0, 2)).toEqual([
      `${(await ground.pins(server)).pins['spy.say']}  spy.say  changed`,
      'spy.wipe is no longer listed by its server; pin removed',
    ]);
    expect(Object.keys(pinsNow())).toEqual(['else.where', 'hostile.act', 'spy.say']);
  });

  test('pins one tool, or those of one server, and nothing else', async () => {
    const [one, two] = [
      ground.spy({ tools: [tool('say'), tool('wipe')] }, { name: 'one' }),
      ground.spy({ tools: [tool('say')] }, { name: 'two' }),
    ];
    configure(one, two);
    expect(await run('upstream', 'pin', 'one.say')).toMatchObject({ code: 0 });
    expect(Object.keys(pinsNow())).toEqual(['one.say']);
    expect(await run('upstream', 'pin', 'two', '--json')).toMatchObject({ code: 0 });
    expect(Object.keys(pinsNow())).toEqual(['one.say', 'two.say']);
  });

  test('pins only a definition with the given hash', async () => {
    const server = ground.spy({ tools: [tool('say'), tool('wipe')] });
    configure(server);
    const looked = (await ground.pins(server)).pins;
    ground.behave({ tools: [tool('say', { description: 'Exchanged meanwhile.' }), tool('wipe')] });
    const argument = (name: string): string => `${name}=${looked[name]}`;
    const refused = await run('upstream', 'pin', argument('spy.wipe'), argument('spy.say'));
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('spy.say does not match the given hash'),
    });
    expect(existsSync(contract('upstream-pins.json'))).toBe(false);
    expect(await run('upstream', 'pin', argument('spy.wipe'))).toMatchObject({ code: 0 });
    expect(pinsNow()).toEqual({ 'spy.wipe': looked['spy.wipe'] });
    expect(await run('upstream', 'pin', 'spy.nothing')).toMatchObject({
      code: 1,
      stderr: 'no server lists spy.nothing\n',
    });
    expect(await run('upstream', 'pin', 'spy.say=abc')).toMatchObject({ code: 2 });
  });
});

describe('files that cannot be used', () => {
  test('a missing configuration, and a missing contract', async () => {
    expect(await run('upstream', 'list')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('contract/upstreams.json is missing'),
    });
    expect(await turnpike('/', ['upstream', 'list'])).toMatchObject({ code: 2 });
  });

  const server = { name: 'a', transport: 'stdio', command: ['true'] };
  test.each([
    ['no JSON', '{', /not strict JSON/],
    ['a key twice', '{"version":1,"version":1,"servers":[]}', /duplicate key/],
    ['an unknown key', JSON.stringify({ version: 1, servers: [], extra: 1 }), /is not known/],
    ['another version', JSON.stringify({ version: 2, servers: [] }), /version/],
    [
      'an unknown transport',
      JSON.stringify({ version: 1, servers: [{ ...server, transport: 'pigeon' }] }),
      /servers\/0/,
    ],
    [
      'a value where a name should be',
      JSON.stringify({ version: 1, servers: [{ ...server, env: ['A=b'] }] }),
      /servers\/0/,
    ],
    ['a server with a dot', JSON.stringify({ version: 1, servers: [{ ...server, name: 'a.b' }] }), /servers\/0/],
    [
      'a server of the platform',
      JSON.stringify({ version: 1, servers: [{ ...server, name: 'sandbox' }] }),
      /servers\/0/,
    ],
    ['no command', JSON.stringify({ version: 1, servers: [{ ...server, command: [] }] }), /servers\/0/],
    [
      'a command with a null byte',
      JSON.stringify({ version: 1, servers: [{ ...server, command: ['a\0b'] }] }),
      /servers\/0/,
    ],
    ['too many servers', JSON.stringify({ version: 1, servers: Array.from({ length: 33 }, () => server) }), /servers/],
    ['too large a file', ' '.repeat(1_048_577), /larger than/],
  ])('upstreams.json: %s', async (_what, text, why) => {
    writeFileSync(contract('upstreams.json'), text);
    const { code, stderr } = await run('upstream', 'list');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(why) });
    expect(linesOf(stderr)).toHaveLength(1);
  });

  test.each([
    ['no hash', JSON.stringify({ version: 1, pins: { 'a.b': 'abc' } })],
    ['no name', JSON.stringify({ version: 1, pins: { 'a b': 'a'.repeat(64) } })],
    ['the key __proto__', `{"version":1,"pins":{"__proto__":"${'a'.repeat(64)}"}}`],
  ])('upstream-pins.json: %s', async (_what, text) => {
    configure(ground.hostile('fine'));
    writeFileSync(contract('upstream-pins.json'), text);
    expect(await run('upstream', 'list')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^POLICY_INVALID/) });
    expect(ground.notes()).toEqual([]);
  });
});
