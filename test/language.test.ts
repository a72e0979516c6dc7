// The language of code and prose: the terms of docs/glossary.md in the place of others. Findings that are left are
// counted by rule and folder in test/language-ratchet.json; a count may only fall. TURNPIKE_WRITE_LANGUAGE=1 writes it
// and test/recorded-names.json anew.

import { describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import ts from 'typescript';
import { tableOf } from './docs/tables.js';
import { BARE_WORDS, FILE_NAMES, IDENTIFIER_WORDS, NOUNS, PHRASES } from './language.js';
import { isAddedToInterfaces, filesIn, nodesOf, parse, ROOT, textOf } from './sources.js';

const RATCHET = 'test/language-ratchet.json';
const RECORDED = 'test/recorded-names.json';
const SENTENCE_WORDS_MAX = 35;
const EXCEPTIONS_MAX = 30;

const SOURCES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
// This rule is written in the words that it forbids.
const TESTS = [...filesIn('test', /\.ts$/), ...filesIn('tools', /\.mjs$/)].filter(
  (path) => !/^test\/language(?:\.test)?\.ts$/.test(path),
);
const PAGES = ['README.md', 'CONTRIBUTING.md', 'AGENTS.md', ...filesIn('docs', /\.md$/)].filter(
  (path) => !path.startsWith('docs/examples/'),
);

interface Finding {
  readonly rule: string;
  readonly path: string;
  readonly what: string;
}

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');

const FORBIDDEN = new Set<string>(IDENTIFIER_WORDS);
const isForbidden = (name: string): boolean => wordsOf(name).some((word) => FORBIDDEN.has(word));

/** Files whose interfaces are stored: entries, snapshots of machines and sessions, packets. */
const STORED =
  /^(?:machines\/|src\/core\/contract\/|src\/features\/sessions\/(?:contract|machine)\/|src\/features\/sessions\/rules\/session-state\.ts)/;

/** Names in recorded bytes: members of the published schemas, and of the interfaces that are stored. */
function findRecordedNames(): readonly string[] {
  const schemas = filesIn('policies/contract/v1/schemas', /\.yaml$/);
  const keys = schemas.flatMap((path) => [...textOf(path).matchAll(/^\s*(?:- )?([A-Za-z_]+)(?::|$)/gm)]);
  const members = SOURCES.filter((path) => STORED.test(path))
    .flatMap((path) => nodesOf(parse(path)))
    .flatMap((node) => (ts.isPropertySignature(node) || ts.isPropertyAssignment(node) ? [node.name.getText()] : []));
  return [...new Set([...keys.map(([, key = '']) => key), ...members])].filter(isForbidden).sort();
}

function identifierFindings(recorded: readonly string[]): readonly Finding[] {
  return SOURCES.flatMap((path) =>
    nodesOf(parse(path)).flatMap((node) => {
      if (!ts.isIdentifier(node) && !ts.isPrivateIdentifier(node)) return [];
      const { parent } = node;
      const declares = 'name' in parent && parent.name === node && !ts.isPropertyAccessExpression(parent);
      if (!declares || !isForbidden(node.text) || recorded.includes(node.text)) return [];
      return [{ rule: 'identifier', path, what: node.text }];
    }),
  );
}

interface ExportedType {
  readonly path: string;
  readonly name: string;
}

function exportedTypes(): readonly ExportedType[] {
  return SOURCES.flatMap((path) =>
    parse(path).statements.flatMap((node) => {
      const types = ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node);
      return types && isExported(node) && node.name !== undefined ? [{ path, name: node.name.text }] : [];
    }),
  );
}

const isExported = (node: ts.Statement): boolean =>
  ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);

function typeFindings(types: readonly ExportedType[]): readonly Finding[] {
  return types.flatMap(({ path, name }) => {
    const bare = wordsOf(name).length === 1 && (/(?:ed|ing)$/.test(name) || BARE_WORDS.includes(name));
    const others = types.filter((type) => type.name === name && type.path !== path);
    return [
      ...(bare && NOUNS[name] === undefined ? [{ rule: 'type is a participle', path, what: name }] : []),
      ...(others.length > 0 ? [{ rule: 'type exported twice', path, what: name }] : []),
    ];
  });
}

/** The comments of a file of code, a line each; of tests their titles, and of the command its texts too. */
function proseOf(path: string): readonly string[] {
  return textOf(path)
    .split('\n')
    .flatMap((line) => {
      const [, comment] = /^\s*(?:\/\/|\/?\*+)(.*)$/.exec(line) ?? /\s\/\/ (.*)$/.exec(line) ?? [];
      if (comment !== undefined) return [comment];
      const title = path.startsWith('test/') && /\b(?:test|describe)\b.*\(\s*[`'"]/.test(line);
      const isCommand = path.startsWith('src/interfaces/cli/') || isAddedToInterfaces(path);
      const text = isCommand && /['`][^'`]* [^'`]* [^'`]*['`]/.test(line);
      return title || text ? [line] : [];
    });
}

const withoutCode = (text: string): string => text.replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, 'X');

function phraseFindings(): readonly Finding[] {
  const code = [...SOURCES, ...TESTS].map((path) => ({ path, text: proseOf(path).join('\n') }));
  const pages = PAGES.map((path) => ({ path, text: withoutCode(textOf(path)) }));
  return [...code, ...pages].flatMap(({ path, text }) =>
    Object.entries(PHRASES).flatMap(([rule, phrase]) =>
      [...text.matchAll(phrase)].map(([what]) => ({ rule: `phrase: ${rule}`, path, what })),
    ),
  );
}

/** Sentences end with a paragraph, a list item, a table cell, or a mark and a space. */
function sentenceFindings(): readonly Finding[] {
  return PAGES.flatMap((path) => {
    const text = withoutCode(textOf(path)).replace(/<!--[^]*?-->/g, '');
    const blocks = text.split(/\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)|\|/);
    const sentences = blocks.flatMap((block) => block.split(/[.:;?!]\s+/));
    const long = sentences.filter((sentence) => sentence.split(/\s+/).filter(Boolean).length > SENTENCE_WORDS_MAX);
    return long.map((what) => ({ rule: 'long sentence', path, what: what.trim().slice(0, 60) }));
  });
}

/** The ending that is left may have doubled a consonant: `pinned` has the stem of `pin`. */
const stem = (word: string): string =>
  word
    .replace(/(?:ies|y)$/, 'i')
    .replace(/(?:es|s|ed|ing|e)$/, '')
    .replace(/([bdgmnprt])\1$/, '$1');

function fileNameFindings(): readonly Finding[] {
  const glossary = tableOf('docs/glossary.md', 'terms').flatMap(([term = '', meaning = '']) => [term, meaning]);
  const known = new Set(glossary.flatMap(wordsOf).map(stem));
  return SOURCES.flatMap((path) => {
    const name = basename(path).replace(/\.tsx?$/, '');
    if (name === 'index' || FILE_NAMES[path] !== undefined) return [];
    const exported = parse(path).statements.filter(isExported).flatMap(namesOf);
    const own = new Set([...exported, ...dirname(path).split('/')].flatMap(wordsOf).map(stem));
    const strange = wordsOf(name).filter((word) => !known.has(stem(word)) && !own.has(stem(word)));
    return strange.length === 0 ? [] : [{ rule: 'file name', path, what: strange.join(' ') }];
  });
}

function namesOf(node: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map(({ name }) => name.getText());
  return 'name' in node && node.name !== undefined ? [(node.name as ts.Identifier).getText()] : [];
}

/** The folder by which findings are counted: two levels of it. */
const folderOf = (path: string): string => dirname(path).split('/').slice(0, 2).join('/');

type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

function countsOf(findings: readonly Finding[]): Counts {
  const counts: Record<string, Record<string, number>> = {};
  for (const { rule, path } of findings) {
    const folders = (counts[rule] ??= {});
    folders[folderOf(path)] = (folders[folderOf(path)] ?? 0) + 1;
  }
  return counts;
}

const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

const recordedNames = findRecordedNames();
const findings = [
  ...identifierFindings(recordedNames),
  ...typeFindings(exportedTypes()),
  ...phraseFindings(),
  ...sentenceFindings(),
  ...fileNameFindings(),
];
const counts = countsOf(findings);

if (process.env['TURNPIKE_WRITE_LANGUAGE'] === '1') {
  const ratchet = sorted(Object.fromEntries(Object.entries(counts).map(([rule, folders]) => [rule, sorted(folders)])));
  writeFileSync(join(ROOT, RATCHET), `${JSON.stringify(ratchet, null, 2)}\n`);
  writeFileSync(join(ROOT, RECORDED), `${JSON.stringify(recordedNames, null, 2)}\n`);
}

describe('language', () => {
  test('no rule has more findings in a folder than the ratchet allows', () => {
    const ratchet = JSON.parse(textOf(RATCHET)) as Counts;
    const more = Object.entries(counts).flatMap(([rule, folders]) =>
      Object.entries(folders)
        .filter(([folder, count]) => count > (ratchet[rule]?.[folder] ?? 0))
        .map(([folder, count]) => ({
          rule,
          folder,
          count,
          allowed: ratchet[rule]?.[folder] ?? 0,
          found: findings.filter((each) => each.rule === rule && folderOf(each.path) === folder),
        })),
    );
    expect(more).toEqual([]);
  });

  test('names in recorded bytes that would be findings are those of the generated list', () => {
    expect(recordedNames).toEqual(JSON.parse(textOf(RECORDED)));
  });

  test(`there are fewer than ${EXCEPTIONS_MAX} exceptions, each with a reason and each needed`, () => {
    const exceptions = [...Object.entries(NOUNS), ...Object.entries(FILE_NAMES)];
    expect(exceptions.length).toBeLessThan(EXCEPTIONS_MAX);
    expect(exceptions.filter(([, reason]) => reason.trim() === '')).toEqual([]);
    expect(Object.keys(FILE_NAMES).filter((path) => !SOURCES.includes(path))).toEqual([]);
    const types = exportedTypes().map(({ name }) => name);
    expect(Object.keys(NOUNS).filter((name) => !types.includes(name))).toEqual([]);
  });
});
