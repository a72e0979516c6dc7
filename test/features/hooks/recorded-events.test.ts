// Events that real clients have sent: Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0, and opencode 1.18.33
// through a plugin. An expected line is: kind, `sub` for a subagent, tool, `-` for a call without an id, outcome.

import { describe, expect, test } from '@jest/globals';
import { Check } from 'typebox/value';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { DIALECTS } from '../../../src/features/hooks/dialects.js';
import type { HookEvent } from '../../../src/features/hooks/hook-event.js';
import { NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import { readFixture } from '../../fixtures/hooks/read-fixture.js';

const RECORDED = ['claude-code', 'codex', 'gemini-cli', 'opencode'] as const;

const read = (client: (typeof RECORDED)[number]): readonly (HookEvent | null)[] =>
  readFixture(client).map((event) => DIALECTS[client].readEvent(event));

const lineOf = (event: HookEvent | null): string => {
  if (event === null) return 'unreadable';
  const words = [event.kind, event.agent === null ? '' : 'sub'];
  if ('call' in event) words.push(event.call.tool.replace('native.', ''), event.call.call_id === null ? '-' : '');
  if ('outcome' in event) words.push(event.outcome.status);
  return words.filter((word) => word !== '').join(' ');
};

const inputs = (client: (typeof RECORDED)[number], tool: string): JsonObject[] =>
  read(client).flatMap((event) => (event?.kind === 'call' && event.call.tool === tool ? [event.call.input] : []));

const EXPECTED: Readonly<Record<(typeof RECORDED)[number], string>> = {
  'claude-code': `session_start; other; call shell; outcome shell done; call shell; call shell; call read;
    outcome shell failed; outcome read done; outcome shell done; call write; outcome write done; call edit;
    outcome edit done; call mcp; outcome mcp done; call fetch; outcome fetch failed; call shell;
    outcome shell unknown; call other; other sub; outcome other unknown; call sub shell; other;
    outcome sub shell done; agent_end sub; other; other; session_end`,
  codex: `session_start; other; call shell; outcome shell unknown; call shell; call shell; outcome shell unknown;
    outcome shell unknown; call shell; call mcp; outcome mcp done; call patch; outcome patch done; call read; call other;
    outcome other unknown; other sub; other sub; call other; call sub shell; outcome sub shell unknown; agent_end sub;
    outcome other unknown; other; session_end`,
  'gemini-cli': `session_start; other; call shell -; outcome shell - unknown; call shell -; call shell -; call read -;
    outcome shell - unknown; outcome shell - unknown; outcome read - done; call write -; outcome write - done;
    call edit -; outcome edit - done; call search -; call search -; call read -; call mcp -; outcome mcp - done;
    outcome search - done; outcome read - done; outcome search - done; call other -; outcome other - failed;
    call web_search -; outcome web_search - done; call read -; outcome read - failed; other; call other -; call read -;
    outcome read - done; outcome other - done; other; session_end`,
  opencode: `call shell; outcome shell done; call shell; call shell; call read; outcome shell failed;
    outcome shell done; outcome read done; call write; outcome write done; call edit; outcome edit done; call other;
    outcome other done; call search; call search; call mcp; outcome mcp done; call fetch; outcome fetch done;
    call other; outcome other done; call other; call sub shell; outcome sub shell done; outcome other done`,
};

describe('events of real clients', () => {
  test.each(RECORDED)('U-08: every recorded event of %s is read as what it was', (client) => {
    expect(read(client).map(lineOf)).toEqual(EXPECTED[client].split(/;\s+/));
  });

  test.each(RECORDED)('U-08: every recorded call of %s conforms to the schema of its tool', (client) => {
    for (const event of read(client)) {
      if (event === null || !('call' in event)) continue;
      const tool = NATIVE_TOOLS.find(({ name }) => name === event.call.tool);
      expect(tool === undefined ? false : Check(tool.input, event.call.input)).toBe(true);
    }
  });

  test.each(RECORDED)('U-08: an outcome of %s repeats the call that it belongs to', (client) => {
    const calls = new Set<string>();
    for (const event of read(client)) {
      if (event?.kind === 'call') calls.add(JSON.stringify([event.session, event.agent, event.call]));
      if (event?.kind === 'outcome') {
        expect(calls).toContain(JSON.stringify([event.session, event.agent, event.call]));
      }
    }
  });

  test('U-08: a call of an MCP tool has the server and the tool, whatever the client calls it', () => {
    for (const client of RECORDED) {
      expect(inputs(client, 'native.mcp')).toEqual([
        { server: 'trivial', tool: 'note', input: expect.objectContaining({ text: '{"text":"n"}' }) },
      ]);
    }
  });

  test('U-08: a command that names a folder of its own keeps it: in its event, or in its input', () => {
    const folder = (client: 'codex' | 'opencode'): readonly unknown[] =>
      read(client).flatMap((event) =>
        event?.kind === 'call' && JSON.stringify(event.call.input).includes('sleep 0.2')
          ? [event.call.input['cwd'] ?? event.cwd]
          : [],
      );
    expect(folder('codex')).toEqual(['/']);
    expect(folder('opencode')).toEqual(['/project/sub']);
  });

  test('U-08: the calls of a subagent have the session of the main agent', () => {
    for (const client of ['claude-code', 'codex', 'opencode'] as const) {
      const sessions = new Set(read(client).map((event) => event?.session));
      expect(sessions.size).toBe(1);
      expect(read(client).some((event) => event !== null && event.agent !== null)).toBe(true);
    }
  });
});
