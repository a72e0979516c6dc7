// One way to name an entry: `@55` in the ledger, `run_…#24` in its tree.

import { expect, test } from '@jest/globals';
import { nameBoth, nameInLedger, nameInTree } from '../../../src/core/contract/entry-name.js';
import { filesIn, textOf } from '../../sources.js';

/** A number after one of these words that is no name of an entry. */
const BARE =
  /\b(?:[Ee]ntry|entries|log index|index|seq) #?(?:\$\{|\{[a-z.]+\})(?!nameIn|nameBoth)|`#\$\{|#\{|entries 0 to/;

/** What names something else, or is recorded text, whose bytes stay. */
const OTHERS = [
  // Texts that ledgers record.
  'src/core/run/audit-events.ts',
  // What an ambiguous number could mean.
  'src/interfaces/cli/options/entry-name-argument.ts',
  // The entries of a zip file.
  'src/features/exports/bag/bag-zip.ts',
  // The format of a proof file.
  'src/runtime/ledger/proof-file.ts',
  // Errors of this program in a batch that has no place in the log yet.
  'src/stores/ledger/check-batch.ts',
  // Addresses and their fragments.
  'src/interfaces/inspector/page/own-token.ts',
  'src/interfaces/inspector/page/boot.tsx',
];

test('an entry has one form in the ledger and one in its tree', () => {
  expect([nameInLedger(55), nameInTree('run_a', 24), nameBoth(55, 'run_a', 24)]).toEqual([
    '@55',
    'run_a#24',
    '@55 (run_a#24)',
  ]);
});

test('no message or page names an entry by a bare number', () => {
  const found = filesIn('src', /\.tsx?$/)
    .filter((path) => !OTHERS.includes(path))
    .flatMap((path) =>
      textOf(path)
        .split('\n')
        .flatMap((line, index) =>
          !/^\s*(?:\/\/|\*|\/\*)/.test(line) && BARE.test(line) ? [`${path}:${index + 1}`] : [],
        ),
    );
  expect(found).toEqual([]);
});

test('every file that is left out has such a line', () => {
  expect(OTHERS.filter((path) => !BARE.test(textOf(path)))).toEqual([]);
});
