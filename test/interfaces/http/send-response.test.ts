// Sends responses over a real socket: they are charged to their token, and their source ends with the client.
// A4 is an invariant of admission-schedule.ts.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fastify, { type FastifyInstance } from 'fastify';
import { once } from 'node:events';
import { connect } from 'node:net';
import { systemPace } from '../../../src/system/system-pace.js';
import { AdmissionController, type AdmittedWork } from '../../../src/interfaces/admission/admission-controller.js';
import type { RouteResponse } from '../../../src/interfaces/http/routes/route.js';
import { sendResponse } from '../../../src/interfaces/http/send-response.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

let app: FastifyInstance;
let controller: AdmissionController;
beforeEach(() => {
  app = fastify();
  const limits = { costBurst: 20, costPerSecond: 0.001 };
  controller = new AdmissionController({ clock: new ManualClock(), pace: systemPace(), limits });
});
afterEach(() => app.close());

const admit = (token: string) => controller.admit({ token, connection: {}, kind: 'read', bytes: 0 });

/** A server that sends only this response. */
async function serving(
  answer: RouteResponse,
  isCompressed = false,
): Promise<{ readonly port: number; readonly work: AdmittedWork }> {
  const decided = admit('one').currentDecision;
  if (decided === null || 'refused' in decided) throw new Error('it was not admitted');
  const { work } = decided;
  app.get('/', async (request, reply) => {
    request.raw.socket.once('close', () => work.abort());
    await sendResponse(reply, answer, { isCompressed, work });
    return reply;
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return { port: Number(new URL(url).port), work };
}

async function* pieces(count: number): AsyncGenerator<string> {
  for (let n = 0; n < count; n += 1) yield await Promise.resolve('x'.repeat(60_000));
}

test.each<readonly [string, () => RouteResponse, boolean]>([
  ['one value', () => ({ json: { text: 'x'.repeat(3_600_000) } }), false],
  ['one value, packed', () => ({ json: { text: 'x'.repeat(3_600_000) } }), true],
  ['pieces', () => ({ chunks: pieces(60), type: 'text/plain' }), false],
])('A4: a large answer of %s is charged to its token, and to no other', async (_what, answer, isCompressed) => {
  const { port, work } = await serving(answer(), isCompressed);
  const text = await (await fetch(`http://127.0.0.1:${port}/`)).text();
  expect(text.length).toBeGreaterThanOrEqual(3_600_000);
  work.end();
  expect(admit('one').currentDecision).toBeNull();
  expect(admit('two').currentDecision).toHaveProperty('work');
});

test('a small response is not charged, only the work to produce it', async () => {
  const { port, work } = await serving({ json: { text: 'x'.repeat(50_000) } });
  await (await fetch(`http://127.0.0.1:${port}/`)).text();
  work.end();
  expect(admit('one').currentDecision).toHaveProperty('work');
});

test('the generator of the pieces ends when its client leaves early', async () => {
  let ended: () => void = () => undefined;
  const end = new Promise<void>((resolve) => (ended = resolve));
  const endless = async function* (): AsyncGenerator<string> {
    try {
      for (;;) yield* pieces(1);
    } finally {
      ended();
    }
  };
  const { port } = await serving({ chunks: endless(), type: 'text/plain' });
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  socket.destroy();
  await end;
});

test('A4: a stream is charged to its token, piece by piece, and ends with its client', async () => {
  const clock = new ManualClock();
  const pace = { begin: () => () => Promise.resolve() };
  controller = new AdmissionController({ clock, pace, limits: { costBurst: 20, costPerSecond: 0.001, sliceMs: 2 } });
  const { port } = await serving({
    stream: (out, control) => {
      void (async () => {
        for (let slice = 0; slice < 20; slice += 1) await control.pause();
        out.writeHead(200, {});
        out.end();
      })();
    },
  });
  await (await fetch(`http://127.0.0.1:${port}/`)).text();
  expect(admit('one').currentDecision).toBeNull();
  expect(admit('two').currentDecision).toHaveProperty('work');
});
