// docs/agents.md and its example: the table of reasons compared with the code, and the program as its readers would run
// it.

import { beforeAll, expect, test } from '@jest/globals';
import { join } from 'node:path';
import ts from 'typescript';
import { tempFolder } from '../fixtures/temp-folder.js';
import { nodesOf, parse } from '../sources.js';
import { built } from './built.js';
import { installed, MS_MAX, put, run } from './programs.js';
import { tableOf } from './tables.js';

const folder = tempFolder('agents');
beforeAll(built, 300_000);

test(
  'S2-02 S2-23 U-04 agent.mjs lets a model work, says its responses in words, verifies and replays',
  async () => {
    const at = installed(join(folder, 'agent'));
    const { status, stdout, stderr } = await run(put('agent.mjs', at), [], at);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'The request was not valid, so nothing was done.',
      'The file was written.',
      'The requested action is not allowed due to security restrictions.',
      'The file content is:',
      '',
      'Hello.',
      '',
      'finished completed {',
      '  steps: 5,',
      '  denials: 1,',
      '  invalid: 1,',
      '  invalid_in_a_row: 0,',
      '  tokens: 5000,',
      '  unreported: 0',
      '}',
      'The note says hello.',
      'true true',
      '',
    ]);
  },
  MS_MAX,
);

test('the page lists exactly the reasons for which a loop stops', () => {
  const literalsOf = (path: string, name: string): readonly string[] => {
    const alias = nodesOf(parse(path)).find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === name);
    const literals = alias === undefined ? [] : nodesOf(alias).filter(ts.isStringLiteral);
    return literals.map(({ text }) => text);
  };
  const reasons = [
    ...literalsOf('src/runtime/agent-loop/run-agent.ts', 'StopReason'),
    ...literalsOf('src/runtime/agent-loop/loop-limits.ts', 'LimitReason'),
  ];
  expect(
    tableOf('docs/agents.md', 'stop-reasons')
      .map(([reason]) => reason)
      .toSorted(),
  ).toEqual(reasons.toSorted());
});
