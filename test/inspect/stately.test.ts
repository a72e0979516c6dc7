// What an inspector of @statelyai/inspect receives, checked with the package itself.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { createWebSocketInspector } from '@statelyai/inspect';
import { WebSocketServer } from 'ws';
import { statelyObserver } from '../../src/interfaces/inspector/xstate/stately-observer.js';
import { watchLedger } from '../../src/runtime/ledger/watch-ledger.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';
import { SECRET } from './lamp.js';

/** An inspector that is slow with every event. */
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
};

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
