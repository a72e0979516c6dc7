// The public API as one text: every exported name of every entry point, with its kind and its declaration.
//
// It is read from the declarations of the build (`dist`), which consumers compile against.

import { join } from 'node:path';
import ts from 'typescript';
import { ROOT, textOf } from '../../test/sources.js';

interface ExportedName {
  readonly name: string;
  readonly kind: string;
  readonly deprecated: boolean;
  readonly declaration: string;
}

const KINDS: readonly (readonly [(node: ts.Node) => boolean, string])[] = [
  [ts.isFunctionDeclaration, 'function'],
  [ts.isClassDeclaration, 'class'],
  [ts.isInterfaceDeclaration, 'interface'],
  [ts.isTypeAliasDeclaration, 'type'],
  [ts.isVariableDeclaration, 'const'],
  [ts.isSourceFile, 'namespace'],
];

/** The declaration files of the entry points in package.json, by the name that a consumer imports. */
export function entryPoints(): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(textOf('package.json')) as {
    readonly name: string;
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  };
  return new Map(
    Object.entries(exports).flatMap(([path, target]) =>
      typeof target === 'string' ? [] : [[join(name, path), join(ROOT, target.types)] as const],
    ),
  );
}

export const CONSUMER_OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  noEmit: true,
};

/** The report. A declaration that several entry points export is listed under the first of them. */
export function apiReport(): string {
  const files = entryPoints();
  const program = ts.createProgram([...files.values()], CONSUMER_OPTIONS);
  const firstExportOf = new Map<ts.Symbol, string>();
  const sections = [...files].map(([entry, file]) => {
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error(`${entry}: ${file} is missing: run \`npm run build\``);
    const names = exportedNames(program.getTypeChecker(), source, entry, firstExportOf);
    return [`# ${entry} (${names.length})\n`, ...names.map(toText)].join('\n');
  });
  return [HEADER, ...sections].join('\n');
}

const HEADER = `The public API of every entry point in package.json, as TypeScript declares it.
Generated: \`npm run generate -- api\` writes it anew after a build.
`;

const toText = ({ name, kind, deprecated, declaration }: ExportedName): string =>
  `${deprecated ? 'deprecated ' : ''}${kind} ${name}\n${declaration.replace(/^/gm, '    ')}\n`;

function exportedNames(
  checker: ts.TypeChecker,
  source: ts.SourceFile,
  entry: string,
  firstExportOf: Map<ts.Symbol, string>,
): readonly ExportedName[] {
  const module = checker.getSymbolAtLocation(source);
  if (module === undefined) return [];
  return checker
    .getExportsOfModule(module)
    .map((symbol) => {
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
      const declarations = target.declarations ?? [];
      const whole = [...declarations, ...declarations.flatMap((each) => addedByFeatures(each, checker))];
      const known = firstExportOf.get(target);
      firstExportOf.set(target, known ?? `${symbol.name} of ${entry}`);
      return {
        name: symbol.name,
        kind: declarations.map(kindOf).join(' and '),
        deprecated: [symbol, target].some((each) => isDeprecated(each, checker)),
        declaration: known === undefined ? whole.map(declarationText).join('\n') : `= ${known}`,
      };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What features declare for the interfaces that an interface extends: it has these members too. */
const addedByFeatures = (node: ts.Declaration, checker: ts.TypeChecker): readonly ts.Declaration[] =>
  (ts.isInterfaceDeclaration(node) ? (node.heritageClauses ?? []) : [])
    .flatMap(({ types }) => [...types])
    .flatMap((base) => checker.getTypeAtLocation(base).getSymbol()?.declarations ?? [])
    .filter(({ parent }) => ts.isModuleBlock(parent));

const kindOf = (node: ts.Declaration): string => KINDS.find(([is]) => is(node))?.[1] ?? ts.SyntaxKind[node.kind];

const isDeprecated = (symbol: ts.Symbol, checker: ts.TypeChecker): boolean =>
  symbol.getJsDocTags(checker).some(({ name }) => name === 'deprecated');

const printer = ts.createPrinter({ removeComments: true });

function declarationText(node: ts.Declaration): string {
  if (ts.isSourceFile(node)) return node.fileName.replace(/^.*\/dist\//, '');
  // The keywords precede the list of variables, which contains one here.
  const whole = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  return printer
    .printNode(ts.EmitHint.Unspecified, whole, node.getSourceFile())
    .replace(/^export /, '')
    .replace(/^declare /, '');
}
