// The feeds of the page: the format of the stream, and how the page follows, loses and finds it again, over real HTTP.

import { afterEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { packRows } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type { EventRow, RowPage } from '../../../../src/core/contract/inspection/inspection.js';
import {
  toAccessProblem,
  type FeedConnection,
  type FeedListener,
} from '../../../../src/interfaces/inspector/page/data/feed.js';
import { HttpFeed } from '../../../../src/interfaces/inspector/page/data/http-feed.js';
import {
  fetchEarlierRows,
  loadNewest,
  applyLivePage,
} from '../../../../src/interfaces/inspector/page/data/load-rows.js';
import { SseParser, type SseMessage } from '../../../../src/interfaces/inspector/page/data/sse.js';
import { Rows } from '../../../../src/interfaces/inspector/page/store/rows/rows.js';

const STREAM =
  ': hello\r\nretry: 1500\r\n\r\nevent: rows\nid: 7\ndata: one\r\ndata: two\n\ndata:three\r\rid: 8\nevent: x\n\nfield\ndata\n\n';
const MESSAGES: readonly SseMessage[] = [
  { event: 'rows', data: 'one\ntwo', id: '7' },
  { event: 'message', data: 'three', id: '7' },
  { event: 'message', data: '', id: '8' },
];

describe('server-sent events', () => {
  test('are parsed as the standard defines, wherever the stream is split', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: STREAM.length }), { maxLength: 12 }), (cuts) => {
        const parser = new SseParser();
        const places = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
        const found = places.flatMap((from, at) => parser.push(STREAM.slice(from, places[at + 1] ?? STREAM.length)));
        expect(found).toEqual(MESSAGES);
        expect(parser.retry).toBe(1_500);
      }),
    );
  });

  test('a byte order mark is not part of them, and an id with a NUL is ignored', () => {
    expect(new SseParser().push('\ufeffid: a\0b\ndata: x\n\n')).toEqual([{ event: 'message', data: 'x', id: null }]);
  });
});

const row = (log_index: number): EventRow => ({
  log_index,
  seq: log_index,
  run_id: 'run_a',
  tree_id: 'run_a',
  type: 'input',
  label: 'wake',
  tone: 'plain',
  time: log_index,
  step: 0,
  hash: log_index.toString(16).padStart(8, '0'),
  state: null,
  creation: null,
});
const pageOf = (from: number, to: number): RowPage =>
  packRows(Array.from({ length: to - from }, (_, at) => row(from + at)));

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Handle = (request: IncomingMessage, response: ServerResponse) => void;
async function served(handle: Handle): Promise<string> {
  const server = createServer(handle);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A service whose log has `size` entries, and which ends every stream after some rows. */
function droppingService(size: number, asked: string[], ids: string[] = ['x']): Handle {
  return ({ url = '', headers }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://x');
    asked.push(`${pathname.slice(7)} ${String(headers['last-event-id'] ?? '')}`);
    if (headers.authorization !== 'Bearer t') return void response.writeHead(401).end();
    if (pathname.endsWith('/ledger')) {
      const id = ids.length > 1 ? ids.shift() : ids[0];
      return void response.end(JSON.stringify({ ledger_id: id, size, live: true }));
    }
    if (pathname.endsWith('/rows')) {
      const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))];
      return void response.end(JSON.stringify(pageOf(from, Math.min(to, from + 3))));
    }
    const last = Number(headers['last-event-id'] ?? -1);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('retry: 10\n\n');
    // Each page omits one entry and repeats one.
    const from = Math.min(last + 2, size - 1);
    const to = Math.min(from + 4, size);
    response.write(`event: rows\nid: ${to - 1}\ndata: ${JSON.stringify(pageOf(from, to))}\n\n`);
    response.end(`event: rows\nid: ${to - 1}\ndata: ${JSON.stringify(pageOf(to - 1, to))}\n\n`);
  };
}

async function followed(base: string, done: (rows: Rows, states: readonly FeedConnection[]) => boolean) {
  const feed = new HttpFeed(base, 't');
  const { ledger_id } = await feed.info();
  const rows = new Rows(0, 0);
  const states: FeedConnection[] = [];
  const until = new AbortController();
  const listener: FeedListener = {
    onPage: (page) => applyLivePage(feed, rows, page),
    onConnection: (state) => {
      states.push(state);
      if (done(rows, states)) until.abort();
    },
    from: () => rows.end,
    ledger: ledger_id,
  };
  await feed.follow(listener, until.signal);
  return { rows, states };
}

describe('the stream', () => {
  test('resumes after every loss, without a gap and without a duplicate', async () => {
    const asked: string[] = [];
    const base = await served(droppingService(25, asked));
    const { rows, states } = await followed(base, (kept, seen) => kept.end >= 25 && seen.at(-1) === 'lost');
    expect(Array.from({ length: 25 }, (_, at) => rows.row(at))).toEqual(Array.from({ length: 25 }, (_, at) => row(at)));
    expect(states.slice(0, 4)).toEqual(['connecting', 'live', 'lost', 'live']);
    // The first rows of the stream begin at 1: earlier rows are loaded separately.
    expect(asked.filter((line) => line.startsWith('/stream')).slice(0, 3)).toEqual([
      '/stream ',
      '/stream 4',
      '/stream 9',
    ]);
  });

  test('ends if the same address serves another ledger: nothing is mixed', async () => {
    const base = await served(droppingService(25, [], ['x', 'x', 'y']));
    const { rows, states } = await followed(base, () => false);
    expect(states.at(-1)).toBe('other');
    expect(rows.end).toBe(5);
  });

  test('distinguishes an access refusal from other errors: no token, a wrong one, one without the right', async () => {
    const answering = async (status: number, token: string | null) => {
      const base = await served((_, response) => void response.writeHead(status).end('{"code":"X"}'));
      return new HttpFeed(base, token).info().then(() => undefined, toAccessProblem);
    };
    expect(await answering(401, null)).toBe('absent');
    expect(await answering(401, 't')).toBe('wrong');
    expect(await answering(403, 't')).toBe('right');
    expect(await answering(503, 't')).toBeNull();
    expect(toAccessProblem(new TypeError('fetch failed'))).toBeNull();
  });

  test('does not retry a refused token', async () => {
    const base = await served((_, response) => void response.writeHead(401).end('{}'));
    const states: FeedConnection[] = [];
    const listener = {
      onPage: () => Promise.resolve(),
      onConnection: (state: FeedConnection) => void states.push(state),
      from: () => 0,
      ledger: null,
    };
    await new HttpFeed(base, null).follow(listener, new AbortController().signal);
    expect(states).toEqual(['connecting', 'refused']);
  });
});

describe('loading rows', () => {
  test('loads the newest rows first, then all earlier ones, for any page size', async () => {
    const asked: string[] = [];
    const feed = new HttpFeed(await served(droppingService(7_003, asked)), 't');
    const rows = new Rows(6_990, 7_003);
    await loadNewest(feed, rows, 7_003);
    expect([rows.first, rows.end]).toEqual([6_990, 7_003]);
    const whole = new Rows(0, 7_003);
    whole.addPage(pageOf(6_995, 7_003));
    const seen: number[] = [];
    await fetchEarlierRows(
      { rows: (from: number, to: number) => Promise.resolve(pageOf(from, Math.min(to, from + 900))) },
      whole,
      () => void seen.push(whole.first),
    );
    expect([whole.first, whole.end, seen]).toEqual([0, 7_003, [0]]);
    expect([0, 899, 900, 6_994].map((at) => whole.row(at)?.log_index)).toEqual([0, 899, 900, 6_994]);
  });
});
