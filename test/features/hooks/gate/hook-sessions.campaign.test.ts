// Many sessions of coding agents with parallel calls (0064, G3 of hook-gate.ts): no decision waits for the report of
// another call, every run ends, and the replay of the ledger is equal. `SESSIONS=1000` is for the figure of
// docs/guarantees.md.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import type { Client } from '../../../../src/features/hooks/hook-event.js';
import { Bench } from '../../../fixtures/bench.js';
import { codingEdit } from '../../../fixtures/coding-policy.js';

const SESSIONS = Number(process.env['SESSIONS'] ?? 100);
const CALLS = 8;
const SAFE = { version: '1.0.0', findings: [] };

const callOf = (client: Client, session: string, call: number, cwd: string): JsonObject =>
  client === 'gemini-cli'
    ? {
        session_id: session,
        cwd,
        hook_event_name: 'BeforeTool',
        // Gemini CLI has no ids of calls, and some calls are equal. Of a command it does not tell whether it has
        // succeeded.
        tool_name: 'read_file',
        tool_input: { file_path: `${call % 3}.txt` },
      }
    : {
        session_id: session,
        cwd,
        hook_event_name: 'PreToolUse',
        tool_name: 'Bash',
        tool_input: { command: `echo ${call}` },
        tool_use_id: `${session}-${call}`,
      };
const outcomeOf = (call: JsonObject): JsonObject => ({
  ...call,
  hook_event_name: call['hook_event_name'] === 'BeforeTool' ? 'AfterTool' : 'PostToolUse',
  tool_response:
    call['hook_event_name'] === 'BeforeTool' ? { llmContent: 'ok', returnDisplay: 'ok' } : { stdout: 'ok' },
});

test('0064: sessions with parallel calls', async () => {
  const bench = await Bench.open({ edit: codingEdit, hooks: true });
  const project = join(bench.folder, 'project');
  mkdirSync(project);
  const gate = bench.turnpike.hooks;
  if (gate === null) throw new Error('no gate');
  const callerOf = (client: Client) =>
    ({ actor: client, person: 'dana', role: 'CODING_AGENT', lane: 'CODING', case: 'project-1', project }) as const;

  const runSession = async (number: number): Promise<void> => {
    const client: Client = number % 3 === 0 ? 'gemini-cli' : 'claude-code';
    const session = `session-${number}`;
    const ask = (event: JsonObject, check?: typeof SAFE) => gate.answer(client, event, callerOf(client), check);
    await ask({ session_id: session, cwd: project, hook_event_name: 'SessionStart' }, SAFE);
    const calls = Array.from({ length: CALLS }, (_, call) => callOf(client, session, call, project));
    // Every decision comes before any report.
    const answers = await Promise.all(calls.map((call) => ask(call)));
    for (const answer of answers) expect(answer).toMatchObject({ reply: { exit: 0 } });
    expect(JSON.stringify(answers)).not.toMatch(/deny|pending|could not/);
    // The client never reports the last one.
    await Promise.all(
      calls
        .slice(1)
        .reverse()
        .map((call) => ask(outcomeOf(call))),
    );
    await ask({ session_id: session, cwd: project, hook_event_name: 'SessionEnd', reason: 'exit' });
  };
  const numbers = Array.from({ length: SESSIONS }, (_, number) => number);
  for (let from = 0; from < SESSIONS; from += 50) await Promise.all(numbers.slice(from, from + 50).map(runSession));

  const counts = new Map<string, number>();
  for await (const { runs } of bench.turnpike.ledger.treesAfter(-1)) {
    for (const { run_kind, outcome, status } of runs) {
      const key = `${run_kind} ${outcome ?? status}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  expect(Object.fromEntries(counts)).toEqual({
    'orchestrator completed:end_of_input': SESSIONS,
    'agent completed:end_of_input': SESSIONS,
    'tool_gateway completed': SESSIONS * (CALLS - 1),
    'tool_gateway failed:OUTCOME_UNKNOWN': SESSIONS,
  });
  // Closing verifies the ledger, and compares its replay.
  await bench.close();
}, 900_000);
