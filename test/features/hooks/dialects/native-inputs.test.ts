// How the tools of each client are read. An expected value of null is a call that is denied, because it is unreadable.

import { describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { Json, JsonObject } from '../../../../src/core/contract/json.js';
import { DIALECTS } from '../../../../src/features/hooks/dialects.js';
import type { Client, NativeCall } from '../../../../src/features/hooks/hook-event.js';
import { EDITS_MAX, PATH_CHARS_MAX, TEXT_CHARS_MAX } from '../../../../src/features/hooks/native-calls.js';
import { callEvent } from '../../../fixtures/hooks/call-event.js';

const read = (client: Client, tool: string, input: Json, more: JsonObject = {}): NativeCall | null => {
  const event = DIALECTS[client].readEvent(callEvent(client, tool, input, more));
  return event?.kind === 'call' ? event.call : null;
};

const text = (value: string): JsonObject => ({ text: value, sha256: sha256(value), bytes: Buffer.byteLength(value) });
const shell = (command: string, cwd?: string): JsonObject => ({
  command: text(command),
  ...(cwd === undefined ? {} : { cwd }),
});
const edit = (path: string, ...pairs: readonly (readonly [string, string])[]): JsonObject => ({
  path,
  edits: pairs.map(([before, after]) => ({ old: text(before), new: text(after) })),
});

type Row = readonly [client: Client, tool: string, input: Json, native: string | null, expected?: JsonObject];
const PATCH = '*** Begin Patch\n*** Update File: a.ts\n*** Move to: b.ts\n@@\n-x\n+y\n*** End Patch';

const ROWS: readonly Row[] = [
  ['claude-code', 'Bash', { command: 'ls' }, 'shell', shell('ls')],
  ['claude-code', 'Bash', { command: ['ls'] }, null],
  ['claude-code', 'Bash', { command: '' }, null],
  ['claude-code', 'bash', { command: 'ls' }, 'other'],
  ['claude-code', 'Read', { file_path: '/a' }, 'read', { path: '/a' }],
  ['claude-code', 'Read', { file_path: '/a\0b' }, null],
  ['claude-code', 'Read', { path: '/a' }, null],
  ['claude-code', 'NotebookRead', { notebook_path: '/a.ipynb' }, 'read', { path: '/a.ipynb' }],
  ['claude-code', 'LS', { path: '/a' }, 'read', { path: '/a' }],
  ['claude-code', 'Glob', { pattern: '**/*.ts' }, 'search', { pattern: '**/*.ts', globs: ['**/*.ts'] }],
  ['claude-code', 'Glob', { pattern: '{src,test}/*' }, 'search', { pattern: '{src,test}/*', globs: ['{src,test}/*'] }],
  ['claude-code', 'Glob', { pattern: '/etc/*' }, 'other'],
  ['claude-code', 'Glob', { pattern: 'a/../../b' }, 'other'],
  ['claude-code', 'Glob', { pattern: '{/etc,a}/*' }, 'other'],
  ['claude-code', 'Glob', { pattern: 'C:/a' }, 'other'],
  ['claude-code', 'Grep', { pattern: '../x', path: 'src' }, 'search', { pattern: '../x', path: 'src' }],
  ['claude-code', 'Grep', { pattern: 'x', path: 7 }, null],
  ['claude-code', 'Grep', { pattern: 'x', glob: '.env*' }, 'search', { pattern: 'x', globs: ['.env*'] }],
  ['claude-code', 'Grep', { pattern: 'x', glob: ['a', 7] }, null],
  ['claude-code', 'Grep', { pattern: 'x', type: 'js', '-n': true, output_mode: 'content' }, 'search', { pattern: 'x' }],
  ['claude-code', 'Grep', { pattern: 'x', new_member: 'a' }, 'search', { pattern: 'x', globs: ['a'] }],
  ['gemini-cli', 'grep_search', { pattern: 'x', include_pattern: '.e*' }, 'search', { pattern: 'x', globs: ['.e*'] }],
  ['gemini-cli', 'search_file_content', { pattern: 'x', include: '.e*' }, 'search', { pattern: 'x', globs: ['.e*'] }],
  ['opencode', 'grep', { pattern: 'x', include: '*.{pem,ts}' }, 'search', { pattern: 'x', globs: ['*.{pem,ts}'] }],
  ['cursor', 'Grep', { pattern: 'x', glob: '.env' }, 'search', { pattern: 'x', globs: ['.env'] }],
  ['claude-code', 'Write', { file_path: '/a', content: '' }, 'write', { path: '/a', content: text('') }],
  ['claude-code', 'Write', { file_path: '/a' }, null],
  ['claude-code', 'Edit', { file_path: '/a', old_string: 'x', new_string: 'y' }, 'edit', edit('/a', ['x', 'y'])],
  [
    'claude-code',
    'MultiEdit',
    { file_path: '/a', edits: [{ old_string: 'x', new_string: 'y' }] },
    'edit',
    edit('/a', ['x', 'y']),
  ],
  ['claude-code', 'MultiEdit', { file_path: '/a', edits: [] }, null],
  ['claude-code', 'MultiEdit', { file_path: '/a', edits: [null] }, null],
  ['claude-code', 'NotebookEdit', { notebook_path: '/a', new_source: 'x' }, 'edit', edit('/a', ['', 'x'])],
  ['claude-code', 'NotebookEdit', { notebook_path: '/a', edit_mode: 'delete' }, 'edit', edit('/a', ['', ''])],
  ['claude-code', 'WebFetch', { url: 'https://a.example/', prompt: 'p' }, 'fetch', { url: 'https://a.example/' }],
  ['claude-code', 'WebSearch', { query: 'q' }, 'web_search', { query: 'q' }],
  ['claude-code', 'Agent', { prompt: 'p' }, 'other', { name: 'Agent', input: text('{"prompt":"p"}') }],
  ['claude-code', 'constructor', {}, 'other', { name: 'constructor', input: text('{}') }],
  ['claude-code', 'mcp__a__b', {}, 'mcp', { server: 'a', tool: 'b', input: text('{}') }],
  ['claude-code', 'mcp__a__b__c', {}, 'other'],
  ['claude-code', 'mcp__a___b', {}, 'other'],
  ['claude-code', 'mcp__a', {}, 'other'],
  ['codex', 'Bash', { command: 'ls' }, 'shell', shell('ls')],
  ['codex', 'apply_patch', { command: PATCH }, 'patch', { paths: ['a.ts', 'b.ts'], patch: text(PATCH) }],
  ['codex', 'apply_patch', { command: 'no patch' }, null],
  ['codex', 'apply_patch', { input: PATCH }, null],
  ['codex', 'view_image', { path: '/a.png' }, 'read', { path: '/a.png' }],
  ['codex', 'mcp__a__b', {}, 'mcp', { server: 'a', tool: 'b', input: text('{}') }],
  ['codex', 'multi_agent_v1wait_agent', {}, 'other'],
  ['gemini-cli', 'run_shell_command', { command: 'ls', dir_path: 'a' }, 'shell', shell('ls', 'a')],
  ['gemini-cli', 'run_shell_command', { command: 'ls', dir_path: 'a', directory: 'b' }, null],
  ['gemini-cli', 'run_shell_command', { command: 'ls', dir_path: 3 }, null],
  ['gemini-cli', 'read_file', { absolute_path: '/a' }, 'read', { path: '/a' }],
  ['gemini-cli', 'read_file', { absolute_path: '/a', file_path: '/b' }, null],
  ['gemini-cli', 'read_many_files', { include: ['*'] }, 'other'],
  ['gemini-cli', 'list_directory', { dir_path: '.' }, 'read', { path: '.' }],
  ['gemini-cli', 'glob', { pattern: '*', dir_path: 'a' }, 'search', { pattern: '*', path: 'a', globs: ['*'] }],
  ['gemini-cli', 'search_file_content', { pattern: 'x', path: 'a' }, 'search', { pattern: 'x', path: 'a' }],
  ['gemini-cli', 'write_file', { file_path: 'a', content: 'x' }, 'write', { path: 'a', content: text('x') }],
  ['gemini-cli', 'replace', { file_path: 'a', old_string: 'x', new_string: 'y' }, 'edit', edit('a', ['x', 'y'])],
  ['gemini-cli', 'web_fetch', { url: 'https://a.example/' }, 'fetch', { url: 'https://a.example/' }],
  ['gemini-cli', 'web_fetch', { url: 'https://a.example/', prompt: 'b.example' }, 'other'],
  ['gemini-cli', 'google_web_search', { query: 'q' }, 'web_search', { query: 'q' }],
  ['gemini-cli', 'mcp_a_b', {}, 'other'],
  ['opencode', 'bash', { command: 'ls', workdir: '/a' }, 'shell', shell('ls', '/a')],
  ['opencode', 'read', { filePath: '/a' }, 'read', { path: '/a' }],
  ['opencode', 'list', {}, 'read', { path: '.' }],
  ['opencode', 'glob', { pattern: '~/*' }, 'other'],
  ['opencode', 'grep', { pattern: 'x' }, 'search', { pattern: 'x' }],
  ['opencode', 'write', { filePath: '/a', content: 'x' }, 'write', { path: '/a', content: text('x') }],
  ['opencode', 'edit', { filePath: '/a', oldString: 'x', newString: 'y' }, 'edit', edit('/a', ['x', 'y'])],
  [
    'opencode',
    'multiedit',
    { filePath: '/a', edits: [{ oldString: 'x', newString: 'y' }] },
    'edit',
    edit('/a', ['x', 'y']),
  ],
  ['opencode', 'apply_patch', { patchText: PATCH }, 'patch', { paths: ['a.ts', 'b.ts'], patch: text(PATCH) }],
  ['opencode', 'patch', { patchText: '*** Add File: a:b' }, null],
  ['opencode', 'webfetch', { url: 'https://a.example/' }, 'fetch', { url: 'https://a.example/' }],
  ['opencode', 'websearch', { query: 'q' }, 'web_search', { query: 'q' }],
  ['opencode', 'server_tool', {}, 'other'],
  ['cline', 'run_commands', { commands: ['ls', 'pwd'] }, 'shell', shell('ls\npwd')],
  ['cline', 'run_commands', { commands: ['ls', 'pwd\nrm x'] }, null],
  ['cline', 'run_commands', { commands: ['ls', ''] }, null],
  ['cline', 'run_commands', { commands: [] }, null],
  ['cline', 'run_commands', { commands: ['ls\nrm x'] }, 'shell', shell('ls\nrm x')],
  ['cline', 'run_commands', 'ls', 'shell', shell('ls')],
  ['cline', 'run_commands', { cmd: 'ls' }, 'shell', shell('ls')],
  ['cline', 'run_commands', { command: 'rm', args: ['-r', "a'; b"] }, 'shell', shell(String.raw`rm -r 'a'\''; b'`)],
  ['cline', 'run_commands', { commands: [{ command: 'a b', args: [] }] }, 'shell', shell("'a b'")],
  ['cline', 'run_commands', { commands: [{ command: 'a', args: 'x' }] }, null],
  ['cline', 'run_commands', { command: 'ls', commands: ['rm x'] }, null],
  ['cline', 'run_commands', { commands: ['rm x'], command: 'ls', args: [] }, null],
  ['cline', 'read_files', { files: [{ path: '/a' }] }, 'read', { path: '/a' }],
  ['cline', 'read_files', { files: ['/a'] }, 'read', { path: '/a' }],
  ['cline', 'read_files', '/a', 'read', { path: '/a' }],
  ['cline', 'read_files', { files: ['/a', '/b'] }, 'other'],
  ['cline', 'read_files', { files: [] }, null],
  ['cline', 'read_files', { path: '/a', files: ['/b'] }, null],
  ['cline', 'search_codebase', { queries: ['x', 'y'] }, 'search', { pattern: 'x\ny' }],
  ['cline', 'search_codebase', { queries: [] }, null],
  ['cline', 'editor', { path: '/a', new_text: 'x' }, 'write', { path: '/a', content: text('x') }],
  ['cline', 'editor', { path: '/a', old_text: 'x', new_text: 'y' }, 'edit', edit('/a', ['x', 'y'])],
  ['cline', 'editor', { path: '/a', insert_line: 1, new_text: 'y' }, 'edit', edit('/a', ['', 'y'])],
  ['cline', 'apply_patch', { input: PATCH }, 'patch', { paths: ['a.ts', 'b.ts'], patch: text(PATCH) }],
  ['cline', 'fetch_web_content', { requests: [{ url: 'https://a.example/' }] }, 'fetch', { url: 'https://a.example/' }],
  ['cline', 'fetch_web_content', { requests: [{}, {}] }, 'other'],
  ['cline', 'mcp__a__b', {}, 'mcp', { server: 'a', tool: 'b', input: text('{}') }],
  ['cursor', 'Shell', { command: 'ls', working_directory: '/a' }, 'shell', shell('ls', '/a')],
  ['cursor', 'Read', { file_path: '/a' }, 'read', { path: '/a' }],
  ['cursor', 'Write', { file_path: '/a', content: 'x' }, 'write', { path: '/a', content: text('x') }],
  ['cursor', 'Write', { file_path: '/a', old_string: 'x', new_string: 'y' }, 'edit', edit('/a', ['x', 'y'])],
  ['cursor', 'Write', { file_path: '/a', content: 'x', old_string: 'x', new_string: 'y' }, null],
  ['cursor', 'Write', { file_path: '/a' }, 'other'],
  ['cursor', 'Grep', { pattern: 'x' }, 'search', { pattern: 'x' }],
  ['cursor', 'MCP:note', {}, 'other', { name: 'MCP:note', input: text('{}') }],
];

const title = (rows: readonly Row[]): [string, Row][] =>
  rows.map((row) => [`${row[0]} ${row[1]} ${JSON.stringify(row[2])}`, row]);

describe('inputs of native tools', () => {
  test.each(title(ROWS))('U-08: %s', (_, [client, tool, input, native, expected]) => {
    const call = read(client, tool, input);
    expect(call?.tool ?? null).toBe(native === null ? null : `native.${native}`);
    if (expected !== undefined) expect(call?.input).toEqual(expected);
  });

  test('U-08: the server that Claude Code names counts, not the one that the name of the tool suggests', () => {
    const more = { mcp_server: { name: 'claude.ai x__y', source: 'user' } };
    expect(read('claude-code', 'mcp__claude_ai_x__y__do__it', {}, more)?.input).toEqual({
      server: 'claude.ai x__y',
      tool: 'do__it',
      input: text('{}'),
    });
    expect(read('claude-code', 'mcp__a__b', {}, { mcp_server: { name: 3 } })).toBeNull();
    expect(read('claude-code', 'mcp__a__b', {}, { mcp_server: null })).toBeNull();
  });

  test('U-08: the server that Gemini CLI and opencode name counts, even for a name of a native tool', () => {
    const context = { server_name: 's', tool_name: 't', command: 'node' };
    expect(read('gemini-cli', 'read_file', { file_path: '/a' }, { mcp_context: context })?.tool).toBe('native.mcp');
    expect(read('gemini-cli', 'mcp_s_t', {}, { mcp_context: { server_name: 's' } })).toBeNull();
    expect(read('opencode', 's_t', {}, { mcp_server: { name: 's', tool: 't' } })?.tool).toBe('native.mcp');
    expect(read('opencode', 's_t', {}, { mcp_server: { name: 's' } })).toBeNull();
  });

  test.each([
    ['beforeShellExecution', { command: 'ls', cwd: '/a' }, 'native.shell'],
    ['beforeMCPExecution', { tool_name: 'note', tool_input: '{}' }, 'native.other'],
    ['beforeReadFile', { file_path: '/a', content: 'x' }, 'native.read'],
  ] as const)('U-08: %s of Cursor is a call without an id', (name, members, tool) => {
    const event = { hook_event_name: name, conversation_id: 'c', workspace_roots: ['/project'], ...members };
    expect(DIALECTS.cursor.readEvent(event)).toMatchObject({ kind: 'call', call: { tool, call_id: null } });
  });

  test('U-08: limits of inputs: a longer text is cut and hashed whole, a longer path or list of edits is denied', () => {
    const long = 'x'.repeat(TEXT_CHARS_MAX + 1);
    expect(read('claude-code', 'Bash', { command: long })?.input).toEqual({
      command: { text: long.slice(1), sha256: sha256(long), bytes: TEXT_CHARS_MAX + 1 },
    });
    const path = (length: number): NativeCall | null => read('claude-code', 'Read', { file_path: 'p'.repeat(length) });
    expect([path(PATH_CHARS_MAX)?.tool, path(PATH_CHARS_MAX + 1)]).toEqual(['native.read', null]);
    const edits = (count: number): NativeCall | null =>
      read('claude-code', 'MultiEdit', {
        file_path: '/a',
        edits: Array.from({ length: count }, () => ({ old_string: 'x', new_string: 'y' })),
      });
    expect([edits(EDITS_MAX)?.tool, edits(EDITS_MAX + 1)]).toEqual(['native.edit', null]);
  });

  test('U-08: an input without a canonical form is denied', () => {
    let deep: Json = null;
    for (let level = 0; level < 200; level++) deep = [deep];
    expect(read('claude-code', 'Agent', deep)).toBeNull();
    expect(read('claude-code', 'Agent', { prompt: '\ud800' })).toBeNull();
    expect(read('claude-code', 'Bash', { command: '\ud800' })).toBeNull();
  });
});
