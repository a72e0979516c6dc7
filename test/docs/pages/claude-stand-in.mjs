#!/usr/bin/env node
// In place of Claude Code on the page about it: runs the hooks of the project's settings for a fixed list of calls, and
// executes nothing. A call that is not allowed because it waits for an approval is repeated.
// `npm run campaign -- agents` tests the real program.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const { hooks } = JSON.parse(readFileSync('.claude/settings.json', 'utf8'));
const common = { session_id: 'a1b2c3d4', cwd: process.cwd(), permission_mode: 'default' };
const CALLS = [
  ['Bash', { command: 'git status' }],
  ['Write', { file_path: `${process.cwd()}/.env`, content: 'PASSWORD=1' }],
  ['Bash', { command: 'npm publish' }],
];

/** The answer of the hook of an event; null for none. */
function ask(hook_event_name, more = {}) {
  const [{ command }] = hooks[hook_event_name][0].hooks;
  const input = JSON.stringify({ ...common, ...more, hook_event_name });
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { input, encoding: 'utf8' });
  if (status !== 0) console.log(stderr);
  return stdout === '' ? null : JSON.parse(stdout).hookSpecificOutput;
}

ask('SessionStart', { source: 'startup' });
console.log('Welcome');
process.once('SIGINT', () => {
  ask('SessionEnd', { reason: 'exit' });
  process.exit(0);
});
for (const [n, [tool_name, tool_input]] of CALLS.entries()) {
  const call = { tool_name, tool_input, tool_use_id: `toolu_${n}` };
  let answer = ask('PreToolUse', call);
  while (answer?.permissionDecisionReason?.includes('approval pending')) {
    await setTimeout(200);
    answer = ask('PreToolUse', call);
  }
  if (answer?.permissionDecision === 'allow')
    ask('PostToolUse', { ...call, tool_response: { stdout: '', stderr: '' } });
}
await setTimeout(600_000);
