import { describe, expect, test } from '@jest/globals';
import { pathsOfPatch, patchTextCall } from '../../../../src/features/hooks/dialects/tool-inputs.js';
import { PATHS_MAX } from '../../../../src/features/hooks/native-tools.js';

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
