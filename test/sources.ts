// The sources as the tests of style and layers read them: as text, and as the TypeScript parser sees them.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import ts from 'typescript';
import { ROOT } from './root.js';

export { ROOT } from './root.js';

/** What is never looked at: not ours, or made. */
export const LEFT_OUT: readonly string[] = ['node_modules', 'dist', 'build', 'coverage', '.git', '.turnpike'];

/** The files below a folder of the repository whose names match, as paths from its root, sorted. */
export function filesIn(folder: string, name: RegExp): readonly string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && name.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !path.split('/').some((part) => LEFT_OUT.includes(part)))
    .sort();
}

/** What a feature adds to interfaces: it belongs to their layer, and only the registry and the feature import it. */
export const isAddedToInterfaces = (path: string): boolean =>
  /^src\/features\/[^/]+\/(?:commands|page|routes|service|tools|views)\//.test(path);

/** What is bundled for the page of the inspector, and what features add to it. */
export const isOfPage = (path: string): boolean =>
  /^src\/(?:interfaces\/inspector|features\/[^/]+)\/page\//.test(path) || path === 'src/features/feature-panels.ts';

export const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const parsed = new Map<string, ts.SourceFile>();

/** The syntax tree of a file, parsed once. */
export function parse(path: string): ts.SourceFile {
  const known = parsed.get(path) ?? ts.createSourceFile(path, textOf(path), ts.ScriptTarget.Latest, true);
  parsed.set(path, known);
  return known;
}

const below = new WeakMap<ts.Node, readonly ts.Node[]>();

/** Every node of the syntax tree below `node`, itself included: collected once. */
export function nodesOf(node: ts.Node): readonly ts.Node[] {
  const known = below.get(node) ?? collect(node);
  below.set(node, known);
  return known;
}

function collect(node: ts.Node): readonly ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (each: ts.Node): void => {
    found.push(each);
    ts.forEachChild(each, visit);
  };
  visit(node);
  return found;
}

/** What a file imports, re-exports or imports at run time, word for word. */
export function importsOf(source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  for (const node of nodesOf(source)) {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      if (node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier)) {
        found.push(node.moduleSpecifier.text);
      }
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [name] = node.arguments;
      found.push(name !== undefined && ts.isStringLiteral(name) ? name.text : 'something computed');
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      found.push(ts.isStringLiteral(node.argument.literal) ? node.argument.literal.text : 'something computed');
    }
  }
  return found;
}

/** The file of ours that an import names, or null where it names a package. */
export function targetOf(path: string, name: string): string | null {
  if (!name.startsWith('.')) return null;
  // What stands behind a question mark tells a bundler how the file is wanted.
  const target = posix.join(posix.dirname(path), name.replace(/\?.*$/, ''));
  const views = target.replace(/\.js$/, '.tsx');
  return existsSync(join(ROOT, views)) ? views : target.replace(/\.js$/, '.ts');
}
