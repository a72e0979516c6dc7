// The declarations of the package: of those that the compiler has written, the statements that the entry points reach.
// No consumer can name the others, which are half as much again.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

/**
 * Writes the declarations that these files reach.
 * @param from the folder of the compiled files
 * @param roots the files of the entry points, in it
 * @param to the folder for what they reach
 */
export function bundleDeclarations(from, roots, to) {
  const entries = roots.map((path) => join(from, path));
  const options = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  };
  const program = ts.createProgram(entries, options);
  const isOwn = (file) => file.fileName.startsWith(`${from}/`);
  const reached = reachedNodes(program, entries, isOwn);
  for (const file of program.getSourceFiles().filter(isOwn)) {
    const text = file.statements.map((statement) => keptText(statement, reached)).join('');
    if (text === '') continue;
    const path = join(to, relative(from, file.fileName));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text.trim()}\n`);
  }
}

/** Statements, and of imports and exports the names, that the exports of the entry points need, and what those need. */
function reachedNodes(program, entries, isOwn) {
  const checker = program.getTypeChecker();
  const reached = new Set();
  const waiting = [];
  const reach = (symbol) => {
    for (const declaration of symbol?.declarations ?? []) {
      const node = isName(declaration) ? declaration : statementOf(declaration);
      if (node === null || reached.has(node) || !isOwn(node.getSourceFile())) continue;
      reached.add(node);
      if (isName(node)) reach(checker.getImmediateAliasedSymbol(symbol));
      else waiting.push(node);
    }
  };
  const reachModule = (symbol) => checker.getExportsOfModule(symbol).forEach(reach);
  const visit = (node) => {
    if (ts.isIdentifier(node)) reach(checker.getSymbolAtLocation(node));
    if (ts.isImportTypeNode(node) && node.qualifier === undefined)
      reachModule(checker.getSymbolAtLocation(node.argument.literal));
    ts.forEachChild(node, visit);
  };
  for (const entry of entries) reachModule(checker.getSymbolAtLocation(program.getSourceFile(entry)));
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) visit(node);
  const reachedFiles = new Set([...reached].map((node) => node.getSourceFile()));
  for (const statement of program
    .getSourceFiles()
    .filter(isOwn)
    .flatMap((file) => file.statements)) {
    if (!ts.isExportDeclaration(statement) || statement.exportClause !== undefined) continue;
    const [file] = checker.getSymbolAtLocation(statement.moduleSpecifier).declarations;
    if (reachedFiles.has(file)) reached.add(statement);
  }
  return reached;
}

const isName = (node) =>
  ts.isImportSpecifier(node) || ts.isExportSpecifier(node) || ts.isImportClause(node) || ts.isNamespaceImport(node);

function statementOf(declaration) {
  let node = declaration;
  while (node.parent !== undefined && !ts.isSourceFile(node.parent)) node = node.parent;
  return node.parent === undefined ? null : node;
}

/** The text of a statement with the comment above it; of an import or export with the names that are reached. */
function keptText(statement, reached) {
  if (ts.isImportDeclaration(statement)) return importText(statement, reached);
  const names = ts.isExportDeclaration(statement) ? statement.exportClause?.elements : undefined;
  // It brings what a module adds to interfaces of others.
  if (names?.length === 0 && statement.moduleSpecifier !== undefined) return statement.getFullText();
  if (names !== undefined) return clauseText(statement, names, reached);
  return reached.has(statement) ? statement.getFullText() : '';
}

function importText(statement, reached) {
  const { importClause: clause } = statement;
  const names = clause?.namedBindings;
  if (clause === undefined) return statement.getFullText();
  const isWhole = names === undefined ? reached.has(clause) : ts.isNamespaceImport(names) && reached.has(names);
  if (isWhole) return statement.getFullText();
  if (clause.name !== undefined && reached.has(clause)) return statement.getFullText();
  return names === undefined || ts.isNamespaceImport(names) ? '' : clauseText(statement, names.elements, reached);
}

function clauseText(statement, names, reached) {
  const kept = names.filter((name) => reached.has(name));
  if (kept.length === 0) return '';
  const text = statement.getFullText();
  const from = names.pos - statement.pos;
  return `${text.slice(0, from)} ${kept.map((name) => name.getFullText().trim()).join(', ')} ${text.slice(names.end - statement.pos).trimStart()}`;
}
