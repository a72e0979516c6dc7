// A loader of modules for trace-step.mjs: each function of the compiled modules first records its file and name.

import ts from 'typescript';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

let folder = '';

export function initialize({ compiled }) {
  folder = compiled;
}

export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.startsWith(`file://${folder}/`)) return loaded;
  const path = relative(folder, fileURLToPath(url)).replace(/\.js$/, '.ts');
  return { ...loaded, source: recording(loaded.source.toString(), path) };
}

function recording(source, path) {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const call = (node) => `globalThis.recordCall?.(${JSON.stringify(path)},${JSON.stringify(nameOf(node))});`;
  const inserts = [];
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) {
      if (ts.isBlock(node.body)) inserts.push([node.body.getStart(file) + 1, call(node)]);
      else inserts.push([node.body.getStart(file), `(${call(node).slice(0, -1)},`], [node.body.getEnd(), ')']);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  // An end and a start at the same place: the end closes first, because it was added later.
  let text = source;
  for (const [at, added] of inserts.toSorted((one, other) => other[0] - one[0]))
    text = text.slice(0, at) + added + text.slice(at);
  return text;
}

/** The name that a reader sees: of the declaration, the member or the variable. Empty for a function without one. */
function nameOf(node) {
  const named = node.name !== undefined || ts.isConstructorDeclaration(node) ? node : node.parent;
  if (ts.isConstructorDeclaration(node)) return node.parent.name?.text ?? '';
  const isOwn =
    named === node ||
    ((ts.isVariableDeclaration(named) || ts.isPropertyAssignment(named) || ts.isPropertyDeclaration(named)) &&
      named.initializer === node);
  return isOwn ? (named.name?.getText() ?? '') : '';
}
