import { describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { Json } from '../../../../src/core/contract/json.js';
import {
  AGENT_CHARS_MAX,
  CALL_ID_CHARS_MAX,
  callOf,
  originOf,
  RESULT_CHARS_MAX,
  resultOf,
  SESSION_CHARS_MAX,
  pathsOfPatch,
  patchTextCall,
} from '../../../../src/features/hooks/dialects/dialect.js';
import { readCall, PATH_CHARS_MAX, PATHS_MAX } from '../../../../src/features/hooks/native-calls.js';

const idOf = (id: Json | undefined, isRequired = true): string | null | undefined =>
  callOf(readCall('/a'), id, isRequired)?.call_id;

describe('the origin of an event', () => {
  test('U-08: a session, with or without a subagent and a working directory', () => {
    expect(originOf('s', 'a', '/p')).toEqual({ session: 's', agent: 'a', cwd: '/p' });
    expect(originOf('s', null, undefined)).toEqual({ session: 's', agent: null, cwd: null });
    expect(originOf('s', undefined, String.raw`C:\p`)).toEqual({ session: 's', agent: null, cwd: String.raw`C:\p` });
  });

  test.each<[string, Json | undefined, Json | undefined, Json | undefined]>([
    ['no session', undefined, null, null],
    ['an empty session', '', null, null],
    ['a session that is a number', 1, null, null],
    ['a session with a letter outside ASCII', 'é', null, null],
    ['a session with a line break', 'a\n', null, null],
    ['an empty subagent', 's', '', null],
    ['a subagent that is an object', 's', {}, null],
    ['a relative working directory', 's', null, 'p'],
    ['a working directory with a zero byte', 's', null, '/p\0'],
    ['a working directory with half a character', 's', null, '/\ud800'],
  ])('U-08: %s makes the event unreadable', (_, session, agent, cwd) => {
    expect(originOf(session, agent, cwd)).toBeNull();
  });

  test('U-08: limits of ids and of the working directory', () => {
    expect(
      originOf('s'.repeat(SESSION_CHARS_MAX), 'a'.repeat(AGENT_CHARS_MAX), '/'.repeat(PATH_CHARS_MAX)),
    ).not.toBeNull();
    expect(originOf('s'.repeat(SESSION_CHARS_MAX + 1), null, null)).toBeNull();
    expect(originOf('s', 'a'.repeat(AGENT_CHARS_MAX + 1), null)).toBeNull();
    expect(originOf('s', null, '/'.repeat(PATH_CHARS_MAX + 1))).toBeNull();
  });
});

describe('the id of a call', () => {
  test('U-08: it is kept up to its limit; a longer or stranger one becomes its hash, and so does one of that form', () => {
    const longest = 'x'.repeat(CALL_ID_CHARS_MAX);
    expect(idOf(longest)).toBe(longest);
    expect(idOf(`${longest}x`)).toBe(`sha256:${sha256(`${longest}x`)}`);
    expect(idOf('é')).toBe(`sha256:${sha256('é')}`);
    const forged = `sha256:${sha256('é')}`;
    expect(idOf(forged)).toBe(`sha256:${sha256(forged)}`);
  });

  test('U-08: a call without an id is unreadable where the client always gives one', () => {
    expect(callOf(readCall('/a'), undefined, true)).toBeNull();
    expect(idOf(undefined, false)).toBeNull();
    for (const id of ['', 3, {}, '\ud800']) expect(callOf(readCall('/a'), id, false)).toBeNull();
    expect(callOf(null, 'x', true)).toBeNull();
  });
});

describe('what a client tells of a result', () => {
  test('U-08: an object stays, a text and any other value get a name, nothing stays nothing', () => {
    expect(resultOf({ a: 1 })).toEqual({ a: 1 });
    expect(resultOf('x')).toEqual({ text: 'x' });
    expect(resultOf([1])).toEqual({ value: [1] });
    expect([resultOf(null), resultOf(undefined), resultOf('\ud800')]).toEqual([null, null, null]);
  });

  test('U-08: a result over the limit is replaced by its hash, its length and its beginning', () => {
    const textOf = (length: number): string => 'x'.repeat(length - '{"text":""}'.length);
    expect(resultOf(textOf(RESULT_CHARS_MAX))).toEqual({ text: textOf(RESULT_CHARS_MAX) });
    expect(resultOf(textOf(RESULT_CHARS_MAX + 1))).toEqual({
      shortened: expect.objectContaining({
        sha256: sha256(`{"text":"${textOf(RESULT_CHARS_MAX + 1)}"}`),
        bytes: RESULT_CHARS_MAX + 1,
      }),
    });
  });
});

const patch = (...lines: readonly string[]): string => ['*** Begin Patch', ...lines, '*** End Patch'].join('\n');

describe('files of a patch', () => {
  test('U-08: every file that is added, deleted, updated or moved, once', () => {
    const text = patch(
      '*** Add File: a',
      '+x',
      '*** Delete File: b c',
      '*** Update File: a',
      '*** Move to: d',
      '@@',
      '-x',
      '*** End of File',
    );
    expect(pathsOfPatch(text)).toEqual(['a', 'b c', 'd']);
  });

  test.each([
    ['a header behind white space', ['  *** Delete File: a'], ['a']],
    ['a header with a carriage return', ['*** Delete File: a\r'], ['a']],
    ['a header behind a control character that some readers strip', ['\u0085*** Delete File: a'], ['a']],
    [
      'an unchanged line that looks like a header, counted too',
      ['*** Update File: a', ' *** Delete File: b'],
      ['a', 'b'],
    ],
    ['an unchanged line with stars', ['*** Update File: a', ' *** note'], ['a']],
    ['an added line that looks like a header', ['*** Add File: a', '+*** Delete File: b'], ['a']],
    ['an unknown header', ['*** Rename File: a'], null],
    ['a header without its space', ['*** Add File:a'], null],
    ['a header without a path', ['*** Add File: '], null],
    ['a path behind two spaces', ['*** Add File:  a'], null],
    ['a path with a line separator', ['*** Add File: a\u2028b'], null],
    ['a path with a separator in a line that could be unchanged', [' *** Add File: a\u2028b'], null],
    ['a path with a control character', ['*** Add File: a\u0000b'], null],
    ['a path with a carriage return inside', ['*** Add File: a\rb'], null],
  ])('U-08: %s', (_, lines, expected) => {
    expect(pathsOfPatch(patch(...lines))).toEqual(expected);
  });

  test('U-08: a patch without files, or with more than the limit, is unreadable', () => {
    const files = (count: number): string => patch(...Array.from({ length: count }, (_, n) => `*** Add File: f${n}`));
    expect(patchTextCall(patch('+x'))).toBeNull();
    expect(patchTextCall(files(PATHS_MAX))?.tool).toBe('native.patch');
    expect(patchTextCall(files(PATHS_MAX + 1))).toBeNull();
    expect(patchTextCall(null)).toBeNull();
  });
});
