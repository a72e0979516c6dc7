import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { EARLY_COMMANDS } from '../../src/features/early-commands.js';
import { COMMANDS } from '../../src/interfaces/cli/turnpike-command.js';
import { nodesOf, parse } from '../sources.js';

test('the list of commands that start alone imports nothing before one of them is called', () => {
  const nodes = nodesOf(parse('src/features/early-commands.ts'));
  expect(nodes.filter((node) => ts.isImportDeclaration(node) || ts.isExportDeclaration(node))).toEqual([]);
});

test('each command that starts alone has its help among the other commands', () => {
  const names = EARLY_COMMANDS.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(COMMANDS.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
});
