// The tools that the tested versions of coding agents offer to their models (docs/coding-agents-tested.md), and what
// the shipped policy makes of each.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Client } from '../../../src/features/hooks/hook-event.js';
import { DIALECTS } from '../../../src/features/hooks/dialects.js';
import { callEvent } from '../../fixtures/hooks/call-event.js';
import { codingRules } from '../../fixtures/hooks/coding-rules.js';
import { ROOT } from '../../root.js';

const page = readFileSync(join(ROOT, 'docs/coding-agents-tested.md'), 'utf8');
const OFFERED: readonly (readonly [Client, readonly string[]])[] = page
  .split(/^## /m)
  .slice(1)
  .map((section) => [
    section.split(' ')[0] as Client,
    (/^\| the tools that it offers to the model[^|]*\| (.*) \|$/m.exec(section)?.[1] ?? '').split(', '),
  ]);

/** What no dialect reads as a tool of its own, and what is not allowed. */
const DENIED: Readonly<Partial<Record<Client, readonly string[]>>> = {
  // They run scripts or commands, come back later without a session, load instructions of the repository, or change the
  // folder.
  'claude-code': [
    ...['CronCreate', 'CronDelete', 'CronList', 'DeferredToolPlaceholder', 'EnterWorktree', 'ExitWorktree', 'Monitor'],
    ...['ScheduleWakeup', 'Skill', 'Workflow'],
  ],
  // The installation switches the shell off; no hook sees what is typed into it. `web_search` is executed by the
  // service of the model. The others belong to MCP servers.
  codex: [
    ...['exec_command', 'write_stdin', 'web_search'],
    ...['list_mcp_resource_templates', 'list_mcp_resources', 'read_mcp_resource'],
  ],
  // A prompt of `web_fetch` names any address, so only one with `url` is a fetch.
  'gemini-cli': ['activate_skill', 'web_fetch'],
  opencode: ['skill'],
};

/** Tools that a client offers only in a session with a person, or once others are loaded; those of Cline and Cursor. */
const NOT_OFFERED_ALONE: readonly string[] = [
  ...['EnterPlanMode', 'ExitPlanMode', 'AskUserQuestion', 'TodoWrite', 'exit_plan_mode', 'question', 'update_plan'],
  ...['spawn_agent', 'multi_agent_v1wait_agent', 'multi_agent_v1close_agent'],
  ...['attempt_completion', 'ask_followup_question', 'plan_mode_respond'],
];

const planning = codingRules().calls?.find(({ id }) => id === 'planning')?.names ?? [];

/** The name of the tool by which policy decides; null if the client's own name of it counts. */
const nativeOf = (client: Client, tool: string): string | null => {
  const read = DIALECTS[client].readEvent(callEvent(client, tool, {}));
  // An input without members is unreadable for a tool that is known.
  return read?.kind === 'call' && read.call.tool === 'native.other' ? null : 'known';
};

describe.each(OFFERED)('%s', (client, tools) => {
  test('U-08: offers tools that are known', () => {
    expect(tools.length).toBeGreaterThan(5);
    const unknown = tools.filter((tool) => nativeOf(client, tool) === null && !planning.includes(tool));
    expect(unknown.toSorted()).toEqual((DENIED[client] ?? []).toSorted());
  });
});

test('U-08: the shipped policy names no tool that no tested client has', () => {
  const offered = OFFERED.flatMap(([, tools]) => tools);
  expect(planning.filter((name) => !offered.includes(name)).toSorted()).toEqual(NOT_OFFERED_ALONE.toSorted());
});
