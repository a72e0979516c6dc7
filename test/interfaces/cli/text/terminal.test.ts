import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Writable } from 'node:stream';
import { errorLine, exitCodeOf } from '../../../../src/interfaces/cli/exit-code.js';
import { Output, OutputClosedError } from '../../../../src/interfaces/cli/io.js';
import {
  escapeText,
  jsonLine,
  createPainter,
  shortenText,
  table,
} from '../../../../src/interfaces/cli/text/terminal.js';
import {
  InvariantError,
  LedgerError,
  PolicyError,
  RunError,
  SandboxError,
  UsageError,
} from '../../../../src/core/errors.js';
import { character } from '../../../fixtures/characters.js';

describe('escaped', () => {
  test.each([
    ['a line break', 'a\nb', 'a\\nb'],
    ['an escape sequence', '\u001b[2J', '\\u001b[2J'],
    ['a C1 control', '\u009b31m', '\\u009b31m'],
    ['DEL and NUL', '\u007f\u0000', '\\u007f\\u0000'],
    ['a bidirectional override', 'a\u202eb', 'a\\u202eb'],
    ['an isolate', '\u2066\u2069', '\\u2066\\u2069'],
    ['a zero-width space and a byte order mark', '\u200b\ufeff', '\\u200b\\ufeff'],
    ['line and paragraph separators', '\u2028\u2029', '\\u2028\\u2029'],
    ['a tag, which is two units', '\u{e0041}', '\\udb40\\udc41'],
    ['a lone surrogate', '\ud800', '\\ud800'],
    ['other text, as it is', 'Grüße, 日本, 🚦', 'Grüße, 日本, 🚦'],
  ])('shows %s', (_name, text, shown) => expect(escapeText(text)).toBe(shown));

  test('removes all active characters, and keeps the value of JSON', () => {
    fc.assert(
      fc.property(fc.string({ unit: character }), (text) => {
        const line = jsonLine({ text });
        expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect(JSON.parse(line)).toEqual({ text });
      }),
    );
  });

  test('shortens text at its end', () => {
    expect([shortenText('12345', 5), shortenText('123456', 5)]).toEqual(['12345', '1234…']);
  });
});

test('a table aligns its columns, coloured or not, without trailing spaces', () => {
  const rows = [
    [{ text: 'a' }, { text: 'done', colour: 'green' as const }, { text: '' }],
    [{ text: 'bcd' }, { text: 'no' }, { text: 'why' }],
  ];
  expect(table(rows, createPainter(false))).toBe('a    done\nbcd  no    why\n');
  expect(table(rows, createPainter(true))).toBe('a    \u001b[32mdone\u001b[0m\nbcd  no    why\n');
});

describe('an error', () => {
  test.each([
    [new UsageError({ code: 'USAGE', message: 'm' }), 2],
    [new RunError({ code: 'RUN_UNKNOWN', message: 'm' }), 1],
    [new RunError({ code: 'CLOSED', message: 'm' }), 1],
    [new PolicyError({ code: 'POLICY_INVALID', message: 'm' }), 1],
    [new LedgerError({ code: 'LEDGER_TAMPERED', message: 'm' }), 3],
    [new LedgerError({ code: 'LEDGER_BELOW_HEAD', message: 'm' }), 3],
    [new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'm' }), 3],
    [new LedgerError({ code: 'LEDGER_LOCKED', message: 'm' }), 3],
    [new SandboxError({ code: 'UNSUPPORTED_PLATFORM', message: 'm' }), 3],
    [new InvariantError('m'), null],
    [new Error('m'), null],
  ] as const)('%s has its exit code', (error, code) => expect(exitCodeOf(error)).toBe(code));

  test('is one line, whatever its message contains', () => {
    const message = 'two findings:\nfirst\u001b[2J\nsecond';
    expect(errorLine(new UsageError({ code: 'USAGE', message }))).toBe('USAGE: two findings: first\\u001b[2J; second');
    expect(errorLine(new Error('x'))).toBe('UNEXPECTED: x');
  });
});

describe('Output', () => {
  const failing = (code: string): Output =>
    new Output(
      new Writable({ write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })) }),
      false,
    );

  test('reports a missing reader at once and on every later write', async () => {
    const output = failing('EPIPE');
    await expect(output.write('a')).rejects.toBeInstanceOf(OutputClosedError);
    await expect(output.write('b')).rejects.toBeInstanceOf(OutputClosedError);
    await expect(output.writeLine('c')).resolves.toBeUndefined();
  });

  test('a full disk is an error like any other', async () => {
    await expect(failing('ENOSPC').write('a')).rejects.toMatchObject({ code: 'ENOSPC' });
  });

  test('waits until the reader has accepted the written text', async () => {
    let taken = 0;
    const slow = new Writable({
      highWaterMark: 1,
      write: (_chunk, _encoding, done) => {
        setTimeout(() => {
          taken += 1;
          done();
        }, 5);
      },
    });
    const output = new Output(slow, false);
    for (let i = 1; i <= 3; i += 1) {
      await output.write('x');
      expect(taken).toBe(i);
    }
  });
});
