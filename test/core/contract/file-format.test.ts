import { describe, expect, test } from '@jest/globals';
import {
  formatHeader,
  refuseLaterVersion,
  refuseOtherFormat,
  type FileFormat,
} from '../../../src/core/contract/file-format.js';

const FORMAT: FileFormat = { prefix: 'turnpike-x ', newest: 2, old: /^turnpike x / };
const refuse = (text: string) => () => refuseOtherFormat(text, FORMAT, 'the file x');

describe('the format of a file', () => {
  test('is written after its prefix', () => {
    expect(formatHeader(FORMAT)).toBe('turnpike-x 2');
  });

  test.each(['turnpike-x 3', 'turnpike-x 3\nmore', 'turnpike-x 10 head', 'turnpike-x 999999999'])(
    '%j is later, and is not supported',
    (text) => {
      expect(refuse(text)).toThrow(
        expect.objectContaining({
          code: 'LEDGER_UNSUPPORTED',
          message: expect.stringMatching(/^the file x has format \d+, and this version of Turnpike knows 2: use the/),
        }),
      );
    },
  );

  test('from before formats began again at 1 is not supported, and the message names the way out', () => {
    expect(refuse('turnpike x 1\n')).toThrow(
      expect.objectContaining({
        code: 'LEDGER_UNSUPPORTED',
        message: expect.stringContaining('`turnpike ledger export` of that version'),
      }),
    );
  });

  test.each(['turnpike-x 2', 'turnpike-x 1\n', 'turnpike-x 0', 'turnpike-x 1000000000', 'another 3'])(
    '%j is left to the check of the whole file',
    (text) => {
      expect(refuse(text)).not.toThrow();
    },
  );
});

describe('the version of a JSON file', () => {
  test('that is later is not supported', () => {
    expect(() => refuseLaterVersion({ version: 3, more: true }, 2, 'the file x')).toThrow(
      expect.objectContaining({
        code: 'LEDGER_UNSUPPORTED',
        message: expect.stringMatching(/^the file x has format 3,/),
      }),
    );
  });

  test.each([{ version: 2 }, { version: 0 }, { version: '3' }, { version: 2.5 }, {}, [3], 3, null])(
    '%j is left to the check of the whole file',
    (value) => {
      expect(() => refuseLaterVersion(value, 2, 'the file x')).not.toThrow();
    },
  );
});
