// docs/agents.md: the table of reasons compared with the code.

import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { nodesOf, parse } from '../sources.js';
import { tableOf } from './tables.js';

test('the page lists exactly the reasons for which a loop stops', () => {
  const literalsOf = (path: string, name: string): readonly string[] => {
    const alias = nodesOf(parse(path)).find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === name);
    const literals = alias === undefined ? [] : nodesOf(alias).filter(ts.isStringLiteral);
    return literals.map(({ text }) => text);
  };
  const reasons = [
    ...literalsOf('src/runtime/agents/agent-loop.ts', 'StopReason'),
    ...literalsOf('src/runtime/agents/agent-loop.ts', 'LimitReason'),
  ];
  expect(
    tableOf('docs/agents.md', 'stop-reasons')
      .map(([reason]) => reason)
      .toSorted(),
  ).toEqual(reasons.toSorted());
});
