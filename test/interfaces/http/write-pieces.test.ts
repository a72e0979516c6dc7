// Responses in pieces, for clients that read, do not read, or leave.

import { expect, test } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { streamJson, writePieces, type PieceWriter } from '../../../src/interfaces/http/write-pieces.js';
import { ManualClock } from '../../fixtures/manual-clock.js';

class Out extends EventEmitter implements PieceWriter {
  readonly written: string[] = [];
  destroyed = false;
  hasEnded = false;
  takes = true;

  write(piece: string): boolean {
    this.written.push(piece);
    return this.takes;
  }

  end(): void {
    this.hasEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

const clock = new ManualClock();
const { signal } = new AbortController();
const draining = { clock, drainMs: 100, signal };

/** Pieces that count how many were produced, and report when they are cancelled. */
function counted(count: number) {
  const made = { pieces: 0, ended: false };
  const pieces = (async function* () {
    try {
      for (; made.pieces < count;) {
        made.pieces += 1;
        yield await Promise.resolve(`${made.pieces} `);
      }
    } finally {
      made.ended = true;
    }
  })();
  return { made, pieces };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('produces a piece only when the previous one has been read', async () => {
  const out = new Out();
  const { made, pieces } = counted(3);
  out.takes = false;
  const writing = writePieces(out, pieces, draining);
  await turn();
  expect(made.pieces).toBe(1);
  out.emit('drain');
  await turn();
  expect(made.pieces).toBe(2);
  out.takes = true;
  out.emit('drain');
  await writing;
  expect([out.written.join(''), out.hasEnded, clock.timers]).toEqual(['1 2 3 ', true, 0]);
});

test('disconnects a client that reads nothing for too long, and produces no more for it', async () => {
  const out = new Out();
  const { made, pieces } = counted(9);
  out.takes = false;
  const writing = writePieces(out, pieces, draining);
  await turn();
  clock.advance(200);
  await writing;
  expect([out.destroyed, out.hasEnded, made]).toEqual([true, false, { pieces: 1, ended: true }]);
});

test('ends the generator when its client leaves, even if the response waited behind others', async () => {
  const leave = new AbortController();
  for (const gone of ['close', 'abort'] as const) {
    const out = new Out();
    const { made, pieces } = counted(9);
    out.takes = false;
    const writing = writePieces(out, pieces, { ...draining, signal: gone === 'abort' ? leave.signal : signal });
    await turn();
    if (gone === 'close') out.destroy();
    else leave.abort();
    await writing;
    expect(made).toEqual({ pieces: 1, ended: true });
  }
});

test('closes the connection after an error, so that a partial response does not look complete', async () => {
  const out = new Out();
  const pieces = (async function* () {
    yield await Promise.resolve('half');
    throw new Error('the disk is gone');
  })();
  await expect(writePieces(out, pieces, draining)).rejects.toThrow('the disk is gone');
  expect([out.destroyed, out.hasEnded]).toEqual([true, false]);
});

test('a list in pieces is the same JSON as in one piece', async () => {
  const values = Array.from({ length: 3_000 }, (_, n) => ({ n, text: 'é"\u2028' }));
  for (const [items, before] of [
    [values, {}],
    [[], { first: 1 }],
    [values.slice(0, 1), { first: 1 }],
  ] as const) {
    const made = (async function* () {
      for (const item of items) yield await Promise.resolve(item);
      return { next: null };
    })();
    const pieces: string[] = [];
    for await (const piece of streamJson({ before, name: 'list', items: made })) pieces.push(piece);
    expect(pieces.join('')).toBe(JSON.stringify({ ...before, list: items, next: null }));
    if (items.length > 1_000) expect(pieces.length).toBeGreaterThan(3);
  }
});

test.each(['whose connection is closed', 'whose response is gone'])(
  'writes no further piece for a client %s',
  async (what) => {
    const out = new Out();
    const { made, pieces } = counted(5);
    const left = new AbortController();
    const writing = writePieces(out, watched(pieces, 2), { clock, drainMs: 100, signal: left.signal });
    await writing;
    expect(out.written).toEqual(['1 ']);
    expect([out.hasEnded, made.ended]).toEqual([false, true]);

    /** The client leaves while the n-th piece is produced. */
    async function* watched(of: AsyncIterable<string>, n: number): AsyncGenerator<string> {
      for await (const piece of of) {
        if (piece === `${n} `) {
          if (what === 'whose connection is closed') left.abort();
          else out.destroyed = true;
        }
        yield piece;
      }
    }
  },
);
