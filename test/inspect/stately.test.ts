// What an inspector of @statelyai/inspect receives, checked with the package itself.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { createInspector, createWebSocketInspector, type StatelyInspectionEvent } from '@statelyai/inspect';
import { WebSocketServer } from 'ws';
import { createActor } from 'xstate';
import { statelyObserver } from '../../src/interfaces/inspector/xstate/stately-observer.js';
import { watchLedger } from '../../src/runtime/ledger/watch-ledger.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';
import { lamp, SECRET } from './lamp.js';

/** An inspector that is slow with every event. */
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
};

test('an inspector of the package receives actors, events and states, but no context', async () => {
  const sent: StatelyInspectionEvent[] = [];
  const inspector = createInspector({ send: (event) => void sent.push(event) });
  const actor = createActor(lamp, { inspect: statelyObserver(inspector) }).start();
  actor.send({ type: 'SWITCH', secret: SECRET });
  const values = (): unknown[] =>
    sent.flatMap((event) => (event.type === '@xstate.snapshot' ? [valueOf(event.snapshot)] : []));
  await until(() => values().at(-1) === 'on');
  const kinds = sent.map(({ type }) => type);
  expect(kinds.filter((type) => type === '@xstate.actor')).toHaveLength(1);
  expect(sent.find(({ type }) => type === '@xstate.actor')).toMatchObject({ sessionId: actor.sessionId });
  expect(values().at(-1)).toBe('on');
  expect(sent.find((event) => event.type === '@xstate.event' && event.event.type === 'SWITCH')).toBeDefined();
  expect(JSON.stringify(sent)).toContain('"off"');
  expect(JSON.stringify(sent)).not.toContain(SECRET);
});

const valueOf = (snapshot: unknown): unknown => (snapshot as { readonly value?: unknown }).value;

test('the runs of a ledger reach the clients of its WebSocket', async () => {
  const listening = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  const heard: string[] = [];
  listening.on('connection', (socket) => socket.on('message', (data: Buffer) => heard.push(data.toString())));
  const inspector = createWebSocketInspector({ url: `ws://127.0.0.1:${port}` });
  const bench = await Bench.open();
  try {
    const watch = watchLedger(bench.turnpike.ledger, statelyObserver(inspector), { from: 0 });
    const run = await bench.turnpike.startAgent();
    await run.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: SECRET })));
    await run.end();
    await watch.caughtUp();
    const ended = (): boolean =>
      heard.some((text) => text.includes('"@xstate.snapshot"') && text.includes('"completed"'));
    await until(ended);
    await watch.close();
    expect(ended()).toBe(true);
    expect(heard.join()).not.toContain(SECRET);
  } finally {
    inspector.stop();
    await bench.close();
    for (const client of listening.clients) client.terminate();
    listening.close();
  }
});
