// The comments of the fields of a TypeBox schema, read from its source, because JSON Schema does not contain them.

import ts from 'typescript';
import { nodesOf, parse, targetOf } from '../../../test/sources.js';

type Comments = Map<string, string>;

/** The comment of each field below the schema that `file` declares as `name`, by the paths of `fieldsOf`. */
export function commentsOf(file: string, name: string): ReadonlyMap<string, string> {
  const comments: Comments = new Map();
  visitNamed(file, name, '', comments);
  return comments;
}

function visitNamed(file: string, name: string, path: string, comments: Comments): void {
  const found = declarationOf(file, name);
  if (found?.declaration.initializer === undefined) return;
  if (path !== '' && !comments.has(path)) note(found.declaration.parent.parent, path, comments);
  visit(found.file, found.declaration.initializer, path, comments);
}

function visit(file: string, node: ts.Expression, path: string, comments: Comments): void {
  if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) visit(file, node.expression, path, comments);
  else if (ts.isIdentifier(node)) visitNamed(file, node.text, path, comments);
  // `Schema.properties`, which another schema spreads.
  else if (ts.isPropertyAccessExpression(node)) visit(file, node.expression, path, comments);
  else if (ts.isArrayLiteralExpression(node)) for (const each of node.elements) visit(file, each, path, comments);
  else if (ts.isObjectLiteralExpression(node)) visitMembers(file, node, path, comments);
  else if (ts.isCallExpression(node)) visitCall(file, node, path, comments);
}

function visitCall(file: string, call: ts.CallExpression, path: string, comments: Comments): void {
  const name = call.expression.getText().replace(/^Type\./, '');
  const [first, second] = call.arguments;
  if (name === 'Record') {
    if (second !== undefined) visit(file, second, `${path}.*`, comments);
  } else if (first !== undefined && ['Object', 'Optional', 'Nullable', 'Union', 'Array'].includes(name)) {
    visit(file, first, name === 'Array' ? `${path}[]` : path, comments);
  }
}

function visitMembers(file: string, node: ts.ObjectLiteralExpression, path: string, comments: Comments): void {
  for (const member of node.properties) {
    if (ts.isSpreadAssignment(member)) visit(file, member.expression, path, comments);
    if (!ts.isPropertyAssignment(member)) continue;
    const at = path === '' ? member.name.getText() : `${path}.${member.name.getText()}`;
    note(member, at, comments);
    visit(file, member.initializer, at, comments);
  }
}

/** Stores the comment before a node, as one line. The first one of a path counts. */
function note(node: ts.Node, path: string, comments: Comments): void {
  const text = node.getSourceFile().text;
  const ranges = ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [];
  const comment = ranges.map(({ pos, end }) => text.slice(pos, end)).findLast((each) => each.startsWith('/**'));
  if (comment === undefined || comments.has(path)) return;
  const words = comment.replace(/^\/\*\*|\*\/$/g, '').replace(/^\s*\* ?/gm, '');
  comments.set(path, words.replace(/\s+/g, ' ').trim());
}

/** The variable that a file declares or imports under this name; undefined for what a package declares. */
function declarationOf(
  file: string,
  name: string,
): { readonly file: string; readonly declaration: ts.VariableDeclaration } | undefined {
  const nodes = nodesOf(parse(file));
  const declaration = nodes.find(
    (node): node is ts.VariableDeclaration => ts.isVariableDeclaration(node) && node.name.getText() === name,
  );
  if (declaration !== undefined) return { file, declaration };
  const specifier = nodes.find((node) => ts.isImportSpecifier(node) && node.name.text === name);
  if (specifier === undefined || !ts.isImportSpecifier(specifier)) return undefined;
  const from = specifier.parent.parent.parent.moduleSpecifier as ts.StringLiteral;
  const target = targetOf(file, from.text);
  return target === null ? undefined : declarationOf(target, specifier.propertyName?.text ?? name);
}
