// Rules that are cited by an id: each id in sources, tests, machines and documents has a definition.

import { describe, expect, test } from '@jest/globals';
import { filesIn, textOf } from '../sources.js';
import { citationsIn, filesNamedIn, globalIds, invariantsOf, resolutionsOf, stemOf } from './citations.js';

const PROGRAMS = ['machines', 'src', 'test', 'docs', 'tools'].flatMap((folder) => filesIn(folder, /\.(?:tsx?|mjs)$/));
const TOP = filesIn('.', /\.(?:md|mjs|ts)$/).filter((path) => !path.includes('/'));
const DOCUMENTS = filesIn('docs', /\.(?:md|txt)$/);
const DATA = [...filesIn('policies', /./), ...filesIn('packaging', /./), ...filesIn('test/conformance', /\.json$/)];
const FILES = [...PROGRAMS, ...TOP, ...DOCUMENTS, ...DATA];

const GLOBAL = globalIds(DOCUMENTS);
const DEFINITIONS = new Map<string, string[]>();
for (const path of PROGRAMS) {
  for (const id of invariantsOf(textOf(path))) DEFINITIONS.set(id, [...(DEFINITIONS.get(id) ?? []), path]);
}

/** The citations of a file that lead nowhere. A local id leads to this file, or to a file that this one names. */
function danglingIn(path: string, text: string): readonly string[] {
  const named = filesNamedIn(text);
  const own = new Set(invariantsOf(text));
  const isDefined = (id: string): boolean =>
    GLOBAL.has(id) || own.has(id) || (DEFINITIONS.get(id) ?? []).some((file) => named.has(stemOf(file)));
  return citationsIn(path, text, isDefined).map(({ id, line }) => `${path}:${line} ${id}`);
}

// If this fails: define the id in docs/contract/resolutions.md, or name the file whose header defines it.
test('every id that a file cites has a definition', () => {
  expect(FILES.flatMap((path) => danglingIn(path, textOf(path)))).toEqual([]);
});

test('files of every kind are read, and cite ids', () => {
  for (const files of [PROGRAMS, TOP, DOCUMENTS, DATA]) {
    expect(files.some((path) => citationsIn(path, textOf(path), () => false).length > 0)).toBe(true);
  }
});

// Entries that nothing cites remain: numbers are not used again, and records of earlier versions name them.
test('every resolution has one entry, with the anchor of its id', () => {
  const entries = resolutionsOf(textOf('docs/contract/resolutions.md'));
  expect(entries.length).toBeGreaterThan(130);
  expect(entries.filter(({ anchor, id }) => anchor !== id.toLowerCase())).toEqual([]);
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
  expect(textOf('docs/contract/resolutions.md').match(/<a id=/g)).toHaveLength(entries.length);
});

describe('an id without a definition', () => {
  // In parts, so that this file does not cite them.
  const idOf = (...parts: readonly (string | number)[]): string => parts.join('');
  const [rule, invariant] = [idOf('C', 700), idOf('Z', 88)];
  const [requirement, decision] = [idOf('S4-', 99), idOf('decision ', 9999)];

  test.each([
    ['in a comment', 'src/a.ts', `// Committed first (${rule}).\nlet a;`, 1, rule],
    ['in a block', 'src/a.ts', `/**\n * Committed first (${rule}).\n */\nlet a;`, 2, rule],
    ['at the end of a file', 'machines/a.ts', `let a;\n// ${invariant}.`, 2, invariant],
    ['after code', 'src/a.ts', `let a; // ${invariant}`, 1, invariant],
    ['in a message', 'src/a.ts', `const a = 'not accepted (${rule})';`, 1, rule],
    ['in a title', 'test/a.test.ts', `test('${invariant}: is first', f);`, 1, invariant],
    ['in the title of rows', 'test/a.test.ts', `test.each(rows)('${rule} %s', f);`, 1, rule],
    ['in a row', 'test/a.test.ts', `const rows = [['${requirement} is first']];`, 1, requirement],
    ['in a component', 'src/a.tsx', `const a = <p>first ({'${rule}'})</p>;`, 1, rule],
    ['in a program', 'docs/a.mjs', `// ${invariant}. First.`, 1, invariant],
    ['on a page', 'docs/a.md', `# A\n\nFirst (${invariant}).`, 3, invariant],
    ['as a requirement', 'docs/a.md', `First (${requirement}).`, 1, requirement],
    ['in a range', 'docs/a.md', `First (S4-86..${requirement}).`, 1, requirement],
    ['as a decision', 'docs/a.md', `First (${decision}).`, 1, '9999'],
    ['in a policy', 'policies/a.yaml', `# ${rule}: first`, 1, rule],
    ['in data', 'test/conformance/a.json', `{"a": "first (${rule})"}`, 1, rule],
  ])('is found %s', (_where, path, text, line, id) => {
    expect(danglingIn(path, text)).toContain(`${path}:${line} ${id}`);
  });

  test.each([
    ['in the list of invariants of the file', 'src/a.ts', `//   ${invariant}. First.\n\n/** ${invariant}. */`],
    ['in a file that it imports', 'src/a.ts', "// E4.\nimport { a } from './ledger-engine.js';"],
    ['in a file that it names', 'docs/a.md', 'First (E4 of `ledger-engine.ts`).'],
    ['in the contract', 'docs/a.md', 'First (S4-31, S4 §3, C35, D8, F3, U-08, decision 0040).'],
  ])('has one %s', (_where, path, text) => {
    expect(danglingIn(path, text)).toEqual([]);
  });

  test.each([
    ['in the header of another file', 'docs/a.md', 'First (E4).'],
    ['in code of a page', 'docs/a.md', `First (E4):\n\n\`\`\`js\nimport './ledger-engine-2.js'\n\`\`\``],
  ])('has none %s', (_where, path, text) => {
    expect(danglingIn(path, text)).toEqual(['docs/a.md:1 E4']);
  });

  test.each([
    ['a block of code', 'docs/a.md', `\`\`\`\n${invariant}\n\`\`\``],
    ['data of a program', 'test/a.test.ts', `const a = ['${invariant}', 'M8 2${invariant}'];`],
    ['a hash', 'src/a.ts', `// sha256-AB/${rule}+x=`],
    ['an engine', 'src/a.ts', '// V8 inlines it.'],
  ])('is not looked for in %s', (_where, path, text) => {
    expect(citationsIn(path, text, () => false)).toEqual([]);
  });
});
