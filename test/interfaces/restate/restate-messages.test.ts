import { describe, expect, test } from '@jest/globals';
import {
  INPUT_ID_CHARS_MAX,
  MESSAGE_BYTES_MAX,
  parseMessage,
  PAYLOAD_BYTES_MAX,
  RunMessage,
  SubmitMessage,
} from '../../../src/interfaces/restate/restate-messages.js';

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const submission = (input_id: string, bytes: number) => ({
  run_id: 'run_12345678.1',
  input_id,
  payload: { sha256: 'a'.repeat(64), bytes },
});

describe('a message from Restate', () => {
  test('is validated against its schema', () => {
    expect(parseMessage(RunMessage, bytesOf({ run_id: 'run_12345678.1' }))).toEqual({ run_id: 'run_12345678.1' });
    expect(parseMessage(RunMessage, bytesOf({ run_id: 'run_12345678.1', more: 1 }))).toBe(null);
    expect(parseMessage(RunMessage, bytesOf({ run_id: '../x' }))).toBe(null);
    expect(parseMessage(RunMessage, Buffer.from('{'))).toBe(null);
    expect(parseMessage(RunMessage, Buffer.from([0xff]))).toBe(null);
  });

  test('has a limit of bytes', () => {
    const text = '{"run_id":"run_12345678.1"}';
    expect(parseMessage(RunMessage, Buffer.from(text.padEnd(MESSAGE_BYTES_MAX)))).not.toBe(null);
    expect(parseMessage(RunMessage, Buffer.from(text.padEnd(MESSAGE_BYTES_MAX + 1)))).toBe(null);
  });

  test('has limits of the input id and of the payload', () => {
    const isValid = (input_id: string, bytes: number): boolean =>
      parseMessage(SubmitMessage, bytesOf(submission(input_id, bytes))) !== null;
    expect(isValid('x'.repeat(INPUT_ID_CHARS_MAX), PAYLOAD_BYTES_MAX)).toBe(true);
    expect(isValid('x'.repeat(INPUT_ID_CHARS_MAX + 1), 1)).toBe(false);
    expect(isValid('x', PAYLOAD_BYTES_MAX + 1)).toBe(false);
    expect(isValid('two words', 1)).toBe(false);
  });
});
