// Actions and their arguments: valid ones and near misses.

import fc from 'fast-check';
import { ACTION_NAMES } from '../../src/core/contract/policy/catalogue.js';
import { hostileValue, keyText, quoted, stringText } from './grammar-json.js';

/** Actions, weighted: all that exist, often, and names that must not be mistaken for one. */
export const ACTION_WORDS: readonly string[] = [
  ...ACTION_NAMES.filter((name) => name !== 'FINISH').flatMap((name) => Array.from({ length: 20 }, () => name)),
  ...[
    'FINISH',
    'FINISH',
    'read_file',
    'Read_File',
    'thınk',
    'ﬁnish',
    'liſt_files',
    ' READ_FILE',
    'READ_FILE\n',
    'READ_FILE\u0000',
  ],
  ...['', 'constructor', '__proto__', 'toString', 'EXPORT_CASE', 'RUN_SHELL', 'x'.repeat(64), 'x'.repeat(65), 'a b'],
  ...['../READ_FILE', 'lane.granted', 'WRITE_RECORD', 'CALL_TOOL', 'Error', '<b>'],
];

/** The files in the campaign's sandboxes (see world.ts), so that many paths exist. */
const NAMES = ['README.md', 'notes', 'todo.txt', 'new.txt', 'a.md', 'b.txt', 'sub', 'config.json', 'deep', 'draft.md'];
const TRAPS = ['link.txt', 'linkdir', 'hard.txt', 'binary.txt', 'large.txt', 'pipe.txt', 'loop', 'secret.txt'];
const HOSTILE_NAMES = [
  ...['..', '.', '', '...', 'a..b.txt', '.txt', '.TXT', 'A.TXT', 'readme.md', 'run.sh', 'x.txt.sh', 'x.sh.txt', '~'],
  ...['%2e%2e', '%2f', '..%2f', '..;', '\\..', 'C:', 'CON.txt', 'COM\u00b9.txt', 'a.txt::$DATA', 'a.txt.', 'a.txt '],
  ...['PROGRA~1', 'a\u0000.md', 'a\n.txt', 'a\u007f.txt', '\u0085', 'cafe\u0301.txt', 'caf\u00e9.txt', '\u212b.txt'],
  ...['READ\u039cE.md', '\u2024\u2024', '\uff0e\uff0e', '\u202egpj.txt', '\ud800', '.turnpike-0123', '.TURNPIKE-x.txt'],
  ...['proc', 'self', 'environ', 'etc', 'passwd', '-rf', '$HOME', '`id`', 'a'.repeat(255), `${'a'.repeat(252)}.txt`],
  ...['é'.repeat(127) + '.txt', 'x'.repeat(600)],
];
const PREFIXES = [
  ...['/sandbox', 'sandbox/', '/sandbox_evil/', '/Sandbox/', '//sandbox/', '/./sandbox/', '/etc/', 'file:///sandbox/'],
  ...['', '../', '/proc/self/root/sandbox/', '\u2215sandbox/', '/sandbox\u0000/', ' /sandbox/', '/sandbox/../', 'C:\\'],
];

const segment = fc.oneof(
  { weight: 24, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 3, arbitrary: fc.constantFrom(...TRAPS) },
  { weight: 3, arbitrary: fc.constantFrom(...HOSTILE_NAMES) },
  { weight: 1, arbitrary: fc.string({ maxLength: 12, unit: 'grapheme' }) },
);

/** Paths that exist, or where a file may be created. */
const PLACES = [
  ...['', 'README.md', 'todo.txt', 'config.json', 'notes', 'notes/draft.md', 'notes/deep', 'notes/deep/a.md', 'sub/'],
  ...['new.txt', 'sub/new.md', 'notes/a.md', 'notes/b.txt', 'sub/deep', 'link.txt', 'linkdir/secret.txt', 'pipe.txt'],
].map((name) => `/sandbox/${name}`);

const anyPath: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof(
      { weight: 14, arbitrary: fc.constant('/sandbox/') },
      { weight: 1, arbitrary: fc.constantFrom(...PREFIXES) },
    ),
    fc.oneof(
      { weight: 12, arbitrary: fc.array(segment, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.array(segment, { maxLength: 24 }) },
    ),
    fc.oneof(
      { weight: 16, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constantFrom('/', '//', '/.', '/..') },
    ),
  )
  .map(([prefix, segments, end]) => prefix + segments.join('/') + end);

const path = fc.oneof({ weight: 5, arbitrary: anyPath }, { weight: 4, arbitrary: fc.constantFrom(...PLACES) });

const LARGE = [255, 256, 257, 49_151, 49_152, 49_153, 60_000];
const content = fc.oneof(
  { weight: 10, arbitrary: fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' }) },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', '\u0000', '\ud800', '#!/bin/sh\nrm -rf /\n', 'Error: x\n    at y') },
  { weight: 1, arbitrary: fc.constantFrom(...LARGE).map((count) => 'c'.repeat(count)) },
);

const pathText = stringText(path);
const contentText = stringText(content);

/** The members that an action requires, as JSON text. */
function rightArgs(action: string): readonly (readonly [string, fc.Arbitrary<string>])[] {
  switch (action) {
    case 'THINK':
      return [];
    case 'FINISH':
      return [['response', contentText]];
    case 'WRITE_FILE':
      return [
        ['path', pathText],
        ['content', contentText],
      ];
    case 'RENAME_FILE':
      return [
        ['source', pathText],
        ['destination', pathText],
      ];
    default:
      return [['path', pathText]];
  }
}

const STRANGE = [
  'path',
  'content',
  'source',
  'follow_links',
  'constructor',
  '__proto__',
  'toString',
  'Path',
  '',
  'mode',
];

const strange = fc
  .tuple(keyText(fc.constantFrom(...STRANGE)), fc.oneof(hostileValue, path.map(quoted)))
  .map(([key, value]) => `${key}:${value}`);

const made = new Map<string, fc.Arbitrary<string>>();

/** The arguments of an action as JSON text: mostly valid, sometimes one missing, one extra, or another value. */
export function argsOf(action: string): fc.Arbitrary<string> {
  // Built once: constructing an arbitrary costs more than drawing from it.
  const known = made.get(action) ?? makeArgs(action);
  made.set(action, known);
  return known;
}

function makeArgs(action: string): fc.Arbitrary<string> {
  const right = rightArgs(action).map(([key, value]) => value.map((json) => `"${key}":${json}`));
  const whole = fc.tuple(...right).map((list) => `{${list.join(',')}}`);
  return fc.oneof(
    { weight: 20, arbitrary: whole },
    { weight: 1, arbitrary: fc.tuple(...right.slice(1)).map((list) => `{${list.join(',')}}`) },
    { weight: 2, arbitrary: fc.tuple(...right, strange).map((list) => `{${list.join(',')}}`) },
    { weight: 1, arbitrary: hostileValue },
  );
}
