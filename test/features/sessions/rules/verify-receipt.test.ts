// S3-24: the receipt verifier of the package. It names every member that does not match the subject.

import { describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { commandHash, verifyReceipt, type ReceiptSubject } from '../../../../src/features/sessions/index.js';

const COMMAND = ['npm', 'run', 'a b'];
const OUTPUT = 'ok\n';
const RECEIPT = {
  command_hash: commandHash(COMMAND),
  exit_code: 0,
  output_digest: sha256(OUTPUT),
  issued_at: '2026-02-03T04:05:06.007Z',
  step_id: 'ses_0001-s2',
};
const WHOLE: ReceiptSubject = {
  command: COMMAND,
  step_id: RECEIPT.step_id,
  exit_code: 0,
  output: OUTPUT,
  receipt: RECEIPT,
};

describe('S3-24: a receipt', () => {
  test('is valid for its subject, and for every part of it', () => {
    expect(verifyReceipt(RECEIPT, WHOLE)).toEqual({ valid: true, differing: [] });
    expect(verifyReceipt(RECEIPT, { ...WHOLE, output: Buffer.from(OUTPUT) })).toEqual({ valid: true, differing: [] });
    for (const name of Object.keys(WHOLE) as (keyof ReceiptSubject)[]) {
      expect(verifyReceipt(RECEIPT, { [name]: WHOLE[name] })).toEqual({ valid: true, differing: [] });
    }
  });

  test.each<readonly [string, ReceiptSubject, string]>([
    ['another command', { command: ['npm', 'run', 'a', 'b'] }, 'command_hash'],
    ['no command', { command: [] }, 'command_hash'],
    ['another step', { step_id: 'ses_0001-s3' }, 'step_id'],
    ['another exit code', { exit_code: 1 }, 'exit_code'],
    ['another output', { output: 'ok' }, 'output_digest'],
    ['an output of other bytes', { output: Buffer.from('ok\r\n') }, 'output_digest'],
    ['no output', { output: '' }, 'output_digest'],
  ])('differs from %s, with and without its own copy', (_what, subject, differing) => {
    expect(verifyReceipt(RECEIPT, subject)).toEqual({ valid: false, differing: [differing] });
    expect(verifyReceipt(RECEIPT, { ...WHOLE, ...subject })).toEqual({ valid: false, differing: [differing] });
  });

  test.each(
    Object.entries({ command_hash: 'c'.repeat(64), exit_code: 7, output_digest: 'd'.repeat(64), step_id: 'x' }),
  )('with a changed %s differs from the copy in the ledger, and from no omitted member', (name, value) => {
    const changed = { ...RECEIPT, [name]: value };
    expect(verifyReceipt(changed, { receipt: RECEIPT })).toEqual({ valid: false, differing: [name] });
    expect(verifyReceipt(changed, {})).toEqual({ valid: true, differing: [] });
  });

  test('is invalid for any subject that the copy in the ledger contradicts', () => {
    const copy = { ...RECEIPT, exit_code: 1 };
    expect(verifyReceipt(RECEIPT, { ...WHOLE, receipt: copy })).toEqual({ valid: false, differing: ['exit_code'] });
    expect(verifyReceipt(copy, { ...WHOLE, receipt: copy })).toEqual({ valid: false, differing: ['exit_code'] });
  });

  test('of another time differs from the copy in the ledger', () => {
    const changed = { ...RECEIPT, issued_at: '2026-02-03T04:05:06.008Z' };
    expect(verifyReceipt(changed, WHOLE)).toEqual({ valid: false, differing: ['issued_at'] });
  });

  test.each<readonly [string, unknown]>([
    ['nothing', null],
    ['a text', 'receipt'],
    ['a list', [RECEIPT]],
    ['a receipt with one member more', { ...RECEIPT, more: 1 }],
    ['a receipt without a member', { ...RECEIPT, step_id: undefined }],
    ['a receipt with a hash in capitals', { ...RECEIPT, command_hash: 'C'.repeat(64) }],
  ])('is not %s', (_what, given) => {
    expect(verifyReceipt(given, {})).toEqual({ valid: false, differing: ['form'] });
  });

  test('identifies a command by its separate arguments, whatever characters they contain', () => {
    const hashes = [['a b'], ['a', 'b'], ['a', 'b', ''], ['a,b'], ['["a","b"]']].map(commandHash);
    expect(new Set(hashes).size).toBe(5);
    expect(commandHash(['npm', 'test'])).toBe(sha256('["npm","test"]'));
  });
});
