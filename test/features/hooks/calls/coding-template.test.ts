// The call rules of `turnpike init --template coding`, call by call (0061).

import { expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { contentOf, NATIVE_TOOLS } from '../../../../src/features/hooks/native-calls.js';
import type { NativeToolName } from '../../../../src/core/contract/policy/native-tool-names.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { codingPolicy, codingRules } from '../../../fixtures/hooks/coding-rules.js';

const policy = codingPolicy();
const LANE = policy.lanes.get('CODING')!;
const RULES = codingRules();

const decided = (tool: NativeToolName, input: JsonObject): string => {
  const found = decideCall(RULES, { tool, input });
  return 'rule' in found ? `${found.decision} ${found.rule?.id ?? '-'}` : found.decision;
};

test.each([
  ['git status', 'allow'],
  ['git diff HEAD~1 -- src', 'allow'],
  ['git log --oneline -5 | head -3', 'allow'],
  ['git add . && git commit -m "Fix the parser"', 'allow'],
  ['git checkout -b feature', 'allow'],
  ['git checkout -- src', 'deny -'],
  ['git config core.hooksPath x', 'deny -'],
  ['git -c core.pager=x log', 'deny -'],
  ['git reset --hard', 'deny -'],
  ['git push', 'approval publish'],
  ['npm test && git push origin main', 'approval publish'],
  ['npm test 2>&1 | tail -20', 'allow'],
  ['npm run lint', 'allow'],
  ['node --test', 'allow'],
  ['node x.js', 'deny -'],
  ['npx tsc --noEmit', 'allow'],
  ['npx some-package', 'deny -'],
  ['go test ./cmd', 'allow'],
  ['cargo test', 'allow'],
  ['make build', 'allow'],
  ['pytest -q', 'allow'],
  ['npm install left-pad', 'approval install'],
  ['npm ci', 'approval install'],
  ['npm publish', 'approval publish'],
  ['pip install requests', 'approval install'],
  ['cargo add serde', 'approval install'],
  ['go get example.org/x', 'approval install'],
  ['npm install && rm -rf x', 'deny -'],
  ['npm install .env', 'deny secrets'],
  ['ls -la src', 'allow'],
  ['tree -L 2 src', 'allow'],
  // Of `tree`, `-o` writes a file, and `-L` takes no letter behind it.
  ['tree -Lo 2 x', 'deny -'],
  ['tree -Io x y', 'deny -'],
  ['npx jest -t "parses a list"', 'allow'],
  // The last letter may be `-c`, with the configuration to execute.
  ['npx jest -tc=x.js', 'deny -'],
  ['npx vitest -wc=x.js', 'deny -'],
  ['npm test -- -tc=x.js', 'deny -'],
  ['npm run test -- -wc=x.js', 'deny -'],
  ['cat src/a.ts', 'allow'],
  ['cat .env', 'deny secrets'],
  ['cat config/.ENV.production', 'deny secrets'],
  ['cat ~/.ssh/config', 'deny secrets'],
  ['cat /proc/self/environ', 'deny outside'],
  ['cat ~/.bash_history', 'deny outside'],
  ['grep -r token .git', 'deny secrets'],
  ['git add contract/pins.json', 'deny settings'],
  ['git show HEAD:server.key', 'deny secrets'],
  ['find . -delete', 'deny -'],
  ['curl https://example.org', 'deny -'],
  ['rm -rf node_modules', 'deny -'],
  ['turnpike policy pin', 'deny -'],
  ['echo x > src/a.ts', 'unreadable'],
  ['cat $HOME/x', 'unreadable'],
])('0061: the command %j: %s', (command, decision) => {
  expect(decided('native.shell', { command: contentOf(command) })).toBe(decision);
});

test.each<[NativeToolName, JsonObject, string]>([
  ['native.read', { path: 'src/a.ts' }, 'allow'],
  ['native.read', { path: '.' }, 'allow'],
  ['native.read', { path: '/etc/passwd' }, 'deny -'],
  ['native.read', { path: '.env.local' }, 'deny secrets'],
  ['native.read', { path: '/home/anna/.aws/credentials' }, 'deny secrets'],
  ['native.read', { path: '.turnpike/ledger.db' }, 'deny secrets'],
  ['native.read', { path: '.claude/settings.json' }, 'allow'],
  ['native.search', { pattern: 'parse' }, 'allow'],
  ['native.search', { pattern: 'x', path: '/' }, 'deny -'],
  ['native.write', { path: 'src/new.tsx' }, 'allow'],
  ['native.write', { path: 'Makefile' }, 'allow'],
  ['native.write', { path: '/tmp/x' }, 'deny -'],
  ['native.write', { path: '.git/hooks/pre-commit' }, 'deny secrets'],
  ['native.write', { path: '.claude/settings.local.json' }, 'deny settings'],
  ['native.edit', { path: '.cursor/hooks.json' }, 'deny settings'],
  ['native.edit', { path: 'contract/policy/lanes.yaml' }, 'deny settings'],
  ['native.patch', { paths: ['src/a.ts', 'README.md'] }, 'allow'],
  ['native.patch', { paths: ['src/a.ts', '.npmrc'] }, 'deny secrets'],
  ['native.fetch', { url: 'https://docs.python.org/3/' }, 'allow'],
  ['native.fetch', { url: 'https://requests.readthedocs.io/' }, 'allow'],
  ['native.fetch', { url: 'https://example.org/' }, 'deny -'],
  ['native.web_search', { query: 'x' }, 'allow'],
  ['native.mcp', { server: 'any', tool: 'any' }, 'deny -'],
  ['native.other', { name: 'TodoWrite' }, 'allow'],
  ['native.other', { name: 'ToolSearch' }, 'allow'],
  ['native.other', { name: 'Monitor' }, 'deny -'],
  ['native.other', { name: 'update_plan' }, 'allow'],
  ['native.other', { name: 'write_stdin' }, 'deny -'],
])('0061: %s %j: %s', (tool, input, decision) => {
  expect(decided(tool, input)).toBe(decision);
});

test('0061: the lane lists every tool of coding agents, and its role alone has it', () => {
  expect(LANE.allowed_actions.tools?.toSorted()).toEqual(NATIVE_TOOLS.map(({ name }) => name));
  expect(LANE.allowed_callers.roles).toEqual(['CODING_AGENT']);
  expect(policy.actions.has('CALL_TOOL')).toBe(true);
});

/** What switches the gate off, or what runs without a hook in the next session. */
const GATE_FILES = [
  ...['node_modules/turnpike/dist/src/interfaces/cli/main.js', 'packages/a/node_modules/turnpike/package.json'],
  ...['node_modules/.bin/turnpike', 'turnpike.yaml', 'other/policy/lanes.yaml', 'other/pins.json', 'my/policy/x.cedar'],
  ...['.mcp.json', '.claude/settings.local.json', '.claude/commands/a.md', '.claude/skills/s/SKILL.md'],
  ...[
    '.claude/agents/a.md',
    '.claude/hooks/h.sh',
    '.codex/config.toml',
    '.gemini/settings.json',
    '.gemini/commands/a.toml',
  ],
  ...['.opencode/plugin/p.js', 'opencode.jsonc', '.cursor/mcp.json', '.cursor/rules/r.mdc', '.clinerules/hooks/h'],
  ...['CLAUDE.md', 'docs/CLAUDE.local.md', 'AGENTS.md', 'AGENTS.override.md', 'GEMINI.md', '.git/hooks/post-commit'],
];

test.each(GATE_FILES)('what is part of the gate is not written: %s', (path) => {
  for (const spelled of [path, path.toUpperCase(), path.toLowerCase()]) {
    expect(decided('native.write', { path: spelled, content: contentOf('x') })).toMatch(/^deny (?:settings|secrets)$/);
    const edits = [{ old: contentOf('a'), new: contentOf('b') }];
    expect(decided('native.edit', { path: spelled, edits })).toMatch(/^deny (?:settings|secrets)$/);
    expect(decided('native.patch', { paths: ['a.ts', spelled], patch: contentOf('x') })).toMatch(/^deny /);
  }
  expect(decided('native.shell', { command: contentOf(`cp a.ts ${path}`) })).toMatch(/^deny /);
});

test.each([
  "git diff -- ':(top).env'",
  "git log -p -- ':(icase).ENV'",
  "git add ':(literal).env'",
  "grep -r x . --include='.e[[:alpha:]]v'",
  "rg -g '.e[!]]v' x",
  "grep -r x . --include='.@(env)'",
])('a secret file is seen however a program finds its name: %s', (text) => {
  expect(decided('native.shell', { command: contentOf(text) })).toBe('deny secrets');
});

test.each([
  // Each is what letters behind an option may be: half a million characters of globs.
  ['braces behind an option', `ls '-${'{a}'.repeat(330)}'`],
  ['folders behind an option', `ls '-${'a/'.repeat(500)}'`],
  ['words with alternatives', `ls ${Array.from({ length: 80 }, (_, at) => `'${at}${'{a,b}'.repeat(6)}'`).join(' ')}`],
])('a command with too much to compare has no reading: %s', (_, text) => {
  expect(decided('native.shell', { command: contentOf(text) })).toBe('unreadable');
});

test('512 characters behind an option can be read', () => {
  expect(decided('native.shell', { command: contentOf(`git commit -m${'x'.repeat(510)}`) })).toBe('allow');
  expect(decided('native.shell', { command: contentOf(`git commit -m${'x'.repeat(511)}`) })).toBe('unreadable');
});

test.each([
  ['go build -pkgdir x', 'deny -'],
  ['go test -pgo=x ./a', 'deny -'],
  ['go test -p=4 ./a', 'allow'],
  ['go test -p 4 ./a', 'allow'],
  ['find . -mtime +5', 'allow'],
])('an option is no longer one with a value: %s is %s', (text, expected) => {
  expect(decided('native.shell', { command: contentOf(text) })).toBe(expected);
});
