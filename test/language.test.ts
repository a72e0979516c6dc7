// The language of code and prose: the terms of docs/glossary.md in the place of others.

import { describe, expect, test } from '@jest/globals';
import { basename, dirname } from 'node:path';
import ts from 'typescript';
import { tableOf } from './docs/tables.js';
import { BARE_WORDS, FILE_NAMES, FROZEN, IDENTIFIER_WORDS, NOUNS, PHRASES, RECORDED_NAMES } from './language.js';
import { isAddedToInterfaces, filesIn, nodesOf, parse, textOf } from './sources.js';

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

function identifierFindings(): readonly Finding[] {
  return SOURCES.flatMap((path) =>
    nodesOf(parse(path)).flatMap((node) => {
      if (!ts.isIdentifier(node) && !ts.isPrivateIdentifier(node)) return [];
      const { parent } = node;
      const declares = 'name' in parent && parent.name === node && !ts.isPropertyAccessExpression(parent);
      if (!declares || !isForbidden(node.text) || RECORDED_NAMES.includes(node.text)) return [];
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

const withoutCode = (text: string): string =>
  FROZEN.reduce((rest, frozen) => rest.replaceAll(frozen, ''), text)
    .replace(/^```[^]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, 'X');

function phraseFindings(): readonly Finding[] {
  const code = [...SOURCES, ...TESTS].map((path) => ({ path, text: proseOf(path).join('\n') }));
  const pages = PAGES.map((path) => ({ path, text: withoutCode(textOf(path)) }));
  return [...code, ...pages].flatMap(({ path, text }) =>
    Object.entries(PHRASES).flatMap(([rule, phrase]) =>
      [...text.matchAll(phrase)].map(([what]) => ({ rule: `phrase: ${rule}`, path, what })),
    ),
  );
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

describe('language', () => {
  test('each identifier uses a term of the glossary, or is recorded', () => {
    expect(identifierFindings()).toEqual([]);
  });

  test('a type is a noun, and two files do not export one type name', () => {
    expect(typeFindings(exportedTypes())).toEqual([]);
  });

  test('comments, titles, texts of the command and pages have none of the phrases', () => {
    expect(phraseFindings()).toEqual([]);
  });

  test('a file has words of the glossary, of its exports or of its folder in its name', () => {
    expect(fileNameFindings()).toEqual([]);
  });

  test('each exception is needed', () => {
    expect(Object.keys(FILE_NAMES).filter((path) => !SOURCES.includes(path))).toEqual([]);
    const types = exportedTypes().map(({ name }) => name);
    expect(Object.keys(NOUNS).filter((name) => !types.includes(name))).toEqual([]);
  });
});
