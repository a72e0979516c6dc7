// How the page follows a ledger over real HTTP: the service fails, refuses, goes away, breaks its streams off, or
// returns with a different ledger.

import { afterEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { packRows, toEventRow } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type { Course } from '../../../../src/core/contract/inspection/inspection.js';
import { toAccessProblem, type FeedConnection } from '../../../../src/interfaces/inspector/page/data/feed.js';
import { HttpFeed, SseParser } from '../../../../src/interfaces/inspector/page/data/http-feed.js';
import { ProofTracker } from '../../../../src/interfaces/inspector/page/store/proof-tracker.js';
import { Store } from '../../../../src/interfaces/inspector/page/store/store.js';
import { PartProver } from '../../../../src/interfaces/inspector/page/worker/part-prover.js';
import { leafHash } from '../../../../src/core/ledger/proof/merkle.js';

/** A chain of one run tree with this many entries. */
function chain(run_id: string, count: number): readonly string[] {
  let prev = '0'.repeat(64);
  return Array.from({ length: count }, (_, seq) => {
    const body = { kind: 'proposal', run_id, time: '2026-11-22T10:00:00.000Z' };
    const text = JSON.stringify({ body, prev, seq, tree_id: run_id, type: 'input' });
    prev = leafHash(text);
    return text;
  });
}

const courseOf = (run_id: string, through: number): Course => ({
  ...{ run_id, tree_id: run_id, through, chart: 'c', step_chart: null, cut: null },
  ...{ edges: [], states: [], moves: [], steps: [] },
});

/** A service whose entries and failures a test sets. */
class Service {
  ledger_id = 'one';
  texts = chain('run_one', 5);
  live = true;
  /** Whether a request with this path and query is answered with an error. */
  fails: (asked: string) => boolean = () => false;
  /** The status of every answer. */
  status = 200;
  /** Whether every stream omits one entry, repeats one, and ends. */
  isGappy = false;
  readonly asked: string[] = [];
  readonly #streams = new Set<ServerResponse>();
  readonly #server: Server = createServer((request, response) => this.#answer(request, response));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  become(ledger_id: string, run_id: string, size: number): void {
    this.drop();
    this.ledger_id = ledger_id;
    this.texts = chain(run_id, size);
  }

  drop(): void {
    for (const stream of this.#streams) stream.end();
    this.#streams.clear();
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  count(path: string): number {
    return this.asked.filter((one) => one.startsWith(path)).length;
  }

  #answer({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, 'http://x');
    const path = pathname.slice('/api/v1'.length);
    this.asked.push(path);
    const status = this.fails(url.slice('/api/v1'.length)) ? 500 : this.status;
    if (status !== 200) {
      response.writeHead(status).end('{"code":"X"}');
      return;
    }
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))];
    const size = this.texts.length;
    if (path === '/inspector/ledger') {
      const info = { ledger_id: this.ledger_id, begin: 0, size, checkpoint: null, key: null, frontier: [] };
      response.end(JSON.stringify({ ...info, live: this.live, approvals: false, title: '' }));
    } else if (path === '/inspector/rows') response.end(JSON.stringify(this.#rows(from, to)));
    else if (path === '/inspector/entries') response.end(this.texts.slice(from, to).join('\n'));
    else if (path.startsWith('/inspector/courses/')) response.end(JSON.stringify(courseOf('run_one', size)));
    else if (path === '/stream') {
      this.#streams.add(response);
      const begin = Number(headers['last-event-id'] ?? -1) + 1;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 10\n\n');
      if (this.isGappy) {
        const from = Math.min(begin + 1, size - 1);
        const to = Math.min(from + 4, size);
        this.#say(response, from, to);
        this.#say(response, to - 1, to);
        response.end();
      } else if (begin < size) this.#say(response, begin, size);
    } else response.writeHead(404).end('{}');
  }

  #say(response: ServerResponse, from: number, to: number): void {
    response.write(`event: rows\nid: ${to - 1}\ndata: ${JSON.stringify(this.#rows(from, to))}\n\n`);
  }

  #rows(from: number, to: number) {
    const texts = this.texts.slice(from, to);
    return packRows(texts.map((text, at) => toEventRow(text, from + at, leafHash(text))));
  }
}

test('server-sent events are parsed as the standard defines, wherever the stream is split', () => {
  const stream =
    ': hello\r\nretry: 1500\r\n\r\nevent: rows\nid: 7\ndata: one\r\ndata: two\n\ndata:three\r\revent: x\n\nfield\ndata\n\n';
  fc.assert(
    fc.property(fc.array(fc.nat({ max: stream.length }), { maxLength: 12 }), (cuts) => {
      const parser = new SseParser();
      const places = [0, ...cuts.sort((a, b) => a - b), stream.length];
      const found = places.flatMap((from, at) => parser.push(stream.slice(from, places[at + 1] ?? stream.length)));
      expect(found).toEqual([
        { event: 'rows', data: 'one\ntwo' },
        { event: 'message', data: 'three' },
        { event: 'message', data: '' },
      ]);
      expect(parser.retry).toBe(1_500);
    }),
  );
});

const services: Service[] = [];
const stores: Store[] = [];
const timers = jest.spyOn(globalThis, 'setTimeout');
afterEach(() => {
  jest.useRealTimers();
  // Tests do not wait for what the page would do later.
  for (const { value } of timers.mock.results) clearTimeout(value as ReturnType<typeof setTimeout>);
  for (const store of stores.splice(0)) store.pause();
  for (const service of services.splice(0)) service.close();
});

async function opened(prepare: (service: Service) => void = () => undefined) {
  const service = new Service();
  services.push(service);
  prepare(service);
  const feed = new HttpFeed(await service.listen(), 't');
  const proof = new ProofTracker((tell) => new PartProver((from, to) => feed.entries(from, to), tell));
  const store = new Store(feed, proof);
  stores.push(store);
  return { service, store, proof, open: store.open() };
}

/** The first requests with this beginning, as many as the expected list has. */
function first(count: number, begin: string): (asked: string) => boolean {
  let left = count;
  return (asked) => asked.startsWith(begin) && left-- > 0;
}

const wait = globalThis.setTimeout;
async function until(holds: () => boolean, round: () => unknown = () => undefined): Promise<void> {
  for (let rounds = 0; rounds < 8_000 && !holds(); rounds += 1) {
    await round();
    await new Promise((resolve) => wait(resolve, 3));
  }
  expect(holds()).toBe(true);
}
/** Resolves when all pending requests have been answered. */
async function rest({ feed }: Store): Promise<void> {
  for (let times = 0; times < 20; times += 1) await feed.info();
}
/** The page's clock stops at this time, so that nothing happens only because time has passed. */
function slowClock(ms: number): () => Promise<void> {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance', 'Date'] });
  let left = ms / 5;
  return async () => {
    if (left-- > 0) await jest.advanceTimersByTimeAsync(5);
  };
}
/** For a slowed clock: each round advances it by this amount. Requests of the page have no time limit. */
const quickly = (): Promise<void> => jest.advanceTimersByTimeAsync(50);
const runsOf = ({ rows }: Store): readonly (string | undefined)[] =>
  Array.from({ length: rows.end - rows.first }, (_, at) => rows.row(rows.first + at)?.run_id);

test('a stream that breaks off resumes, without a gap and without a duplicate', async () => {
  const { service, store } = await opened((of) => (of.isGappy = true));
  await until(() => service.count('/stream') > 0);
  service.texts = chain('run_one', 25);
  await until(() => store.rows.end === 25);
  const expected = service.texts.map((text, at) => toEventRow(text, at, leafHash(text)));
  expect(expected.map((_, at) => store.rows.row(at))).toEqual(expected);
  expect(service.count('/stream')).toBeGreaterThan(3);
});

test.each([
  [401, null, 'absent'],
  [401, 't', 'wrong'],
  [403, 't', 'right'],
  [503, 't', null],
])('the status %d for the token %s is the access problem %s, which is not retried', async (status, token, problem) => {
  const service = new Service();
  services.push(service);
  service.status = status;
  const feed = new HttpFeed(await service.listen(), token);
  expect(await feed.info().then(() => undefined, toAccessProblem)).toBe(problem);
  const states: FeedConnection[] = [];
  const until = new AbortController();
  const onConnection = (state: FeedConnection): void => {
    states.push(state);
    if (state === 'lost') until.abort();
  };
  await feed.follow({ onPage: () => Promise.resolve(), onConnection, from: () => 0, ledger: null }, until.signal);
  expect(states).toEqual(['connecting', problem === null ? 'lost' : 'refused']);
});

describe('another ledger at the same address', () => {
  test('is reported permanently if it appeared while the page was hidden; nothing is mixed', async () => {
    const { service, store } = await opened();
    await until(() => store.connection.value === 'live');
    store.pause();
    service.become('two', 'run_two', 9);
    store.follow();
    await until(() => store.connection.value === 'other');
    const streams = service.count('/stream');
    // The tab is hidden again, for a minute, and shown again.
    store.pause();
    expect(store.connection.value).toBe('other');
    service.become('one', 'run_one', 9);
    store.follow();
    await rest(store);
    expect([store.connection.value, service.count('/stream')]).toEqual(['other', streams]);
    expect(runsOf(store)).toEqual(Array(5).fill('run_one'));
  });

  test('is also reported after the same ledger was restored to an earlier state', async () => {
    const { service, store } = await opened();
    await until(() => store.connection.value === 'live');
    service.become('one', 'run_one', 3);
    await until(() => store.connection.value === 'other');
    expect(runsOf(store)).toEqual(Array(5).fill('run_one'));
  });

  test('is detected before any data is accepted if it appeared before the first stream', async () => {
    const round = slowClock(900);
    const { service, store } = await opened((of) => (of.fails = first(1, '/stream')));
    await until(() => store.connection.value === 'lost', round);
    service.become('two', 'run_two', 9);
    await until(() => store.connection.value === 'other', quickly);
    expect(runsOf(store)).toEqual(Array(5).fill('run_one'));
  });

  test('is detected in pages of earlier rows too: without a stream, each page asks for the ledger id', async () => {
    const round = slowClock(900);
    const { service, store, proof } = await opened((of) => {
      Object.assign(of, { live: false, texts: chain('run_one', LONG), fails: first(1, BEFORE) });
    });
    await until(() => store.connection.value === 'closed' && service.count('/inspector/rows') === 2, round);
    service.become('two', 'run_two', LONG);
    await until(() => store.connection.value === 'other', quickly);
    expect([new Set(runsOf(store)), store.rows.first, proof.phase.value]).toEqual([new Set(['run_one']), 10, 'idle']);
  });

  test('proves nothing: a failed proof does not continue with it', async () => {
    const round = slowClock(900);
    const { service, store, proof } = await opened((of) => {
      Object.assign(of, { live: false, fails: first(1, '/inspector/entries') });
    });
    await until(() => proof.phase.value === 'failed', round);
    service.become('two', 'run_two', 9);
    const asked = service.count('/inspector/ledger');
    await until(() => service.count('/inspector/ledger') > asked, quickly);
    await rest(store);
    expect([proof.phase.value, service.count('/inspector/entries')]).toEqual(['failed', 1]);
  });
});

/** The newest 2000 rows are read first. */
const LONG = 2_010;
const BEFORE = '/inspector/rows?from=0&';

describe('a failed request is retried', () => {
  test.each([true, false])('for earlier rows, which are proved afterwards; live: %s', async (live) => {
    const round = slowClock(900);
    const { store, proof, open } = await opened((of) => {
      Object.assign(of, { live, texts: chain('run_one', LONG), fails: first(2, BEFORE) });
    });
    let isOpen = false;
    void open.then(() => (isOpen = true));
    await until(() => isOpen, round);
    expect([store.rows.first, proof.phase.value]).toEqual([10, 'idle']);
    await until(() => proof.phase.value === 'verified', quickly);
    expect([store.rows.first, proof.state.value?.verified]).toEqual([0, LONG]);
  });

  test('for earlier rows, as soon as the connection returns', async () => {
    const round = slowClock(900);
    let isAway = true;
    const { service, store, proof } = await opened((of) => {
      Object.assign(of, {
        texts: chain('run_one', LONG),
        fails: (asked: string) => isAway && asked.startsWith(BEFORE),
      });
    });
    await until(() => service.count('/inspector/rows') > 1 && store.connection.value === 'live', round);
    expect(store.rows.first).toBe(10);
    isAway = false;
    service.drop();
    await until(() => proof.phase.value === 'verified', round);
    expect(store.rows.first).toBe(0);
  });

  test('for a proof, on a quiet ledger', async () => {
    const round = slowClock(900);
    const { service, proof } = await opened((of) => (of.fails = first(2, '/inspector/entries')));
    await until(() => proof.phase.value === 'failed', round);
    await until(() => proof.phase.value === 'verified', quickly);
    expect(service.count('/inspector/entries')).toBe(3);
  });

  test('for a proof, as soon as the connection returns', async () => {
    const round = slowClock(900);
    let isAway = true;
    const { service, store, proof } = await opened((of) => {
      of.fails = (asked) => isAway && asked.startsWith('/inspector/entries');
    });
    await until(() => proof.phase.value === 'failed' && store.connection.value === 'live', round);
    isAway = false;
    service.drop();
    await until(() => proof.phase.value === 'verified', round);
  });

  test('for a proof, a limited number of times', async () => {
    slowClock(0);
    const { service, proof } = await opened((of) => {
      Object.assign(of, { live: false, fails: (asked: string) => asked.startsWith('/inspector/entries') });
    });
    const minute = (): Promise<void> => jest.advanceTimersByTimeAsync(60_000);
    await until(() => service.count('/inspector/entries') === 13, minute);
    let rounds = 0;
    await until(() => (rounds += 1) > 20, minute);
    expect([service.count('/inspector/entries'), proof.phase.value]).toEqual([13, 'failed']);
  });

  test('for the course of a run while it is displayed, also after a partial course', async () => {
    const round = slowClock(900);
    const { service, store } = await opened((of) => (of.fails = first(1, '/inspector/courses')));
    const { courses } = store;
    await until(() => store.runs.size > 0, round);
    const run = store.runs.byId('run_one');
    if (run === null) throw new Error('no run');
    expect(courses.course(run)).toBeNull();
    await until(() => courses.stateOf(run) === 'failed', quickly);
    await until(() => courses.course(run) !== null, quickly);
    expect([courses.stateOf(run), service.count('/inspector/courses')]).toEqual(['here', 2]);
    service.fails = first(1, '/inspector/courses');
    service.texts = chain('run_one', 9);
    service.drop();
    await until(() => courses.course(run)?.through === 9, quickly);
    expect(service.count('/inspector/courses')).toBe(4);
  });
});
