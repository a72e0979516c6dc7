// Style that a machine can judge. What it finds is listed as `file:line`, so that an editor can go there.

import { basename } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, nodesOf, parse, textOf } from './sources.js';

const COLUMNS_MAX = 120;

const SOURCES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
const TESTS = filesIn('test', /\.(?:ts|mjs)$/);
/** Plain JavaScript that readers run or read. */
const EXAMPLES = ['docs', 'tools'].flatMap((folder) => filesIn(folder, /\.mjs$/));
const CODE = [...SOURCES, ...TESTS, ...EXAMPLES];
const TEXTS = filesIn(
  '.',
  /^[^.].*\.(?:tsx?|css|html|mjs|js|json|jsonl|md|txt|yaml|yml|sql)$|^\.npmrc$|^LICENSE|^run$/,
);

const linesOf = (path: string): readonly string[] => textOf(path).replace(/\n$/, '').split('\n');

/** Where lines match, as `file:line`. */
const matching = (paths: readonly string[], wrong: (line: string) => boolean): readonly string[] =>
  paths.flatMap((path) => linesOf(path).flatMap((line, index) => (wrong(line) ? [`${path}:${index + 1}`] : [])));

/** Where nodes match, as `file:line what`. */
const nodesMatching = (paths: readonly string[], what: (node: ts.Node, path: string) => string | null) =>
  paths.flatMap((path) => {
    const source = parse(path);
    return nodesOf(source).flatMap((node) => {
      const found = what(node, path);
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      return found === null ? [] : [`${path}:${line + 1} ${found}`];
    });
  });

describe('lines', () => {
  // Prettier breaks code; what it cannot break is a string, and a broken string cannot be searched for.
  test(`a line has at most ${COLUMNS_MAX} columns, unless it holds a string`, () => {
    const long = CODE.flatMap((path) => longLines(path).map((line) => `${path}:${line + 1}`));
    expect(long).toEqual([]);
  });
});

describe('the top level', () => {
  test('U-07 has the folders, files and packages that the design names', () => {
    const top = filesIn('.', /./).map((path) => path.split('/')[0] ?? '');
    const folders = ['machines', 'src', 'policies', 'test', 'docs', 'package.json', 'tsconfig.json'];
    expect(folders.filter((name) => !top.includes(name))).toEqual([]);
    const { dependencies, devDependencies } = JSON.parse(textOf('package.json')) as Record<string, object>;
    const packages = Object.keys({ ...dependencies, ...devDependencies });
    expect(packages).toEqual(expect.arrayContaining(['xstate', 'typebox', 'nanoid', 'winston', 'jest', 'esbuild']));
  });
});

describe('file names', () => {
  test('no two source files have one name, unless they are the index of a folder or the start of a program', () => {
    const nameOf = (path: string): string => basename(path).replace(/\.tsx?$/, '');
    const names = SOURCES.map(nameOf).filter((name) => name !== 'index' && name !== 'main');
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});

describe('paths in scripts', () => {
  // A script may load the compiled form of a source file, which exists after every build but the first one of a clone.
  test('a source file that a script of tools or tests names exists', () => {
    const scripts = [...EXAMPLES, ...TESTS].filter((path) => /^(?:tools|test)\/.*\.mjs$/.test(path));
    const named = scripts.flatMap((path) =>
      [
        ...textOf(path).matchAll(
          /'(?:\.\.\/)*(?:build\/compiled\/)?((?:src|machines)\/[\w./-]+?)(?:\.d)?\.(?:js|ts|tsx)'/g,
        ),
      ].map(([, stem = '']) => ({ path, stem })),
    );
    expect(named.length).toBeGreaterThan(0);
    const stems = new Set(SOURCES.map((path) => path.replace(/\.tsx?$/, '')));
    expect(named.filter(({ stem }) => !stems.has(stem))).toEqual([]);
  });
});

describe('leftovers', () => {
  // Put together here, so that this file does not hold what it looks for.
  const marks = [
    ['TO', 'DO'],
    ['FIX', 'ME'],
    ['XX', 'X'],
    ['HA', 'CK'],
  ].map((parts) => parts.join(''));
  const mark = new RegExp(`\\b(?:${marks.join('|')})\\b`);

  test('no mark of unfinished work', () => {
    expect(matching([...CODE, ...filesIn('docs', /\.md$/)], (line) => mark.test(line))).toEqual([]);
  });

  test('no package registry is named in any text', () => {
    const hosts = [
      ['registry', 'npmjs', 'org'],
      ['registry', 'yarnpkg', 'com'],
      ['npm', 'pkg', 'github', 'com'],
    ];
    const names = hosts.map((parts) => parts.join('.'));
    const setting = /^\s*(?:@[^:]+:)?registry\s*=|"resolved"\s*:\s*"https?:/;
    expect(matching(TEXTS, (line) => setting.test(line) || names.some((name) => line.includes(name)))).toEqual([]);
  });
});

describe('language', () => {
  test('no default export', () => {
    // Most files need not be parsed.
    // Jest loads its own parts by their default export.
    const own = CODE.filter((path) => !path.startsWith('test/jest/'));
    const files = own.filter((path) => /\b(?:default|export\s*=)/.test(textOf(path)));
    const found = nodesMatching(files, (node) => {
      if (ts.isExportAssignment(node)) return 'export default';
      const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : [];
      return modifiers.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword) ? 'export default' : null;
    });
    expect(found).toEqual([]);
  });

  test('no `any`, enum, namespace or non-null assertion in sources', () => {
    const found = nodesMatching(SOURCES, (node) => {
      if (node.kind === ts.SyntaxKind.AnyKeyword) return 'any';
      if (ts.isEnumDeclaration(node)) return 'enum';
      if (ts.isModuleDeclaration(node) && !ts.isStringLiteral(node.name)) return 'namespace';
      return ts.isNonNullExpression(node) ? '!' : null;
    });
    expect(found).toEqual([]);
  });
});

const STRINGS = [
  ts.SyntaxKind.StringLiteral,
  ts.SyntaxKind.NoSubstitutionTemplateLiteral,
  ts.SyntaxKind.TemplateExpression,
  ts.SyntaxKind.RegularExpressionLiteral,
];

/** The lines of a file, from 0, that are too long and on which no string stands. */
function longLines(path: string): readonly number[] {
  const long = linesOf(path).flatMap((line, index) =>
    line.length > COLUMNS_MAX && Array.from(line).length > COLUMNS_MAX ? [index] : [],
  );
  if (long.length === 0) return [];
  const source = parse(path);
  const lineAt = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
  const strings = nodesOf(source).filter(({ kind }) => STRINGS.includes(kind));
  const spans = strings.map((node) => [lineAt(node.getStart()), lineAt(node.getEnd())] as const);
  return long.filter((line) => !spans.some(([from, to]) => from <= line && line <= to));
}
