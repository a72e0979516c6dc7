// Makes src/names/tables/tables.ts: what the Unicode Standard says of code points, as far as names of people are
// compared.
//   node tools/unicode-tables.mjs UNIDATA
// UNIDATA is the folder `source/data/unidata` of an ICU4C source release. The tables that are committed are of ICU 72.1
// (Unicode 15.0.0), whose archive has the SHA-256
//   a2d2d38217092a7ed56635e34467f92f976b370e20182ad325edea6681a71d68
// Read of it: confusables.txt (UTS #39), norm2/nfc.txt and norm2/nfkc_cf.txt (UAX #15), UnicodeData.txt.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [unidata] = process.argv.slice(2);
if (unidata === undefined) throw new Error('name the folder UNIDATA');
const COLUMNS = 200;

const linesOf = (name) =>
  readFileSync(join(unidata, name), 'utf8')
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => line.replace(/#.*$/, '').trim())
    .filter((line) => line !== '');
const points = (text) =>
  text.trim() === ''
    ? []
    : text
        .trim()
        .split(/\s+/)
        .map((hex) => Number.parseInt(hex, 16));
const range = (text) => {
  const [first, last = first] = text.split('..').map((hex) => Number.parseInt(hex, 16));
  return { first, last };
};
const short = (number) => number.toString(36);

const version = /^\* Unicode (\S+)$/.exec(linesOf('norm2/nfc.txt').find((line) => line.startsWith('*')))[1];
const stated = /# Version: (\S+)/.exec(readFileSync(join(unidata, 'confusables.txt'), 'utf8'))[1];
if (stated !== version) throw new Error(`confusables.txt is of Unicode ${stated}, nfc.txt of ${version}`);

/** Source to target, of lines `A=B C`, `A>B C` and `A..B>C`. */
function mappings(name) {
  const found = new Map();
  for (const line of linesOf(name)) {
    const parts = /^([0-9A-F.]+)[=>](.*)$/.exec(line);
    if (parts === null) continue;
    const { first, last } = range(parts[1]);
    for (let point = first; point <= last; point += 1) found.set(point, points(parts[2]));
  }
  return found;
}

const combining = linesOf('norm2/nfc.txt').flatMap((line) => {
  const parts = /^([0-9A-F.]+):(\d+)$/.exec(line);
  return parts === null ? [] : [{ ...range(parts[1]), value: Number(parts[2]) }];
});
const decompositions = mappings('norm2/nfc.txt');
const folds = mappings('norm2/nfkc_cf.txt');
const confusables = new Map(
  linesOf('confusables.txt').map((line) => {
    const [source, target] = line.split(';');
    return [points(source)[0], points(target)];
  }),
);

/** Code points that are assigned, for private use, or never will be characters. */
function assigned() {
  const ranges = [];
  let from = null;
  for (const line of linesOf('UnicodeData.txt')) {
    const [hex, name] = line.split(';');
    const point = Number.parseInt(hex, 16);
    if (name.endsWith(', First>')) from = point;
    const first = from ?? point;
    if (name.endsWith(', First>')) continue;
    from = null;
    const before = ranges.at(-1);
    if (before !== undefined && before.last + 1 >= first) before.last = point;
    else ranges.push({ first, last: point });
  }
  return ranges;
}

/** Simple case pairs of single letters. The key is the one that NFKC_Casefold leaves as it is. */
function cases() {
  const pairs = new Map();
  for (const line of linesOf('UnicodeData.txt')) {
    const [hex, , , , , , , , , , , , uppercase] = line.split(';');
    if (uppercase === '') continue;
    const [lower, upper] = [hex, uppercase].map((text) => Number.parseInt(text, 16));
    if (decompositions.has(lower) || decompositions.has(upper)) continue;
    const [folded, other] = [lower, upper].map((point) => folds.get(point) ?? [point]);
    if (String(folded) !== String(other) || folded.length !== 1) continue;
    if (folded[0] === lower) pairs.set(lower, [upper]);
    else if (folded[0] === upper) pairs.set(upper, [lower]);
  }
  return pairs;
}

// A precomposed letter needs no fold of its own where its parts have one.
const decomposed = (point) =>
  (decompositions.get(point) ?? [point]).flatMap((part) => (part === point ? [part] : decomposed(part)));
const isHangul = (point) => point >= 0xac00 && point <= 0xd7a3;
const viaParts = (point) =>
  decomposed(point)
    .flatMap((part) => folds.get(part) ?? [part])
    .flatMap(decomposed);
for (const [point, target] of [...folds]) {
  const redundant = decompositions.has(point) || target.some(isHangul);
  if (redundant && String(viaParts(point)) === String(target.flatMap(decomposed))) folds.delete(point);
}

/** `TARGET=SOURCE,SOURCE+MORE,...`: numbers in base 36, each source as its distance from the one before. */
function grouped(map) {
  const groups = new Map();
  for (const [source, target] of [...map].sort(([a], [b]) => a - b)) {
    const key = target.map(short).join('.');
    groups.set(key, [...(groups.get(key) ?? []), source]);
  }
  return [...groups].map(([target, sources]) => `${target}=${runs(sources)}`);
}

function runs(sources) {
  const found = [];
  for (const source of sources) {
    const last = found.at(-1);
    if (last !== undefined && last.last + 1 === source) last.last = source;
    else found.push({ first: source, last: source });
  }
  let before = 0;
  return found
    .map(({ first, last }) => {
      const text = `${short(first - before)}${last > first ? `+${short(last - first)}` : ''}`;
      before = last;
      return text;
    })
    .join(',');
}

const classes = new Map(
  combining.flatMap(({ first, last, value }) =>
    Array.from({ length: last - first + 1 }, (_, index) => [first + index, [value]]),
  ),
);
const known = new Map(assigned().flatMap(({ first, last }) => [[first, [last]]]));

const HEAD = `// Generated by tools/unicode-tables.mjs from the data files of Unicode ${version}; modified in form alone. Do not edit.
// Copyright © 1991-2022 Unicode, Inc. Distributed under the licence in src/names/tables/LICENSE.
`;

/** A table as the text of a constant. */
function table(name, doc, map) {
  const parts = grouped(map);
  const lines = [];
  for (const part of parts) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + part.length < COLUMNS) lines[lines.length - 1] = `${line} ${part}`;
    else lines.push(part);
  }
  const text = `/** ${doc} */\nexport const ${name} = \`\n${lines.join('\n')}\n\`;\n`;
  process.stdout.write(`${name}: ${parts.length} groups, ${text.length} bytes, ${lines.length} lines\n`);
  return text;
}

const TABLES = [
  table(
    'CONFUSABLES',
    'UTS #39: the prototype of each character that looks like others, and those others.',
    confusables,
  ),
  table(
    'FOLDS',
    'NFKC_Casefold, where it does not follow from that of the parts of a character; ignorable: to nothing.',
    folds,
  ),
  table(
    'DECOMPOSITIONS',
    'Canonical decompositions, one step; those of Hangul syllables are arithmetic.',
    decompositions,
  ),
  table('CASES', 'The other case of each letter that NFKC_Casefold leaves as it is.', cases()),
  table('CLASSES', 'Canonical combining classes other than 0.', classes),
  table('ASSIGNED', '`LAST=FIRST` of each range of code points that this version has assigned.', known),
];
const VERSION = `/** The version of Unicode of all tables. */
export const UNICODE_VERSION = '${version}';
`;
writeFileSync(new URL('../src/names/tables/tables.ts', import.meta.url), [HEAD, VERSION, ...TABLES].join('\n'));
