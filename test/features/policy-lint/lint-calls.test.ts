// The findings about call rules: their places and texts.

import { describe, expect, test } from '@jest/globals';
import type { CallRule } from '../../../src/core/contract/policy/call-rules.js';
import { NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import { NATIVE_TOOL_NAMES } from '../../../src/core/contract/policy/native-tool-names.js';
import { lintCalls } from '../../../src/features/policy-lint/lint-lanes.js';
import { bareLane, partsWith } from '../../core/policy/bare-policy.js';

const lint = (calls?: CallRule[], tools = ['sandbox.read_file', 'native.shell']): readonly string[] => {
  const lane = bareLane({ allowed_actions: { tools }, ...(calls === undefined ? {} : { calls }) });
  return [...lintCalls(partsWith({ lanes: [lane] }))].map(
    ({ name, pointer, rule, severity, message }) => `${name} ${pointer} ${severity} ${rule}: ${message}`,
  );
};
const rule = (more: Partial<CallRule>): CallRule => ({ id: 'x', tools: ['native.shell'], decision: 'allow', ...more });

describe('0061: a lane', () => {
  test('with a shell has call rules', () => {
    expect(lint()).toEqual([
      'lanes /lanes/0/allowed_actions/tools/1 warning call.unrestricted: lane "WORK" lists native.shell, and has no rules about its commands',
    ]);
    expect(lint([rule({ commands: ['ls'], options: ['-l'] })])).toEqual([]);
    expect(lint(undefined, ['native.read'])).toEqual([]);
    expect(lint(undefined, [])).toEqual([]);
  });
});

describe('0061: a call rule', () => {
  test('does not allow all commands', () => {
    const found = [
      'lanes /lanes/0/calls/1 warning call.any_command: lane "WORK" has the call rule "x", which allows all commands',
    ];
    const first = rule({ id: 'first', commands: ['ls'], options: ['-l'] });
    expect(lint([first, rule({})])).toEqual(found);
    expect(lint([first, rule({ tools: ['native.read', 'native.shell'] })])).toEqual(found);
    expect(lint([first, rule({ decision: 'deny' })])).toEqual([]);
    expect(lint([first, rule({ decision: 'approval' })])).toEqual([]);
    expect(lint([first, rule({ tools: ['native.read'] })])).toEqual([]);
  });

  test.each<[Partial<CallRule>, boolean]>([
    [{ commands: ['ls'] }, true],
    [{ commands: ['ls'], options: ['-l'] }, true],
    [{ options: ['-l'], tools: ['native.read'] }, false],
    [{ commands: ['ls'], options: ['-l'], decision: 'approval' }, true],
    [{ commands: ['ls'], tools: ['native.read'] }, false],
    [{ commands: ['ls'], tools: ['native.read', 'native.shell'] }, true],
    [{ commands: ['ls'], paths: ['a'] }, false],
    [{ commands: ['ls'], paths: ['a'], decision: 'deny' }, true],
    [{ commands: ['ls'], hosts: ['a'], decision: 'deny' }, false],
    [{ paths: ['a'] }, false],
    [{ paths: ['a'], decision: 'deny' }, true],
    [{ paths: ['a'], decision: 'approval' }, false],
    [{ paths: ['a'], tools: ['native.patch'] }, true],
    [{ paths: ['a'], tools: ['native.fetch'], decision: 'deny' }, false],
    [{ hosts: ['a'], tools: ['native.fetch'] }, true],
    [{ names: ['a'], tools: ['native.mcp'] }, true],
    [{ names: ['a'], tools: ['native.other'] }, true],
    [{ names: ['a'], tools: ['native.web_search'] }, false],
    [{ paths: ['a'], tools: ['mail.send'], decision: 'deny' }, false],
    [{ tools: ['mail.send'], decision: 'deny' }, true],
    [{ tools: ['constructor'], names: ['a'] }, false],
  ])('%j can match a part of a call: %s', (more, matches) => {
    const never =
      'lanes /lanes/0/calls/0 error call.never_matches: lane "WORK" has the call rule "x", which matches no part of any call';
    const found = lint([rule(more)], ['mail.send']).filter((line) => line.includes('call.never_matches'));
    expect(found).toEqual(matches ? [] : [never]);
  });

  test('lists the options of commands that it allows, and only of those', () => {
    expect(lint([rule({ commands: ['ls'] })])).toEqual([
      'lanes /lanes/0/calls/0 warning call.any_option: lane "WORK" has the call rule "x", which allows all options of its commands, also those that execute programs or write files',
    ]);
    expect(lint([rule({ commands: ['ls'], decision: 'approval' })])).toEqual([]);
    expect(lint([rule({ commands: ['ls'], options: ['-l'], decision: 'deny' })])).toEqual([
      'lanes /lanes/0/calls/0/options error call.never_matches: lane "WORK" has the call rule "x", which denies whatever its options are: only a rule that allows or asks has options',
    ]);
  });
});

test('0061: the kinds of parts are stated for every tool of coding agents', () => {
  expect(NATIVE_TOOL_NAMES.toSorted()).toEqual(NATIVE_TOOLS.map(({ name }) => name));
});
