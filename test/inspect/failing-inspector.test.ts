// Inspectors that throw unloggable errors, logs that throw, and bytes that share a buffer: none of them affects a run.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Writable } from 'node:stream';
import type { InspectionEvent } from 'xstate';
import { winstonLog } from '../../src/system/winston-log.js';
import { inertInspector } from '../../src/kernel/interpreter/inert-inspector.js';
import type { Log } from '../../src/engine/ports/log.js';
import type { TurnpikeOptions } from '../../src/host/turnpike.js';
import { Bench } from '../fixtures/bench.js';
import { proposal } from '../fixtures/tree.js';

function cyclic(): object {
  const object: Record<string, unknown> = {};
  object['self'] = object;
  return object;
}

function itsOwnCause(): Error {
  const error = new Error('its own cause');
  error.cause = error;
  return error;
}

const unreadable = (): object => ({
  get message(): string {
    throw new Error('unreadable');
  },
});

const rejections: unknown[] = [];
const onRejection = (reason: unknown): void => void rejections.push(reason);
beforeEach(() => {
  rejections.length = 0;
  process.on('unhandledRejection', onRejection);
});
afterEach(() => void process.off('unhandledRejection', onRejection));

/** Runs one agent with the inspector. @returns the outcome of its step */
async function outcomeOf(options: Partial<TurnpikeOptions>): Promise<unknown> {
  const bench = await Bench.open({ interpreter: 'xstate', ...options });
  const agent = await bench.turnpike.startAgent();
  const response = await agent.submit(JSON.stringify(proposal('THINK', {})));
  await agent.end();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await bench.close();
  return 'outcome' in response ? response.outcome : response;
}

/** A service log, and the lines that it writes. */
function lines(): { readonly log: Log; readonly written: string[] } {
  const written: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString('utf8'));
      done();
    },
  });
  return { log: winstonLog('warn', stream), written };
}

describe('K2: a run continues if an inspector', () => {
  test.each<readonly [string, () => unknown]>([
    ['a bigint', () => ({ id: 1n })],
    ['a cyclic object', cyclic],
    ['an error that is its own cause', itsOwnCause],
    ['an object that cannot be read', unreadable],
  ])('throws or rejects with %s, and the service log says so once', async (_what, made) => {
    for (const isLater of [false, true]) {
      const { log, written } = lines();
      const throwing = (): undefined => {
        throw made() as Error;
      };
      const inspect = isLater ? () => Promise.resolve().then(throwing) as unknown as undefined : throwing;
      expect(await outcomeOf({ inspect, log })).toBe('SUCCESS');
      expect(written.filter((line) => line.includes('an inspector failed'))).toHaveLength(1);
    }
    expect(rejections).toEqual([]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('an inspector');
      },
    ],
    ['rejects', () => Promise.reject(new Error('an inspector')) as unknown as undefined],
    ['sends an event', ({ actorRef }: InspectionEvent) => actorRef.send({ type: 'END' })],
  ])('%s and the log throws', async (_what, inspect) => {
    const warn = (): never => {
      throw new Error('a log');
    };
    expect(await outcomeOf({ inspect, log: { ...winstonLog('silent'), warn } })).toBe('SUCCESS');
    expect(rejections).toEqual([]);
  });
});

test('an inspector gets a copy of its bytes, not the memory that a buffer shares with others', () => {
  const memory = Buffer.from('a secret of another, and the bytes');
  const bytes = memory.subarray(-5);
  const copies: unknown[] = [];
  const listener = inertInspector(
    (event) => copies.push((event as unknown as { event: { payload: unknown } }).event.payload),
    (error) => copies.push(error),
  );
  const actorRef = { id: 'a', sessionId: 'x:0', logic: {}, getSnapshot: () => undefined };
  const event = { type: '@xstate.event', rootId: 'x:0', actorRef, event: { type: 'PROPOSE', payload: bytes } };
  listener(event as unknown as InspectionEvent);
  const [copy] = copies as Uint8Array[];
  expect(Buffer.from(copy!).toString()).toBe('bytes');
  expect(copy!.buffer.byteLength).toBe(5);
  copy!.fill(0);
  expect(bytes.toString()).toBe('bytes');
});
