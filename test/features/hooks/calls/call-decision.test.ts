// Decisions by call rules (0061).

import { describe, expect, test } from '@jest/globals';
import type { CallRule } from '../../../../src/core/contract/policy/call-rules.js';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { contentOf } from '../../../../src/features/hooks/native-calls.js';
import { callApprovalSubject } from '../../../../src/core/policy/policy-features.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import '../../../fixtures/call-rules.js';

const CALLS: CallRule[] = [
  {
    id: 'secrets',
    tools: ['native.shell', 'native.read', 'native.write', 'native.patch'],
    decision: 'deny',
    paths: ['**/.env*', '**/.git', '**/.git/**'],
  },
  { id: 'files', tools: ['native.read', 'native.search', 'native.patch'], decision: 'allow', paths: ['**'] },
  { id: 'sources', tools: ['native.write'], decision: 'allow', paths: ['src/**'] },
  { id: 'status', tools: ['native.shell'], decision: 'allow', commands: ['git status', 'cat', 'cd'] },
  { id: 'publish', tools: ['native.shell'], decision: 'approval', commands: ['git push'] },
  { id: 'docs', tools: ['native.fetch'], decision: 'allow', hosts: ['docs.example', '*.docs.example'] },
  { id: 'issues', tools: ['native.mcp'], decision: 'allow', names: ['tracker/get_*'] },
  { id: 'any', tools: ['billing.charge'], decision: 'allow' },
];
const decide = (tool: string, input: JsonObject) => decideCall({ calls: CALLS }, { tool, input });
const shell = (command: string, more: JsonObject = {}) =>
  decide('native.shell', { command: contentOf(command), ...more });
const idOf = (decided: ReturnType<typeof decideCall>): string =>
  'rule' in decided ? `${decided.decision} ${decided.rule?.id ?? '-'}` : decided.decision;

describe('0061: call rules decide', () => {
  test.each([
    ['git status', 'allow'],
    ['git status && git status -s', 'allow'],
    ['git stat', 'deny -'],
    ['git status; rm -rf /', 'deny -'],
    ['git push', 'approval publish'],
    ['git status && git push --force', 'approval publish'],
    ['git push; rm x', 'deny -'],
    ['cat .env', 'deny secrets'],
    ['cat ./a/../.ENV', 'deny secrets'],
    ['cat ../.env.local', 'deny secrets'],
    ['cat --file=.env', 'deny secrets'],
    ['cat -f.env', 'deny secrets'],
    ['cat HEAD:.env', 'deny secrets'],
    ['cat "../../x/.git/config"', 'deny secrets'],
    ['cd .git && cat config', 'deny secrets'],
    ['cat .en*', 'unreadable'],
    ['cat $X', 'unreadable'],
  ])('%s: %s', (command, decision) => {
    expect(idOf(shell(command))).toBe(decision);
  });

  test('a command that is recorded by its beginning only is unreadable', () => {
    expect(idOf(shell(`cat ${'a'.repeat(9_000)}`))).toBe('unreadable');
    const command = { ...contentOf('git status'), bytes: 11 };
    expect(idOf(decide('native.shell', { command }))).toBe('unreadable');
  });

  test.each<[string, JsonObject, string]>([
    ['native.read', { path: 'src/a.ts' }, 'allow'],
    ['native.read', { path: '.' }, 'allow'],
    ['native.read', { path: 'x/.env' }, 'deny secrets'],
    ['native.read', { path: './.env' }, 'unreadable'],
    ['native.read', { path: 'a/../b' }, 'unreadable'],
    ['native.read', { path: 'a//b' }, 'unreadable'],
    ['native.read', { path: 'a\\b' }, 'unreadable'],
    ['native.read', { path: 5 }, 'unreadable'],
    ['native.search', { pattern: 'x' }, 'allow'],
    ['native.write', { path: 'src/a.ts' }, 'allow'],
    ['native.write', { path: '/etc/passwd' }, 'deny -'],
    ['native.patch', { paths: ['a', '.git/config'] }, 'deny secrets'],
    ['native.patch', { paths: ['a', 'b'] }, 'allow'],
    ['native.patch', {}, 'unreadable'],
    ['native.fetch', { url: 'https://docs.example/a?b#c' }, 'allow'],
    ['native.fetch', { url: 'https://api.DOCS.example:8443' }, 'allow'],
    ['native.fetch', { url: 'https://xdocs.example/' }, 'deny -'],
    ['native.fetch', { url: 'https://docs.example@evil.example/' }, 'unreadable'],
    ['native.fetch', { url: 'https://docs.example\\@evil.example/' }, 'unreadable'],
    ['native.fetch', { url: 'file:///etc/passwd' }, 'unreadable'],
    ['native.mcp', { server: 'tracker', tool: 'get_issue' }, 'allow'],
    ['native.mcp', { server: 'tracker', tool: 'delete_issue' }, 'deny -'],
    ['native.mcp', { server: 'other/tracker', tool: 'get_issue' }, 'unreadable'],
    ['native.other', { name: 'Task' }, 'deny -'],
    ['billing.charge', { amount: 5 }, 'allow'],
    ['billing.refund', { amount: 5 }, 'deny -'],
  ])('%s %j: %s', (tool, input, decision) => {
    expect(idOf(decide(tool, input))).toBe(decision);
  });

  test('the approval rule of a call is that of its call rule', () => {
    expect(
      callApprovalSubject({ calls: CALLS }, { tool: 'native.shell', input: { command: contentOf('git push') } }),
    ).toBe('call.publish');
    expect(
      callApprovalSubject({ calls: CALLS }, { tool: 'native.shell', input: { command: contentOf('git status') } }),
    ).toBeNull();
  });

  test('a lane without call rules allows', () => {
    expect(decideCall({}, { tool: 'native.shell', input: {} })).toEqual({ decision: 'allow' });
  });
});

describe('0077: call rules decide by what the client executes', () => {
  test.each<[string, JsonObject, string]>([
    ['cat .', {}, 'allow'],
    ['cat ./', {}, 'allow'],
    ['cat -hf.env', {}, 'deny secrets'],
    ['cat -aaaaaaaaaaaaaaaaaaaaaaaaf.env', {}, 'deny secrets'],
    [`cat -${'a'.repeat(3_000)}`, {}, 'unreadable'],
    ['cat x', { paths: [{ word: 'x', path: '.env' }] }, 'deny secrets'],
    ['cat x', { paths: [{ word: 'x', path: '../.env' }] }, 'unreadable'],
    ['cat x', { paths: [{ word: 'x' }] }, 'unreadable'],
    ['cat x', { paths: 'x' }, 'unreadable'],
    ['cat config', { cwd: '.git' }, 'deny secrets'],
    ['cat config', { cwd: 'a/../.git' }, 'unreadable'],
    ["cat --include='.e*'", {}, 'deny secrets'],
    ["cat --include='*.ts'", {}, 'allow'],
    ['cat --exclude-dir=.git', {}, 'allow'],
    ['cat file:///x/.env', {}, 'deny secrets'],
    ['cat file://.env', {}, 'deny secrets'],
    ['git status', { redacted: ['command'], original_sha256: 'x' }, 'unreadable'],
    ['git status', { redacted: ['cwd'] }, 'unreadable'],
    ['git status', { redacted: 'cwd' }, 'unreadable'],
  ])('%s with %j: %s', (command, more, decision) => {
    expect(idOf(shell(command, more))).toBe(decision);
  });

  test.each<[string, JsonObject, string]>([
    ['native.read', { path: 'a', redacted: ['path'] }, 'unreadable'],
    ['native.write', { path: 'src/a', redacted: ['content'] }, 'allow'],
    ['native.write', { path: 'src/a', redacted: ['content', 'path'] }, 'unreadable'],
    ['native.patch', { paths: ['a'], redacted: ['patch'] }, 'allow'],
    ['native.mcp', { server: 'tracker', tool: 'get_x', redacted: ['input'] }, 'allow'],
    ['native.mcp', { server: 'tracker', tool: 'get_x', redacted: ['tool'] }, 'unreadable'],
    ['native.fetch', { url: 'https://docs.example/', redacted: ['url'] }, 'unreadable'],
  ])('%s %j: %s', (tool, input, decision) => {
    expect(idOf(decide(tool, input))).toBe(decision);
  });
});

describe('0061: the options of a rule', () => {
  const rule = (options: string[]): CallRule => ({
    ...{ id: 'x', tools: ['native.shell'], decision: 'allow', commands: ['p', 'p run'], options },
  });
  const allows = (options: string[], command: string): boolean =>
    decideCall({ calls: [rule(options)] }, { tool: 'native.shell', input: { command: contentOf(command) } })
      .decision === 'allow';

  test.each<[string[], string, boolean]>([
    [['-l -a'], 'p -l', true],
    [['-l -a'], 'p -la x -a', true],
    [['-l -a'], 'p -lb', false],
    [['-l -a'], 'p x -b', false],
    [['-l', '--all --color='], 'p --all', true],
    [['--all'], 'p --al', false],
    [['--all'], 'p --all=x', false],
    [['--color='], 'p --color=always', true],
    [['--color='], 'p --color always', true],
    [['--color='], 'p --colors=x', false],
    [['--color=auto'], 'p --color=evil', false],
    [['-n='], 'p -n5', true],
    [['-n= -l'], 'p -ln5', true],
    [['-n= -l'], 'p -nx', true],
    [['-l -n='], 'p -lx5', false],
    [['-#'], 'p -20', true],
    [['-#'], 'p -2x', false],
    [['-l'], 'p -- -x', false],
    [['-l --'], 'p -- -x', false],
    [['-l --'], 'p -- x -l', true],
    [['-l'], 'p -', true],
    [['-l'], 'p @file', false],
    [['-l'], 'p +x', false],
    [['-l +='], 'p +x', true],
    [['-run= -e -x -c'], 'p -run=T -x', true],
    [['-run= -e -x -c'], 'p -exec', false],
    [['-run= -e -x -c'], 'p -exec=/tmp/evil', false],
    [['-l'], 'p run -l', true],
    [['-l'], 'p -l run', true],
    [['-l'], "p '- text'", false],
  ])('%j allow %s: %s', (options, command, isAllowed) => {
    expect(allows(options, command)).toBe(isAllowed);
  });
});
