import { describe, expect, test } from '@jest/globals';
import { receive } from '../../../src/core/step/check-phases.js';
import { testPolicy } from '../../fixtures/policy.js';
import { bytesOf } from './judge.js';

const policy = testPolicy();
const refusedAs = (code: string) => ({ ok: false, fault: { code } });

describe('RECEIVE', () => {
  test.each([
    ['no bytes', ''],
    ['spaces', '   '],
    ['every kind of white space of JSON', ' \t\r\n'],
    ['other white space', '\u00a0\u2003\u2028'],
  ])('S0-19: a payload of %s is empty', (_what, text) => {
    expect(receive(bytesOf(text), policy)).toMatchObject(refusedAs('EMPTY_PAYLOAD'));
  });

  test('S0-20: accepts a payload of the maximum length, and rejects one byte more', () => {
    const { payload_bytes_max } = policy.limits;
    expect(payload_bytes_max).toBe(65_536);
    expect(receive(bytesOf('x'.repeat(payload_bytes_max)), policy)).toMatchObject({ ok: true });
    expect(receive(bytesOf('x'.repeat(payload_bytes_max + 1)), policy)).toMatchObject(refusedAs('PAYLOAD_TOO_LARGE'));
  });

  test('S0-20: counts the length in bytes, before decoding', () => {
    const small = testPolicy({ limits: { payload_bytes_max: 4 } });
    expect(receive(bytesOf('éé'), small)).toMatchObject({ ok: true });
    expect(receive(bytesOf('ééé'), small)).toMatchObject(refusedAs('PAYLOAD_TOO_LARGE'));
    expect(receive(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff), small)).toMatchObject(refusedAs('PAYLOAD_TOO_LARGE'));
    expect(receive(bytesOf('     '), small)).toMatchObject(refusedAs('PAYLOAD_TOO_LARGE'));
  });

  test('S0-14 S0-17: returns the text unchanged, with its byte order mark, white space and line ends', () => {
    const text = '\ufeff\r\n {"reasoning": "é\u2028😀\u0000"} \n';
    const received = receive(bytesOf(text), policy);
    expect(received).toEqual({ ok: true, value: text });
  });

  test('S0-18: leaves the payload itself unchanged', () => {
    const payload = bytesOf('\ufeff{"a": "é"}');
    const before = Uint8Array.from(payload);
    receive(payload, policy);
    expect(payload).toEqual(before);
  });

  test('S0-14: reads only its own bytes from a larger buffer', () => {
    expect(receive(new Uint8Array(bytesOf('xx{}yy').buffer, 2, 2), policy)).toEqual({ ok: true, value: '{}' });
  });

  // From JSONTestSuite and common security tests: UTF-16, overlong forms, surrogates as bytes.
  test.each([
    ['array_a_invalid_utf8', [0x5b, 0x61, 0xe5, 0x5d]],
    ['array_invalid_utf8', [0x5b, 0xff, 0x5d]],
    ['number_invalid-utf-8-in-bigger-int', [0x5b, 0x31, 0x32, 0xe5, 0x5d]],
    ['number_invalid-utf-8-in-exponent', [0x5b, 0x31, 0x65, 0x31, 0xe5, 0x5d]],
    ['object_lone_continuation_byte_in_key', [0x7b, 0x22, 0xb9, 0x22, 0x3a, 0x30, 0x7d]],
    ['string_invalid_utf8_after_escape', [0x5b, 0x22, 0x5c, 0xe5, 0x22, 0x5d]],
    ['string_invalid-utf-8-in-escape', [0x5b, 0x22, 0x5c, 0x75, 0xe5, 0x22, 0x5d]],
    ['structure_incomplete_UTF8_BOM', [0xef, 0xbb, 0x7b, 0x7d]],
    ['structure_lone-invalid-utf-8', [0xe5]],
    ['structure_single_eacute', [0xe9]],
    ['UTF-16LE with its mark', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
    ['UTF-16BE with its mark', [0xfe, 0xff, 0x00, 0x7b, 0x00, 0x7d]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate in three bytes', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a code point above U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['a truncated sequence at the end', [0x22, 0xe2, 0x82]],
  ])('does not decode a payload that is not UTF-8: %s', (_what, bytes) => {
    expect(receive(Uint8Array.from(bytes), policy)).toMatchObject(refusedAs('INVALID_ENCODING'));
  });
});
