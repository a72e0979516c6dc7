// What a denial lists as allowed is allowed, and is not what was refused, for calls that the coding template denies.

import { describe, expect, test } from '@jest/globals';
import type { CallRule } from '../../../../src/core/contract/policy/call-rules.js';
import type { JudgedCall } from '../../../../src/core/policy/policy-features.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { contentOf } from '../../../../src/features/hooks/native-calls.js';
import { allowedInstead, denialReason } from '../../../../src/features/hooks/gate/hook-reasons.js';
import { codingPolicy, codingRules } from '../../../fixtures/hooks/coding-rules.js';
import { OPTION_TRICKS, PLAIN_COMMANDS, SHELL_TRICKS } from '../../../fixtures/hooks/shell-tricks.js';

const RULES = codingRules();
const shell = (text: string): JudgedCall => ({ tool: 'native.shell', input: { command: contentOf(text) } });
const PATHS = [
  '.env',
  'a/.git/config',
  '/etc/passwd',
  '~/.ssh/id_rsa',
  'turnpike.yaml',
  '.mcp.json',
  '.claude/commands/x.md',
];
const some = (commands: readonly string[]): readonly string[] => commands.filter((_, at) => at % 4 === 0);
const CALLS: readonly JudgedCall[] = [
  ...[
    ...some(SHELL_TRICKS),
    ...some(OPTION_TRICKS),
    ...PLAIN_COMMANDS,
    'git push',
    'npm test && npm publish',
    'cat .env',
  ].map(shell),
  ...PATHS.flatMap((path) => [
    ...['native.read', 'native.write'].map((tool) => ({ tool, input: { path } })),
    { tool: 'native.edit', input: { path, edits: [] } },
    { tool: 'native.patch', input: { paths: ['src/a.ts', path] } },
    { tool: 'native.search', input: { path: '.', globs: [path] } },
    shell(`cat ${path}`),
  ]),
  ...['evil.example', 'docs.rs.evil.example'].map((host) => ({
    tool: 'native.fetch',
    input: { url: `https://${host}/` },
  })),
  { tool: 'native.mcp', input: { server: 'x', tool: 'y' } },
  { tool: 'native.other', input: { name: 'Workflow' } },
];

describe('what a denial lists as allowed', () => {
  const refused = CALLS.filter((call) => ['deny', 'unreadable'].includes(decideCall(RULES, call).decision));

  test('is allowed, needs no approval, and is not what was refused', () => {
    expect(refused.length).toBeGreaterThan(120);
    const wrong = refused.flatMap((call) =>
      allowedInstead(RULES, call).flatMap(({ pattern, options, except, example }) => {
        const isRefused =
          options.length + except.length === 0 &&
          pattern !== null &&
          decideCall({ calls: [grantOf(call.tool, pattern)] }, call).decision === 'allow';
        const decided = decideCall(RULES, example).decision;
        return decided === 'allow' && !isRefused ? [] : [{ call, pattern, decided }];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('follows the part that was refused, which the reason names', () => {
    const trace = { rule_id: 'call.not_allowed', run_id: 'run_1', step_index: 1, error_code: null } as never;
    const policy = codingPolicy();
    const unnamed = refused.filter((call) => !/ Refused: \S/.test(denialReason(trace, call, policy, 'CODING')));
    expect(unnamed).toEqual([]);
    const said = denialReason(trace, shell('git status --porcelain=v9 --exec=x'), policy, 'CODING');
    expect(said).toContain('because its rule lists no `--exec=x`');
    expect(said).toMatch(/for: git status \(options [^)]*--short/);
  });

  test('is nothing where no call rule has refused the call', () => {
    expect(allowedInstead(RULES, shell('git status'))).toEqual([]);
    expect(allowedInstead(RULES, shell('git push'))).toEqual([]);
    expect(allowedInstead({}, shell('git status'))).toEqual([]);
  });
});

/** A rule that allows one pattern, whatever it is a pattern of. */
function grantOf(tool: string, pattern: string): CallRule {
  const member =
    tool === 'native.shell'
      ? 'commands'
      : tool === 'native.fetch'
        ? 'hosts'
        : /mcp|other/.test(tool)
          ? 'names'
          : 'paths';
  return { id: 'one', tools: [tool], decision: 'allow', [member]: [pattern] };
}
