// XState inspectors attached to active runs: what they see, and that they cannot affect a run (K2 of tree.ts).

import { afterEach, describe, expect, test } from '@jest/globals';
import { createInspector, type StatelyInspectionEvent } from '@statelyai/inspect';
import type { AnyMachineSnapshot, InspectionEvent } from 'xstate';
import { inspectionHub } from '../../src/interfaces/inspector/xstate/inspection-hub.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { statelyObserver } from '../../src/interfaces/inspector/xstate/stately-observer.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { Log } from '../../src/engine/ports/log.js';
import { openTurnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { serveXstateInspect } from '../../src/interfaces/inspector/xstate/xstate-inspect.js';
import { Bench } from '../fixtures/bench.js';
import { Viewer } from './viewer.js';

const CONTENT = 'a-text-of-the-case';
const XSTATE = { interpreter: 'xstate' } as const;

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

const fail = (): never => {
  throw new Error('an inspector');
};
const reject = (): Promise<never> => Promise.reject(new Error('later'));

const propose = (n: number, action: string, args: object): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-00000000000${n}`,
    reasoning: 'A test.',
    action,
    args,
  });

/** Two agent runs in alternation; one writes, and reads a missing file. @returns the texts of the ledger entries */
async function live(options: Partial<TurnpikeOptions> = {}): Promise<readonly string[]> {
  const bench = await Bench.open(options);
  const [first, second] = [await bench.turnpike.startAgent(), await bench.turnpike.startAgent({ case: 'case-two' })];
  await first.submit(propose(1, 'WRITE_FILE', { path: '/sandbox/a.txt', content: CONTENT }));
  await second.submit(propose(2, 'READ_FILE', { path: '/etc/passwd' }));
  await first.submit(propose(3, 'READ_FILE', { path: '/sandbox/none.txt' }));
  await first.end();
  await second.submit('{');
  await second.end();
  const texts: string[] = [];
  for await (const { text } of bench.turnpike.ledger.log()) texts.push(text);
  // Verifies the ledger, and replays it with the table-driven interpreter.
  await bench.close();
  return texts;
}

function firstDifference(texts: readonly string[], expected: readonly string[]): object | null {
  const at = expected.findIndex((text, index) => text !== texts[index]);
  if (at >= 0) return { at, expected: expected[at], found: texts[at] };
  return texts.length === expected.length ? null : { at: expected.length, found: texts[expected.length] };
}

interface Seen {
  readonly id: string;
  readonly type: InspectionEvent['type'];
  /** The type of an event, the state of a snapshot, the name of an action. */
  readonly what: unknown;
}

const seenIn = (event: InspectionEvent): Seen => ({
  id: (event.actorRef as unknown as { readonly id: string }).id,
  type: event.type,
  what:
    'action' in event
      ? event.action.type
      : event.type === '@xstate.event'
        ? event.event.type
        : 'snapshot' in event
          ? (event.snapshot as AnyMachineSnapshot).value
          : null,
});

describe('an active run with an inspector', () => {
  test('U-05: the inspect callback sees the actors, events, actions and states of the run', async () => {
    const seen: Seen[] = [];
    const texts = await live({ ...XSTATE, inspect: (event) => seen.push(seenIn(event)) });
    const of = (type: Seen['type'], id?: string): unknown[] =>
      seen.filter((one) => one.type === type && (id === undefined || one.id === id)).map(({ what }) => what);
    const created = texts.flatMap((text) => /"run_id":"([^"]+)"[^]*"type":"run_created"/.exec(text)?.[1] ?? []);
    const agents = created.filter((id) => /\.1$/.test(id) && !/\.1\./.test(id));
    const actors = seen.filter(({ type }) => type === '@xstate.actor').map(({ id }) => id);
    expect(actors).toEqual(expect.arrayContaining(created));
    expect(agents).toHaveLength(2);
    for (const id of agents) {
      expect(of('@xstate.event', id).filter((type) => type === 'PROPOSE')).toHaveLength(2);
      expect(of('@xstate.snapshot', id).at(-1)).toBe('completed');
      expect(of('@xstate.microstep', id).length).toBeGreaterThan(4);
    }
    expect(of('@xstate.action')).toContain('xstate.emit');
  });

  test('U-05: @statelyai/inspect reads it unchanged, and without contexts through statelyObserver', async () => {
    for (const withheld of [false, true]) {
      const sent: StatelyInspectionEvent[] = [];
      const inspector = createInspector({ send: (event) => void sent.push(event) });
      await live({ ...XSTATE, inspect: withheld ? statelyObserver(inspector) : inspector.inspect });
      // It is slow with every event.
      const expected = ['"orchestrator', '"agent', '"step', '"mediated', '"PROPOSE"', '"value":"completed"'];
      const isComplete = (): boolean => {
        const text = JSON.stringify(sent).replaceAll('\\', '');
        return expected.every((part) => text.includes(part));
      };
      while (!isComplete()) await new Promise((resolve) => setTimeout(resolve, 5));
      const actors = sent.flatMap((event) => (event.type === '@xstate.actor' ? [event] : []));
      const names = actors.map(({ definition }) => (JSON.parse(definition ?? '{}') as { readonly id?: string }).id);
      expect(new Set(names)).toEqual(new Set(['orchestrator', 'agent', 'step', 'mediated']));
      const states = sent.flatMap((event) => (event.type === '@xstate.snapshot' ? [event.snapshot] : []));
      expect(states.map((state) => (state as { readonly value?: unknown }).value)).toContain('completed');
      const types = sent.flatMap((event) => (event.type === '@xstate.event' ? [event.event.type] : []));
      expect(types).toContain('PROPOSE');
      expect(JSON.stringify(sent).includes('tester') || JSON.stringify(sent).includes('case-two')).toBe(!withheld);
    }
  });

  test('U-05: a viewer of @xstate/inspect 0.8 sees it while it is active', async () => {
    const hub = inspectionHub();
    const server = await serveXstateInspect({ hub, log: winstonLog('silent') });
    open.push(server);
    const viewer = new Viewer(server.url);
    open.push(viewer);
    const bench = await Bench.open({ ...XSTATE, inspect: hub.inspect });
    const run = await bench.turnpike.startAgent();
    const idsOf = (type: string) => viewer.seen.filter((one) => one.type === type).map((one) => one['id']);
    await viewer.until(() => idsOf('service.register').includes(run.run_id));
    await run.submit(propose(1, 'THINK', {}));
    await viewer.until((all) => all.some(({ event }) => JSON.stringify(event ?? '').includes('PROPOSE')));
    await bench.close();
    const registered = new Set(
      viewer.seen.filter(({ type }) => type === 'service.register').map((one) => one['sessionId']),
    );
    // Closing ends the run, and stops every remaining actor.
    await viewer.until((all) => all.filter(({ type }) => type === 'service.stop').length >= registered.size);
  });
});

describe('the effect of an inspector on an active run', () => {
  /** Sends events to, stops and overwrites everything that an inspector can reach. */
  const meddle = (event: InspectionEvent): void => {
    const { actorRef } = event as unknown as { actorRef: Record<string, never> };
    const tries: (() => unknown)[] = [
      () => event.actorRef.send({ type: 'CANCEL', reason: 'an inspector' }),
      () => event.actorRef.send({ type: 'END' }),
      () => event.actorRef.send({ type: 'xstate.stop' }),
      () => (actorRef['stop'] as unknown as () => void)(),
      () => (actorRef['_send'] as unknown as (event: object) => void)({ type: 'END' }),
      () => (actorRef['system'] as unknown as { _relay: (...all: unknown[]) => void })._relay(null, actorRef, {}),
    ];
    for (const attempt of tries) {
      try {
        attempt();
      } catch {
        // A missing member cannot be used.
      }
    }
    overwrite(event, new Set());
  };

  const overwrite = (value: unknown, done: Set<unknown>): void => {
    if (typeof value !== 'object' || value === null || done.has(value)) return;
    done.add(value);
    if (value instanceof Uint8Array) return void value.fill(0);
    for (const key of Reflect.ownKeys(value)) {
      overwrite((value as Record<PropertyKey, unknown>)[key], done);
      Reflect.set(value, key, 'overwritten');
    }
    const { getSnapshot } = value as { readonly getSnapshot?: () => unknown };
    if (typeof getSnapshot === 'function') overwrite(getSnapshot(), done);
  };

  const inspectors: readonly (readonly [string, TurnpikeOptions['inspect']])[] = [
    ['is not there', undefined],
    ['looks on', () => undefined],
    ['throws', () => fail()],
    ['rejects', () => reject() as unknown as undefined],
    ['has no next', {}],
    ['is an observer that throws', { next: () => fail() }],
    ['sends events, stops actors and overwrites its arguments', meddle],
  ];

  test('K2: none: whatever it does, the ledger has the bytes of the table-driven interpreter', async () => {
    const expected = await live({ interpreter: 'table-driven' });
    expect(expected.length).toBeGreaterThan(40);
    for (const [what, inspect] of inspectors) {
      const texts = await live(inspect === undefined ? XSTATE : { ...XSTATE, inspect });
      expect({ what, differs: firstDifference(texts, expected) }).toEqual({ what, differs: null });
    }
  });

  test('K2: none, even if trees are evicted from memory after every input and folded again', async () => {
    const expected = await live({ interpreter: 'table-driven' });
    const stopped: string[] = [];
    const inspect = (event: InspectionEvent): void => {
      if (event.type === '@xstate.snapshot' && event.snapshot.status === 'stopped') stopped.push(seenIn(event).id);
      meddle(event);
    };
    expect(firstDifference(await live({ ...XSTATE, inspect, liveTreesMax: 0 }), expected)).toBeNull();
    // The actors of an evicted tree are stopped, and inspectors are notified.
    expect(stopped.length).toBeGreaterThan(8);
  });

  test('K2: an event that it sends later, from outside, has no effect', async () => {
    const refs: InspectionEvent['actorRef'][] = [];
    const bench = await Bench.open({ ...XSTATE, inspect: ({ actorRef }) => refs.push(actorRef) });
    const run = await bench.turnpike.startAgent();
    const before = (await bench.entries()).length;
    for (const ref of refs) for (const type of ['CANCEL', 'END', 'xstate.stop']) ref.send({ type, reason: 'later' });
    expect((await bench.turnpike.agent(run.run_id))?.run_id).toBe(run.run_id);
    expect(await run.submit(propose(1, 'THINK', {}))).toMatchObject({ outcome: 'SUCCESS' });
    expect((await bench.entries()).length).toBeGreaterThan(before);
    expect(refs.length).toBeGreaterThan(4);
    await bench.close();
  });

  test('the first event that it sends is logged, and no other', async () => {
    const warned: unknown[] = [];
    const log: Log = { ...winstonLog('silent'), warn: (text, fields) => warned.push([text, fields?.['error']]) };
    await live({ ...XSTATE, inspect: ({ actorRef }) => actorRef.send({ type: 'END' }), log });
    expect(warned).toEqual([
      [
        expect.stringContaining('an inspector failed'),
        expect.objectContaining({ message: expect.stringContaining('an inspector sent END') }),
      ],
    ]);
  });
});

describe('options', () => {
  const refused = (options: object): Promise<unknown> =>
    openTurnpike({ store: memoryStore(), sandbox: '/nowhere', ...options }).then(
      () => 'opened',
      (error: unknown) => error,
    );

  test('refuses an inspector that would see nothing, and an unknown interpreter', async () => {
    const USAGE = expect.objectContaining({ code: 'USAGE', message: expect.stringContaining('interpreter') });
    expect(await refused({ inspect: () => undefined })).toEqual(USAGE);
    expect(await refused({ interpreter: 'table-driven', inspect: () => undefined })).toEqual(USAGE);
    expect(await refused({ interpreter: 'fast' })).toEqual(USAGE);
  });
});
