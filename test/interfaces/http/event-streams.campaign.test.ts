// The event stream of the ledger, with clients that connect, disconnect, and do not read.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { winstonLog } from '../../../src/system/winston-log.js';
import {
  CLIENTS_PER_TOKEN,
  EventStreams,
  type StreamFormat,
  type StreamOutput,
} from '../../../src/interfaces/http/event-streams.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { codeOf, HttpBench, proposal } from './http-harness.js';

let http: HttpBench;
let agent: string;
let observer: string;
let run: string;
beforeEach(async () => {
  http = await HttpBench.open();
  agent = http.token();
  observer = http.token({ rights: ['observe'] });
  run = await http.start(agent);
});
afterEach(() => http.close());

const step = (): Promise<Response> => http.ask(`/agents/${run}/steps`, agent, { body: proposal('THINK') });

interface Event {
  readonly id: number;
  readonly event: string | null;
  readonly data: string;
}

/** Reads events until `isEnough`, then disconnects. */
async function listen(
  path: string,
  headers: Record<string, string>,
  isEnough: (events: readonly Event[]) => boolean,
): Promise<readonly Event[]> {
  const abort = new AbortController();
  const response = await http.ask(path, observer, { headers, signal: abort.signal });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const events: Event[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? null;
      const data = field('data');
      if (data !== null) events.push({ id: Number(field('id')), event: field('event'), data });
    }
    if (isEnough(events)) break;
  }
  abort.abort();
  return events;
}

/** Resolves when the service counts this many stream clients. */
async function listening(count: number): Promise<void> {
  const until = Date.now() + 20_000;
  for (let told = ''; ;) {
    told = /turnpike_stream_clients (\d+)/.exec(await (await http.ask('/metrics', observer)).text())?.[1] ?? '';
    if (told === String(count)) return;
    if (Date.now() > until) throw new Error(`${told} listen, and not ${count}`);
    await delay(10);
  }
}

test('E1: continues after the last id without loss or repetition, over broken connections', async () => {
  const seen: Event[] = [];
  let last = -1;
  for (let round = 0; round < 5; round += 1) {
    const work = Promise.all([step(), step(), step()]);
    const some = await listen('/stream?after=-1', { 'last-event-id': String(last) }, (events) => events.length >= 4);
    await work;
    seen.push(...some);
    last = some.at(-1)!.id;
  }
  const size = await http.bench.turnpike.ledger.size();
  if (last < size - 1) {
    seen.push(...(await listen(`/stream?after=${last}`, {}, (events) => events.at(-1)?.id === size - 1)));
  }
  expect(seen.map(({ id }) => id)).toEqual(Array.from({ length: size }, (_, index) => index));
  const told = seen.map(({ data }) => JSON.parse(data) as { log_index: number; entry: unknown });
  expect(told.map(({ log_index }) => log_index)).toEqual(seen.map(({ id }) => id));
  expect(told.map(({ entry }) => entry)).toEqual(await http.bench.entries());
});

test('E1: sends rows as pages, whose id is that of the last row', async () => {
  const size = await http.bench.turnpike.ledger.size();
  const [page] = await listen('/stream?format=rows&after=1', {}, (events) => events.length > 0);
  expect(page).toMatchObject({ event: 'rows', id: size - 1 });
  expect((JSON.parse(page!.data) as { from: number; rows: unknown[] }).from).toBe(2);
});

test('without a start index it sends only new entries', async () => {
  const size = await http.bench.turnpike.ledger.size();
  const later = listen('/stream', {}, (events) => events.length > 0);
  await listening(1);
  await step();
  expect((await later)[0]?.id).toBe(size);
});

test('E2: counts the clients, and none after they have left', async () => {
  const abort = new AbortController();
  await http.ask('/stream', observer, { signal: abort.signal });
  await listening(1);
  abort.abort();
  await listening(0);
});

test('one token leaves slots for others, and regains its own when its streams have ended', async () => {
  const abort = new AbortController();
  const open = (token: string, signal = abort.signal): Promise<Response> => http.ask('/stream', token, { signal });
  for (let n = 0; n < CLIENTS_PER_TOKEN; n += 1) expect((await open(observer)).status).toBe(200);
  await listening(CLIENTS_PER_TOKEN);
  const refused = await open(observer);
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(await codeOf(refused)).toBe('503 STREAMS_TAKEN');
  const other = new AbortController();
  expect((await open(http.token({ rights: ['observe'] }), other.signal)).status).toBe(200);
  await listening(CLIENTS_PER_TOKEN + 1);
  abort.abort();
  await listening(1);
  expect((await open(observer, other.signal)).status).toBe(200);
  await listening(2);
  other.abort();
});

test('E4: a stream ends when its token does', async () => {
  const response = await http.ask('/stream', observer);
  http.revokeAll();
  expect(await response.text()).toBe('retry: 1500\n\n');
});

test('refuses an invalid start index', async () => {
  for (const id of ['x', '1e3', '-2', ' ']) {
    const response = await http.ask('/stream', observer, { headers: { 'last-event-id': id } });
    expect(id === ' ' ? [200, 422] : [422]).toContain(response.status);
    await response.body?.cancel();
  }
});

test('E1: refuses a start index beyond the end of the ledger instead of leaving a gap', async () => {
  const size = await http.bench.turnpike.ledger.size();
  const ahead = [
    http.ask('/stream', observer, { headers: { 'last-event-id': String(size) } }),
    http.ask(`/stream?after=${size}`, observer),
    http.ask('/stream?format=rows&after=999999', observer),
  ];
  for (const answer of ahead) expect(await codeOf(await answer)).toBe('409 PLACE_AHEAD');
  const last = await http.ask('/stream', observer, { headers: { 'last-event-id': String(size - 1) } });
  expect(last.status).toBe(200);
  await last.body?.cancel();
  const page = async (after: number): Promise<unknown> => (await http.ask(`/events?after=${after}`, observer)).json();
  for (const after of [size - 1, size, 999_999]) expect(await page(after)).toEqual({ events: [], next: size - 1 });
});

test('E3: a client that does not read delays no other', async () => {
  const socket = connect(http.server.port, '127.0.0.1');
  socket.pause();
  socket.write(
    `GET /api/v1/stream?after=-1 HTTP/1.1\r\nHost: 127.0.0.1:${http.server.port}\r\nAuthorization: Bearer ${observer}\r\n\r\n`,
  );
  const size = await http.bench.turnpike.ledger.size();
  await step();
  expect((await listen(`/stream?after=${size - 1}`, {}, (events) => events.length > 0))[0]?.id).toBe(size);
  socket.destroy();
});

/** A stream output that accepts writes, or does not, as a test decides. */
class Taking extends EventEmitter implements StreamOutput {
  takes = true;
  readonly written: string[] = [];
  ended: 'ended' | 'destroyed' | null = null;
  destroyed = false;
  writeHead(): void {}
  write(text: string): boolean {
    this.written.push(text);
    return this.takes;
  }
  end(): void {
    this.ended ??= 'ended';
    this.emit('close');
  }
  destroy(): void {
    this.ended ??= 'destroyed';
    this.emit('close');
  }
}

test('E3: disconnects only the client that has not read a message in time', async () => {
  const clock = new ManualClock();
  const log = winstonLog('silent');
  let size = 0;
  const streams = new EventStreams({ size: () => Promise.resolve(size), tokens: { holds: () => true }, clock, log });
  const format: StreamFormat = { next: (from, to) => Promise.resolve({ text: `${from}-${to} `, through: to }) };
  const turn = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise(setImmediate);
  };
  const [fast, slow] = [new Taking(), new Taking()];
  for (const out of [fast, slow]) streams.add(out, { from: 0, token: 'tok', format });
  slow.takes = false;
  for (size = 1; size < 5; size += 1) await turn(200);
  // One message is buffered for the slow client, however many entries have followed.
  expect(slow.written).toEqual(['retry: 1500\n\n', '0-1 ']);
  expect(fast.written).toHaveLength(5);
  await turn(8_000);
  expect([slow.ended, streams.count]).toEqual([null, 2]);
  slow.takes = true;
  slow.emit('drain');
  await turn(0);
  await turn(200);
  expect(slow.written.slice(2).join('')).toMatch(/^1-\d .*\d-5 $|^1-5 $/);
  slow.takes = false;
  size = 6;
  await turn(200);
  await turn(10_100);
  expect([slow.ended, fast.ended, streams.count]).toEqual(['destroyed', null, 1]);
  size = 7;
  await turn(200);
  expect(fast.written.at(-1)).toBe('6-7 ');
  streams.close();
  expect([fast.ended, clock.timers]).toEqual(['ended', 0]);
});

test('E2: a client that left while the ledger was read for it uses no slot', () => {
  const size = (): Promise<number> => Promise.resolve(0);
  const streams = new EventStreams({
    size,
    tokens: { holds: () => true },
    clock: new ManualClock(),
    log: winstonLog('silent'),
  });
  const gone = new Taking();
  gone.destroyed = true;
  streams.add(gone, { from: 0, token: 'tok', format: { next: () => Promise.reject(new Error('nobody listens')) } });
  expect([streams.count, gone.written]).toEqual([0, []]);
  streams.close();
});
