// What viewers of @xstate/inspect 0.8 see, checked with the package itself and xstate 4.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import WebSocket from 'ws';
import { createActor } from 'xstate';
import {
  inspectionHub,
  type InspectionHub,
  type InspectionMessage,
} from '../../src/interfaces/inspector/xstate/inspection-hub.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { watchLedger } from '../../src/runtime/ledger/watch-ledger.js';
import { serveXstateInspect, type XstateInspectServer } from '../../src/interfaces/inspector/xstate/xstate-inspect.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';
import { ROOT } from '../root.js';
import { lamp, SECRET } from './lamp.js';
import { Viewer, type Seen } from './viewer.js';

let hub: InspectionHub;
let server: XstateInspectServer;
const open: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  hub = inspectionHub();
  server = await serveXstateInspect({ hub, log: winstonLog('silent') });
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  await server.close();
});

const viewerOf = (url: string): Viewer => {
  const viewer = new Viewer(url);
  open.push(viewer);
  return viewer;
};
const OPTIONAL = ['id', 'parent'];
const has = (type: string) => (seen: readonly Seen[]) => seen.some((message) => message.type === type);

/** Connects a plain client. @returns its messages, or the status of the refusal */
function dial(url: string, headers: Record<string, string> = {}): Promise<WebSocket | number> {
  const socket = new WebSocket(url, { headers });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket));
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    socket.once('error', (error) => (/Unexpected server response/.test(error.message) ? undefined : reject(error)));
  });
}

describe('actors of XState 5, in the viewer of XState 4', () => {
  test('xstate 4 itself reads their charts, states, events and end', async () => {
    const early = createActor(lamp, { inspect: hub.inspect });
    early.start();
    const viewer = viewerOf(server.url);
    // A viewer that connects late sees the present state.
    await viewer.until(has('service.register'));
    early.send({ type: 'SWITCH' });
    early.send({ type: 'SWITCH' });
    const seen = await viewer.until(has('service.stop'));
    expect(seen.map(({ type }) => type)).toEqual([
      'service.register',
      'service.event',
      'service.state',
      'service.event',
      'service.state',
      'service.stop',
    ]);
    expect(seen[0]).toMatchObject({
      id: early.id,
      sessionId: early.sessionId,
      machine: { id: 'lamp', states: ['lamp', 'lamp.off', 'lamp.on', 'lamp.gone'] },
      state: { value: 'off', done: false },
    });
    expect(seen[1]).toMatchObject({ event: { name: 'SWITCH', data: { type: 'SWITCH' }, $$type: 'scxml' } });
    expect(seen.filter(({ type }) => type === 'service.state').map(({ state }) => state)).toEqual([
      expect.objectContaining({ value: 'on', done: false }),
      expect.objectContaining({ value: 'gone', done: true }),
    ]);
    expect(JSON.stringify(seen)).not.toContain(SECRET);
  });

  test('a viewer has no effect, whatever it sends', async () => {
    const actor = createActor(lamp, { inspect: hub.inspect }).start();
    const viewer = viewerOf(server.url);
    await viewer.until(has('service.register'));
    const event = JSON.stringify({ name: 'SWITCH', data: { type: 'SWITCH' }, origin: actor.sessionId });
    viewer.send({ type: 'xstate.event', event, service: actor.sessionId });
    // Messages are answered in order.
    actor.send({ type: 'SWITCH' });
    const seen = await viewer.until(has('service.state'));
    expect(seen.filter(({ type }) => type === 'service.event')).toHaveLength(1);
    expect(actor.getSnapshot().value).toBe('on');
  });

  test('its messages have the members that the server of the package sends', async () => {
    const stock = spawn(process.execPath, [join(ROOT, 'test/fixtures/xstate-inspect-stock.mjs')], { stdio: 'pipe' });
    open.push({ close: () => (stock.kill() ? once(stock, 'exit').then(() => undefined) : Promise.resolve()) });
    const [port] = (await once(createInterface({ input: stock.stdout }), 'line')) as [string];
    const theirs = await conversation(`ws://127.0.0.1:${port}`, () => void stock.stdin.write('switch\n'));
    const actor = createActor(lamp, { inspect: hub.inspect }).start();
    const ours = await conversation(server.url, () => actor.send({ type: 'SWITCH' }));
    for (const type of ['service.register', 'service.event', 'service.state', 'service.stop']) {
      const members = (of: readonly Seen[]) => Object.keys(of.find((message) => message.type === type) ?? {}).sort();
      expect([type, members(ours)]).toEqual([type, expect.arrayContaining(members(theirs))]);
      // The types of the package have these two as well; it omits them for actors that existed before.
      expect(members(ours).filter((name) => !members(theirs).includes(name) && !OPTIONAL.includes(name))).toEqual([]);
      expect(members(ours)).toContain('sessionId');
    }
    const stateMembers = (of: readonly Seen[]): string[] =>
      Object.keys(JSON.parse(String(of.find(({ type }) => type === 'service.state')?.['state'])) as object);
    expect(stateMembers(ours)).toEqual(expect.arrayContaining(['value', 'context', '_event', '_sessionid', 'done']));
    expect(stateMembers(theirs)).toEqual(expect.arrayContaining(['value', '_event', '_sessionid', 'done']));
  });

  /** The messages of a client from its connection until the actor stops. */
  async function conversation(url: string, move: () => void): Promise<readonly Seen[]> {
    const socket = await dial(url);
    if (typeof socket === 'number') throw new Error(`refused: ${socket}`);
    const told: Seen[] = [];
    const stopped = new Promise<void>((resolve) => {
      socket.on('message', (data) => {
        const message = JSON.parse((data as Buffer).toString()) as Seen;
        told.push(message);
        if (message.type === 'service.register' || message.type === 'service.state') move();
        if (message.type === 'service.stop') resolve();
      });
    });
    socket.send(JSON.stringify({ type: 'xstate.inspecting' }));
    await stopped;
    socket.terminate();
    return told;
  }
});

describe('the runs of a ledger, in the viewer of XState 4', () => {
  test('shows every run and step of a tree as an actor', async () => {
    const bench = await Bench.open();
    open.push(bench);
    const viewer = viewerOf(server.url);
    // These appear as soon as a viewer connects; runs that ended before do not.
    createActor(lamp, { inspect: hub.inspect }).start();
    await viewer.until(has('service.register'));
    const watch = watchLedger(bench.turnpike.ledger, hub.inspect, { from: 0 });
    open.unshift(watch);
    const run = await bench.turnpike.startAgent();
    await run.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: SECRET })));
    await run.submit(JSON.stringify(proposal('READ_FILE', { path: '/etc/passwd' })));
    await run.end();
    await watch.caughtUp();
    const stops = (seen: readonly Seen[]): number => seen.filter(({ type }) => type === 'service.stop').length;
    // Orchestrator, agent, two steps, and for the first step a gateway with its write.
    const seen = await viewer.until((all) => stops(all) >= 6);
    const registered = seen.filter(({ type }) => type === 'service.register').slice(1);
    expect(registered.map(({ machine }) => (machine as { id: string }).id).sort()).toEqual([
      'agent',
      'mediated',
      'mediated',
      'orchestrator',
      'step',
      'step',
    ]);
    const last = new Map(seen.filter(({ type }) => type === 'service.state').map((one) => [one['sessionId'], one]));
    const endOf = (id: string): unknown => {
      const { sessionId } = registered.find((one) => one['id'] === id) ?? {};
      return (last.get(sessionId)?.['state'] as { value?: unknown } | undefined)?.value;
    };
    expect(endOf(run.run_id)).toBe('completed');
    expect(JSON.stringify(seen)).not.toContain(SECRET);
  });
});

describe('admission of viewers', () => {
  const path = (url: string, token: string): string => url.replace(/\/[^/]*$/, `/${token}`);

  test.each([
    ['another secret', (url: string) => path(url, 'guess'), {}, 401],
    ['no secret', (url: string) => path(url, ''), {}, 401],
    ['the secret in the query', (url: string) => `${path(url, '')}?token=${url.split('/').at(-1) ?? ''}`, {}, 401],
    ['another Host', (url: string) => url, { Host: 'evil.example' }, 403],
    ['a page of somebody else', (url: string) => url, { Origin: 'https://evil.example' }, 403],
    ['a page without an origin', (url: string) => url, { Origin: 'null' }, 403],
  ])('%s is refused', async (_what, to, headers, status) => {
    expect(await dial(to(server.url), headers)).toBe(status);
  });

  test('admits a page with an allowed origin', async () => {
    const named = await serveXstateInspect({ hub, origins: ['https://viewer.example'], log: winstonLog('silent') });
    open.push(named);
    const socket = await dial(named.url, { Origin: 'https://viewer.example' });
    expect(typeof socket).toBe('object');
    if (typeof socket === 'object') socket.terminate();
  });

  test('listens on loopback only', async () => {
    await expect(serveXstateInspect({ hub, host: '0.0.0.0' })).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('the content of messages', () => {
  const told = (of: InspectionHub): InspectionMessage[] => {
    const messages: InspectionMessage[] = [];
    of.listen((message) => messages.push(message));
    return messages;
  };

  test('contexts and events contain only what the options allow', () => {
    const open_hub = inspectionHub({
      context: (context) => ({ switched: (context as { switched: number }).switched }),
      event: (event) => ({ by: (event as { by?: string }).by }),
    });
    const messages = told(open_hub);
    const actor = createActor(lamp, { inspect: open_hub.inspect }).start();
    actor.send({ type: 'SWITCH', by: 'anna', secret: SECRET });
    const contextIn = (text: string): unknown => (JSON.parse(text) as { readonly context: unknown }).context;
    expect(messages.map((message) => ('state' in message ? contextIn(message.state) : undefined))).toEqual([
      { switched: 0 },
      undefined,
      { switched: 1 },
    ]);
    expect(messages[1]).toMatchObject({ event: expect.stringContaining('"by":"anna"') });
    expect(JSON.stringify(messages)).not.toContain(SECRET);
  });

  test('omits allowed values that are not JSON or too large', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    for (const context of [cyclic, { much: 'x'.repeat(100_000) }]) {
      const of = inspectionHub({ context: () => context });
      const messages = told(of);
      createActor(lamp, { inspect: of.inspect }).start();
      expect(messages).toHaveLength(1);
      expect(JSON.stringify(messages).length).toBeLessThan(4_000);
    }
  });

  test('evicts actors that are never stopped, the oldest first', () => {
    const messages = told(hub);
    const [first] = Array.from({ length: 1_025 }, () => createActor(lamp, { inspect: hub.inspect }).start());
    expect(messages.filter(({ type }) => type === 'service.stop')).toEqual([
      { type: 'service.stop', sessionId: first?.sessionId },
    ]);
    expect(told(hub)).toHaveLength(1_024);
  });
});
