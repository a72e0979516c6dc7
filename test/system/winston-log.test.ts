import { Writable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { winstonLog } from '../../src/system/winston-log.js';
import { LedgerError } from '../../src/core/errors.js';

function logging(work: (log: ReturnType<typeof winstonLog>) => void): string {
  let text = '';
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString('utf8');
      done();
    },
  });
  work(winstonLog('info', stream));
  return text;
}

test('the service log is one JSON object per line, with a timestamp', () => {
  const text = logging((log) => {
    log.info('opened', { trees: 3 });
    log.warn('late');
  });
  const lines = text.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'info', message: 'opened', trees: 3, timestamp: expect.any(String) },
    { level: 'warn', message: 'late' },
  ]);
});

test('an error is logged with its code, message, stack and causes', () => {
  const cause = new Error('disk full');
  const error = new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'no commit', cause });
  const [line] = logging((log) => log.error('stopped', { error })).split('\n');
  expect(JSON.parse(line!)).toMatchObject({
    level: 'error',
    error: { name: 'LedgerError', code: 'LEDGER_UNAVAILABLE', message: 'no commit', cause: { message: 'disk full' } },
  });
  expect(line).toContain('winston-log.test');
});

test.each([
  ['a new line', 'a\nb'],
  ['a terminal sequence', '\u001b[2J'],
  ['a C1 control', '\u009b31m'],
  ['a bidirectional override', '\u202egnp.exe'],
  ['a line separator', 'a\u2028b'],
  ['a zero-width space', 'a\u200bb'],
  ['an Arabic letter mark', 'a\u061cb'],
  ['a tag character', 'a\u{e0041}b'],
])('%s cannot leave its field', (_name, hostile) => {
  const text = logging((log) => log.info(hostile, { field: hostile }));
  expect(text.trimEnd().split('\n')).toHaveLength(1);
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u061c]|\p{Cf}/u);
  expect(JSON.parse(text)).toMatchObject({ message: hostile, field: hostile });
});

test('a long field is truncated', () => {
  const text = logging((log) => log.info('long', { field: 'x'.repeat(10_000) }));
  expect(text.length).toBeLessThan(3_000);
});

test.each([
  ['a bigint', 1n, '1'],
  ['a bigint in an object', { id: 1n }, { id: '1' }],
  ['a cyclic object', cyclic(), expect.stringContaining('JSON cannot hold')],
  ['an object whose member throws', unreadable(), expect.stringContaining('JSON cannot hold')],
  ['an error whose message is a bigint', Object.assign(new Error('x'), { message: 1n }), { message: '1' }],
  ['a symbol', Symbol('s'), undefined],
])('%s in a field is logged without an exception', (_name, field, logged) => {
  const text = logging((log) => log.warn('message', { field, other: 1 }));
  const line = JSON.parse(text) as Record<string, unknown>;
  expect(line).toMatchObject({ message: 'message', other: 1 });
  if (typeof logged === 'object' && !('asymmetricMatch' in logged)) expect(line['field']).toMatchObject(logged);
  else expect(line['field']).toEqual(logged);
});

test('an error that is its own cause is logged with a limited number of causes', () => {
  const error = new Error('its own cause');
  error.cause = error;
  const text = logging((log) => log.error('stopped', { error }));
  expect(JSON.parse(text)).toMatchObject({ error: { message: 'its own cause', cause: { message: 'its own cause' } } });
  expect(text.match(/"message":"its own cause"/g)).toHaveLength(9);
});

function cyclic(): object {
  const object: Record<string, unknown> = {};
  object['self'] = object;
  return object;
}

function unreadable(): object {
  return {
    get member(): string {
      throw new Error('unreadable');
    },
  };
}

test('`silent` writes nothing', () => {
  let written = 0;
  const stream = new Writable({
    write(_chunk, _encoding, done) {
      written += 1;
      done();
    },
  });
  winstonLog('silent', stream).error('unheard');
  expect(written).toBe(0);
});
