// What is recorded of calls, and what the shipped policy decides by it: words, folders and names as the file system has
// them (0077).

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { projectPath } from '../../../../src/system/files/project-path.js';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { DEFAULT_SECRETS } from '../../../../src/core/contract/policy/secret-patterns.js';
import { DIALECTS } from '../../../../src/features/hooks/dialects.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { recordableCall, type RecordableCall } from '../../../../src/features/hooks/gate/recordable-call.js';
import { callEvent } from '../../../fixtures/hooks/call-event.js';
import { codingRules } from '../../../fixtures/hooks/coding-rules.js';

const RULES = codingRules();
let folder: string;
let project: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnpike-recordable-')));
  project = join(folder, 'project');
  for (const name of ['project/src/deep', 'project/.git', 'outside'])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['project/.env', 'project/src/a.ts', 'outside/x']) writeFileSync(join(folder, name), '');
  for (const [name, target] of [
    ['out', '../outside'],
    ['settings', '.env'],
    ['src/inside', 'deep'],
  ] as const)
    symlinkSync(target, join(project, name));
});
afterAll(() => rmSync(folder, { recursive: true }));

const recorded = (tool: string, input: JsonObject, cwd = project): RecordableCall | null => {
  const dialect = DIALECTS['claude-code'];
  const event = callEvent('claude-code', tool, input, { cwd });
  const read = dialect.readEvent(event);
  if (read?.kind !== 'call') return null;
  const resolve = (path: string, from: string): string => projectPath(path, project, from);
  return recordableCall(event, read, { dialect, secrets: DEFAULT_SECRETS, resolve, project });
};
const decided = (tool: string, input: JsonObject, cwd = project): string => {
  const found = recorded(tool, input, cwd);
  if (found === null) return 'unrecordable';
  const decision = decideCall(RULES, found.call);
  return 'rule' in decision ? `${decision.decision} ${decision.rule?.id ?? '-'}` : decision.decision;
};
const shell = (command: string, cwd?: string): string => decided('Bash', { command }, cwd);

describe('0077: a command', () => {
  test.each([
    ['ls .', 'allow'],
    ['ls ./src', 'allow'],
    ['ls src/inside', 'allow'],
    ['grep -rn x .', 'allow'],
    ['cat src/../src/a.ts', 'allow'],
    ['cat new/file', 'allow'],
    ['ls ..', 'deny outside'],
    ['cat ../outside/x', 'deny outside'],
    ['cat src/../../outside/x', 'deny outside'],
    ['cat out/x', 'deny outside'],
    ['ls out', 'deny outside'],
    [`cat out/${'y/'.repeat(70)}x`, 'deny outside'],
    ['cat ~/x', 'deny outside'],
    ['git diff --no-index out/x src/a.ts', 'deny outside'],
    ['git show HEAD:../x', 'deny outside'],
    ['cat settings', 'deny secrets'],
    ['cat src/../.env', 'deny secrets'],
    ['grep -hf.env src', 'deny secrets'],
    ['cat out/../.env', 'unreadable'],
    ["rg --files -g '.e*'", 'deny secrets'],
    ["find . -name '*.pem'", 'deny secrets'],
    ['git commit -m "See https://docs.example/a: it is done"', 'allow'],
  ])('%s: %s', (command, decision) => {
    expect(shell(command)).toBe(decision);
  });

  test('may name its project by an absolute path', () => {
    expect(shell(`cat ${project}/src/a.ts`)).toBe('allow');
    expect(shell(`ls ${project}`)).toBe('allow');
    expect(shell(`cat ${project}/.env`)).toBe('deny secrets');
    expect(shell(`cat ${project}/../outside/x`)).toBe('deny outside');
  });

  test('is judged in the folder in which it runs', () => {
    expect(shell('cat a.ts', join(project, 'src'))).toBe('allow');
    expect(shell('cat ../.env', join(project, 'src'))).toBe('deny secrets');
    expect(shell('git status', join(folder, 'outside'))).toBe('deny outside');
    expect(shell('make', join(project, 'out'))).toBe('deny outside');
    expect(shell('cat config', join(project, '.git'))).toBe('deny secrets');
  });

  test('is recorded with the paths that differ from its text, and no others', () => {
    const inputOf = (command: string, cwd?: string) => recorded('Bash', { command }, cwd)?.call.input;
    expect(inputOf('cat src/a.ts')).not.toHaveProperty('paths');
    expect(inputOf('cat src/a.ts')).not.toHaveProperty('cwd');
    expect(inputOf('cat settings a')).toMatchObject({ paths: [{ word: 'settings', path: '.env' }] });
    expect(inputOf('cat a.ts', join(project, 'src'))).toMatchObject({ cwd: 'src' });
    expect(inputOf('cat a.ts', join(project, 'src'))).not.toHaveProperty('paths');
  });
});

describe('0077: a search', () => {
  test.each<[string, JsonObject, string]>([
    ['Grep', { pattern: 'x' }, 'allow'],
    ['Grep', { pattern: 'x', path: '.', glob: '.env*' }, 'deny secrets'],
    ['Grep', { pattern: 'x', path: '.git' }, 'deny secrets'],
    ['Grep', { pattern: 'x', glob: '*.ts' }, 'allow'],
    ['Grep', { pattern: 'x', path: 'out' }, 'deny -'],
    ['Glob', { pattern: '**/*.pem' }, 'deny secrets'],
    ['Glob', { pattern: '**/*.ts' }, 'allow'],
  ])('%s %j: %s', (tool, input, decision) => {
    expect(decided(tool, input)).toBe(decision);
  });

  test('without a path is one of the folder in which the client works', () => {
    expect(decided('Grep', { pattern: 'x' }, join(project, '.git'))).toBe('deny secrets');
    expect(decided('Grep', { pattern: 'x' }, join(folder, 'outside'))).toBe('deny -');
  });
});

test('0077: a secret that a link or the folder brings into a path is not recorded', () => {
  const secret = `ghp_${'a1'.repeat(18)}`;
  mkdirSync(join(folder, secret));
  symlinkSync(join(folder, secret), join(project, 'linked'));
  const found = recorded('Read', { file_path: 'linked/x' });
  expect(JSON.stringify(found)).not.toContain(secret);
  expect(found?.call.input).toMatchObject({ redacted: ['path'] });
  expect(decided('Read', { file_path: 'linked/x' })).toBe('unreadable');
  expect(recorded('Read', { file_path: 'x' }, join(folder, secret))).toBeNull();
});
