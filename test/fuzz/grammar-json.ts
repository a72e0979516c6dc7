// JSON text, and text that resembles it.

import fc from 'fast-check';

/** A string as JSON text; JSON.stringify escapes what must be escaped, including lone surrogates. */
export const quoted = (text: string): string => JSON.stringify(text);

const escaped = (text: string): string =>
  `"${Array.from({ length: text.length }, (_, at) => hex(text.charCodeAt(at))).join('')}"`;
const hex = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;

const firstEscaped = (text: string): string =>
  text === '' ? '""' : `"${hex(text.charCodeAt(0))}${quoted(text.slice(1)).slice(1)}`;

type Spelling = (text: string) => string;

/** Spellings of a string: as it is, with one escape, with escaped slashes, or fully escaped. */
const spellings: readonly Spelling[] = [
  ...Array.from({ length: 14 }, () => quoted),
  firstEscaped,
  (text) => quoted(text).replaceAll('/', '\\/'),
  (text) => (text.length < 2_000 ? escaped(text) : quoted(text)),
];
/** Half of the keys are spelt with escapes, because that hides duplicates. */
const keySpellings: readonly Spelling[] = [quoted, quoted, escaped, firstEscaped];

/** These strings as JSON text, in any spelling. */
export const stringText = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(texts, fc.constantFrom(...spellings)).map(([text, spell]) => spell(text));
export const keyText = (keys: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(keys, fc.constantFrom(...keySpellings)).map(([key, spell]) => spell(key));

export const spaces = fc.oneof(
  { weight: 8, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom(' ', '\n', '\t', '\r\n', ' \n ', '\u00a0', '\u000b') },
);

const nested = (open: string, close: string) => (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;

const depth = fc.constantFrom(1, 15, 29, 30, 31, 32, 33, 64, 65, 500, 5_000);

/** Values that are not JSON, or that parsers read differently. */
const TRAPS = [
  ...['NaN', 'Infinity', '-Infinity', 'undefined', '01', '+1', '1.', '.5', '1e', '0x10', '1_000', '-', '--1', '- 1'],
  ...['1e999', '-1e999', '1e-999', '-0', '9007199254740993', '1e308', '123456789012345678901234567890', '0.1e+1'],
  ...['"\\ud800"', '"\\udc00"', '"\\ud800\\ud800"', '"\\ud83d\\ude00"', '"\ud800"', '"\\u0000"', '"\\x41"', '"\\u12"'],
  ...['"a\nb"', '"\t"', "'x'", '`x`', '"', 'tru', 'nulll', 'True', '[1,]', '[,1]', '{"a":1,}', '{,}', '{a:1}', '{"a"}'],
  ...['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"__proto__":{"admin":true}}', '{"\\u005f_proto__":1}', '{"":1,"":2}'],
  ...[
    '{"constructor":{"prototype":{}}}',
    '[1 2]',
    '{"a" "b"}',
    '/**/1',
    '1//',
    '<x/>',
    '\u2028',
    '"\u2028"',
    '\ufeff1',
  ],
];

export const hostileValue: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...TRAPS) },
  { weight: 4, arbitrary: fc.constantFrom('null', 'true', '0', '""', '[]', '{}', '"x"', '[null]', '{"path":1}') },
  { weight: 3, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 1, arbitrary: depth.map(nested('[', ']')) },
  { weight: 1, arbitrary: depth.map(nested('{"path":', '}')) },
  { weight: 1, arbitrary: fc.constantFrom(100, 5_000, 30_000).map((count) => '['.repeat(count)) },
  { weight: 1, arbitrary: fc.constantFrom(1_000, 20_000).map((count) => `"${'x'.repeat(count)}"`) },
  { weight: 1, arbitrary: fc.constantFrom(1_000, 8_000).map((count) => '9'.repeat(count)) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(50, 2_000)
      .map((count) => `{${Array.from({ length: count }, (_, n) => `"k${n}":0`).join(',')}}`),
  },
);
