// Replies in the form of each client, and what no event may do. The real clients accept these forms; those of Cursor
// are from its documentation.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/core/contract/json.js';
import { DIALECTS } from '../../../src/features/hooks/dialects.js';
import { MAY_DEFER } from '../../../src/features/hooks/dialects/claude-code.js';
import { CLIENTS, type Client, type HookAnswer } from '../../../src/features/hooks/hook-event.js';
import { callEvent } from '../../fixtures/hooks/call-event.js';

const ALLOW: HookAnswer = { decision: 'allow', run_id: 'run_a.1' };
const DENY: HookAnswer = { decision: 'deny', reason: 'Not in this lane' };
const PENDING: HookAnswer = { decision: 'pending', reason: 'Approval pending' };
const NONE: HookAnswer = { decision: 'none' };

const specific = (permissionDecision: string, permissionDecisionReason: string): JsonObject => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason },
});

/** The bodies for an allowed, a denied and a pending call, and the exit code of a failure. */
const FORMS: Readonly<Record<Client, readonly [JsonObject | null, JsonObject, JsonObject, 0 | 2]>> = {
  'claude-code': [
    specific('allow', 'Allowed by Turnpike as run_a.1'),
    specific('deny', 'Not in this lane'),
    specific('deny', 'Approval pending'),
    2,
  ],
  codex: [null, specific('deny', 'Not in this lane'), specific('deny', 'Approval pending'), 2],
  'gemini-cli': [
    { decision: 'allow' },
    { decision: 'deny', reason: 'Not in this lane' },
    { decision: 'deny', reason: 'Approval pending' },
    2,
  ],
  opencode: [
    { decision: 'allow', run_id: 'run_a.1' },
    { decision: 'deny', reason: 'Not in this lane' },
    { decision: 'deny', reason: 'Approval pending' },
    2,
  ],
  cline: [
    { cancel: false },
    { cancel: true, errorMessage: 'Not in this lane' },
    { cancel: true, errorMessage: 'Approval pending' },
    0,
  ],
  cursor: [
    { permission: 'allow' },
    { permission: 'deny', user_message: 'Not in this lane', agent_message: 'Not in this lane' },
    { permission: 'deny', user_message: 'Approval pending', agent_message: 'Approval pending' },
    2,
  ],
};

/** Whether a body stops a call. */
const stops = (body: Json): boolean => /"deny"|"defer"|"cancel":true/.test(JSON.stringify(body));

describe('replies', () => {
  test.each(CLIENTS)('U-08: allow, deny and pending in the form of %s', (client) => {
    const event = callEvent(client, 'x', {});
    const [allowed, denied, pending] = FORMS[client];
    const reply = (answer: HookAnswer): unknown => DIALECTS[client].writeReply(answer, event);
    expect(reply(ALLOW)).toEqual({ body: allowed, exit: 0, stderr: '' });
    expect(reply(DENY)).toEqual({ body: denied, exit: 0, stderr: '' });
    expect(reply(PENDING)).toEqual({ body: pending, exit: 0, stderr: '' });
  });

  test.each(CLIENTS)(
    'U-08: a failure stops the call in %s, with a text, whether the event was readable or not',
    (client) => {
      const exit = FORMS[client][3];
      for (const event of [
        callEvent(client, 'x', {}),
        {},
        { hook_event_name: 'New', tool_name: 'x', tool_call: {} },
        null,
      ]) {
        for (const reason of ['the service is away', '', ' ']) {
          const reply = DIALECTS[client].writeFailure(reason, event);
          expect({ exit: reply.exit, stops: stops(reply.body), hasText: reply.stderr.trim() !== '' }).toEqual({
            exit,
            stops: true,
            hasText: true,
          });
        }
      }
    },
  );

  test.each(CLIENTS)('U-08: a call of %s without a decision, or in an unknown event, is stopped', (client) => {
    expect(stops(DIALECTS[client].writeReply(NONE, callEvent(client, 'x', {})).body)).toBe(true);
    const unknown = { hook_event_name: 'New', hookName: 'new', tool_name: 'x', tool_call: {}, tool_input: {} };
    for (const answer of [ALLOW, NONE, DENY]) {
      expect(stops(DIALECTS[client].writeReply(answer, unknown).body)).toBe(true);
    }
  });

  test('U-08: Claude Code defers a pending call only if its configuration says that it may', () => {
    const event = (mayDefer: Json): JsonObject => callEvent('claude-code', 'x', {}, { [MAY_DEFER]: mayDefer });
    const reply = (mayDefer: Json): unknown => DIALECTS['claude-code'].writeReply(PENDING, event(mayDefer)).body;
    expect(reply(true)).toEqual(specific('defer', 'Approval pending'));
    for (const value of [false, 'true', 1, null]) expect(reply(value)).toEqual(specific('deny', 'Approval pending'));
  });

  test('U-08: a question for a permission is denied in its own form', () => {
    const event = { session_id: 's', hook_event_name: 'PermissionRequest', tool_name: 'Bash', tool_input: {} };
    const body = {
      hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'deny', message: 'away' } },
    };
    for (const client of ['claude-code', 'codex'] as const) {
      expect(DIALECTS[client].readEvent(event)).toBeNull();
      expect(DIALECTS[client].writeFailure('away', event)).toEqual({ body, exit: 2, stderr: 'away' });
    }
  });

  test('U-08: an event after a call, or of a session, gets no body, and a failure at it no exit code', () => {
    const head = { session_id: 's', cwd: '/p', agent_id: 'a' };
    const quiet: readonly (readonly [Client, JsonObject])[] = [
      ['claude-code', { ...head, hook_event_name: 'PostToolUse', tool_name: 'x', tool_use_id: 'c' }],
      ['claude-code', { ...head, hook_event_name: 'SubagentStop' }],
      ['claude-code', { ...head, hook_event_name: 'Stop' }],
      ['codex', { ...head, hook_event_name: 'SessionEnd' }],
      ['gemini-cli', { ...head, hook_event_name: 'AfterTool', tool_name: 'x' }],
      ['opencode', { ...head, hook_event_name: 'SessionStart' }],
      ['cline', { hookName: 'session_shutdown', taskId: 's' }],
      ['cursor', { hook_event_name: 'sessionEnd', conversation_id: 's' }],
    ];
    for (const [client, event] of quiet) {
      expect(DIALECTS[client].writeReply(NONE, event)).toEqual({ body: null, exit: 0, stderr: '' });
      expect(DIALECTS[client].writeFailure('away', event)).toEqual({ body: null, exit: 0, stderr: 'away' });
    }
  });

  test('U-08: a session that is refused at its start gets the reason', () => {
    const head = { hook_event_name: 'SessionStart', session_id: 's' };
    const body = (client: Client, event: JsonObject = head): unknown => DIALECTS[client].writeReply(DENY, event).body;
    expect(body('claude-code')).toEqual({ continue: false, stopReason: 'Not in this lane' });
    expect(body('codex')).toEqual({ continue: false, stopReason: 'Not in this lane' });
    expect(body('gemini-cli')).toEqual({ systemMessage: 'Not in this lane' });
    expect(body('opencode')).toEqual({ decision: 'deny', reason: 'Not in this lane' });
    expect(body('cursor', { hook_event_name: 'sessionStart', conversation_id: 's' })).toEqual({
      continue: false,
      user_message: 'Not in this lane',
    });
  });
});

describe('kinds and outcomes', () => {
  const claude = { session_id: 's', tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'c' };
  const patch = '*** Begin Patch\n*** Delete File: a\n*** End Patch';
  const patched = {
    ...claude,
    hook_event_name: 'PostToolUse',
    tool_name: 'apply_patch',
    tool_input: { command: patch },
  };
  const gemini = { session_id: 's', hook_event_name: 'AfterTool', tool_input: { command: 'ls' } };
  const cline = { hookName: 'tool_result', taskId: 's' };
  const cursor = { conversation_id: 's', tool_name: 'Read', tool_input: { file_path: '/a' }, tool_use_id: 'c' };
  const result = { id: 'c', name: 'run_commands', input: 'ls' };
  test.each<[Client, string, JsonObject, string, JsonObject | null]>([
    [
      'claude-code',
      'an interrupted command',
      { ...claude, hook_event_name: 'PostToolUse', tool_response: { interrupted: true } },
      'unknown',
      { interrupted: true },
    ],
    [
      'claude-code',
      'an interrupted failure',
      { ...claude, hook_event_name: 'PostToolUseFailure', is_interrupt: true, error: 'x' },
      'unknown',
      { error: 'x' },
    ],
    ['claude-code', 'a failure without a text', { ...claude, hook_event_name: 'PostToolUseFailure' }, 'failed', null],
    [
      'codex',
      'an MCP tool with an error',
      { ...claude, hook_event_name: 'PostToolUse', tool_name: 'mcp__a__b', tool_response: { isError: true } },
      'failed',
      { isError: true },
    ],
    ['gemini-cli', 'a tool without a response', { ...gemini, tool_name: 'x' }, 'unknown', null],
    [
      'codex',
      'a patch that failed',
      { ...patched, tool_response: 'Exit code: 1\nx' },
      'failed',
      { text: 'Exit code: 1\nx' },
    ],
    [
      'codex',
      'a command that writes such a line',
      { ...claude, hook_event_name: 'PostToolUse', tool_response: 'Exit code: 0\n' },
      'unknown',
      { text: 'Exit code: 0\n' },
    ],
    [
      'gemini-cli',
      'a tool with an empty error',
      { ...gemini, tool_name: 'x', tool_response: { error: null } },
      'done',
      { error: null },
    ],
    [
      'opencode',
      'a command without an exit code',
      { ...claude, hook_event_name: 'PostToolUse', tool_name: 'bash', tool_response: { output: '' } },
      'unknown',
      { output: '' },
    ],
    ['opencode', 'a tool without a response', { ...claude, hook_event_name: 'PostToolUse' }, 'unknown', null],
    ['cline', 'a tool that returned', { ...cline, tool_result: { ...result, output: 'x' } }, 'done', { text: 'x' }],
    [
      'cline',
      'a tool that failed',
      { ...cline, tool_result: { ...result, error: 'x', output: 'y' } },
      'failed',
      { error: 'x' },
    ],
    [
      'cursor',
      'a tool that returned',
      { ...cursor, hook_event_name: 'postToolUse', tool_output: '{}' },
      'done',
      { text: '{}' },
    ],
    [
      'cursor',
      'a command that returned',
      { ...cursor, hook_event_name: 'postToolUse', tool_name: 'Shell', tool_input: { command: 'ls' } },
      'unknown',
      null,
    ],
    [
      'cursor',
      'a tool that failed',
      { ...cursor, hook_event_name: 'postToolUseFailure', error_message: 'x', failure_type: 'error' },
      'failed',
      { text: 'x' },
    ],
    [
      'cursor',
      'a tool that ran too long',
      { ...cursor, hook_event_name: 'postToolUseFailure', failure_type: 'timeout' },
      'unknown',
      null,
    ],
    [
      'cursor',
      'a command after its end',
      { conversation_id: 's', hook_event_name: 'afterShellExecution', command: 'ls', output: 'x' },
      'unknown',
      { text: 'x' },
    ],
  ])('U-08: %s reports %s', (client, _, event, status, result) => {
    expect(DIALECTS[client].readEvent(event)).toMatchObject({ kind: 'outcome', outcome: { status, result } });
  });

  test('U-08: the root conversation of Cline is the session, and only a subagent has a parent', () => {
    const event = callEvent('cline', 'x', {}, { sessionContext: { rootSessionId: 'root' }, agent_id: 'a' });
    expect(DIALECTS.cline.readEvent(event)).toMatchObject({ session: 'root', agent: null, cwd: '/project' });
    expect(DIALECTS.cline.readEvent({ ...event, parent_agent_id: 'p' })).toMatchObject({ session: 'root', agent: 'a' });
    expect(DIALECTS.cline.readEvent({ ...event, parent_agent_id: 'p', agent_id: null })).toBeNull();
  });

  test('U-08: of several folders of a workspace none is the working directory', () => {
    const roots = ['/a', '/b'];
    expect(DIALECTS.cline.readEvent(callEvent('cline', 'x', {}, { workspaceRoots: roots }))?.cwd).toBeNull();
    expect(DIALECTS.cursor.readEvent(callEvent('cursor', 'x', {}, { workspace_roots: roots }))?.cwd).toBeNull();
    expect(DIALECTS.cursor.readEvent(callEvent('cursor', 'x', {}, { cwd: '' }))?.cwd).toBe('/project');
  });

  test('U-08: the end of a subagent needs a subagent, and a known event without a call needs no call', () => {
    const head = { session_id: 's', hook_event_name: 'SubagentStop' };
    expect(DIALECTS.codex.readEvent(head)).toBeNull();
    expect(DIALECTS.codex.readEvent({ ...head, agent_id: 'a' })?.kind).toBe('agent_end');
    expect(DIALECTS.codex.readEvent({ ...head, agent_id: 'a', tool_name: 'Bash' })).toBeNull();
  });
});

describe('hostile events', () => {
  const NAMES = [
    ...['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'PermissionRequest', 'SessionStart', 'SubagentStop', 'Stop'],
    ...['BeforeTool', 'AfterTool', 'tool_call', 'tool_result', 'preToolUse', 'beforeShellExecution', 'New', ''],
  ];
  const TOOLS = ['Bash', 'Edit', 'MultiEdit', 'apply_patch', 'run_shell_command', 'bash', 'run_commands', 'read_files'];
  const MEMBERS = [
    ...['session_id', 'cwd', 'agent_id', 'tool_input', 'tool_use_id', 'tool_response', 'mcp_server', 'mcp_context'],
    ...['command', 'commands', 'args', 'edits', 'file_path', 'path', 'taskId', 'workspaceRoots', 'conversation_id'],
    ...['name', 'input', 'id', '__proto__', 'constructor'],
  ];
  const value = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(null, true, 0, -1.5, '', '/a', '\0', '\ud800', '*** Add File: a', ...TOOLS),
      fc.string({ unit: 'binary' }),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(fc.constantFrom(...MEMBERS), fc.string()), tie('json'), {
        maxKeys: 5,
        noNullPrototype: true,
      }),
    ),
  })).json as fc.Arbitrary<Json>;
  const event = fc.record(
    {
      hook_event_name: fc.oneof(fc.constantFrom(...NAMES), value),
      hookName: fc.oneof(fc.constantFrom(...NAMES), value),
      session_id: fc.oneof(fc.constant('s'), value),
      taskId: fc.oneof(fc.constant('s'), value),
      conversation_id: fc.oneof(fc.constant('s'), value),
      tool_name: fc.oneof(fc.constantFrom(...TOOLS), value),
      tool_input: value,
      tool_use_id: fc.oneof(fc.constant('c'), value),
      tool_call: fc.oneof(fc.record({ id: fc.constant('c'), name: fc.constantFrom(...TOOLS), input: value }), value),
      tool_response: value,
      command: value,
      agent_id: value,
      cwd: value,
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<JsonObject>;

  const NAMING: Readonly<Record<Client, readonly string[]>> = {
    'claude-code': ['tool_name', 'tool_input', 'tool_use_id'],
    codex: ['tool_name', 'tool_input', 'tool_use_id'],
    'gemini-cli': ['tool_name', 'tool_input', 'tool_response'],
    opencode: ['tool_name', 'tool_input', 'tool_use_id'],
    cline: ['tool_call'],
    cursor: ['tool_name', 'tool_input', 'tool_use_id', 'command'],
  };

  test.each(CLIENTS)('U-08: no event of %s throws, and none that names a call passes as something else', (client) => {
    fc.assert(
      fc.property(event, (given) => {
        const read = DIALECTS[client].readEvent(given);
        const namesCall = NAMING[client].some((name) => given[name] !== undefined);
        if (namesCall && read !== null) expect(['call', 'outcome']).toContain(read.kind);
        for (const answer of [ALLOW, DENY, PENDING, NONE]) DIALECTS[client].writeReply(answer, given);
        const failure = DIALECTS[client].writeFailure('away', given);
        if (read === null || read.kind === 'call') {
          const isAfter = read === null && failure.exit === 0 && failure.body === null;
          // An unreadable event after the call has nothing left to stop.
          if (!isAfter) expect(stops(failure.body)).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
