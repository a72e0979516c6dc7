// How each client is configured and started for a test, and how the scripted model calls its tools.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandOf, pluginFolder } from '../install-clients.mjs';

const NOTES = fileURLToPath(new URL('note-server.mjs', import.meta.url));
const PLUGIN = fileURLToPath(new URL('../../../packaging/opencode/turnpike.js', import.meta.url));
const MODEL = 'http://127.0.0.1:9321';

/** A shell call, in the words of the model of a client. */
const shellOf = (tool, member) => (command) => ({ tool, input: { [member]: command, description: 'test' } });

const put = (path, content) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
};

/** Changes a file that `turnpike agents install` has written. */
const change = (path, from, to) => {
  const text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${path} has no ${from}`);
  writeFileSync(path, text.replaceAll(from, to));
};

/** A command hook for each of some events. */
const hooksOf = (names, hook, more = {}) =>
  Object.fromEntries(names.map((name) => [name, [{ ...more, hooks: [hook] }]]));

const CLAUDE_EVENTS = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'SessionStart', 'SessionEnd', 'SubagentStop'];

const CLAUDE_CODE = {
  configure({ home, notes }) {
    put(join(home, 'mcp.json'), { mcpServers: { notes: { command: 'node', args: [notes] } } });
  },
  addHooks({ home, hook }) {
    const handler = { type: 'command', command: `${hook} claude-code`, timeout: 20, onFailure: 'block' };
    put(join(home, '.claude/settings.json'), { hooks: hooksOf(CLAUDE_EVENTS, handler) });
  },
  /** Lets a call that waits for an approval end the process. */
  mayDefer: ({ home }) =>
    change(join(home, '.claude/settings.json'), '--case case-local', '--case case-local --pending defer'),
  /** Makes the installed hooks so that `turnpike agents doctor` finds them open. */
  loosen: ({ home }) => change(join(home, '.claude/settings.json'), '"onFailure": "block"', '"onFailure": "continue"'),
  variables: {
    ANTHROPIC_BASE_URL: MODEL,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  },
  // Nothing is allowed in advance: what runs, runs because the hook has allowed it.
  start: (home, prompt) => ['-p', prompt, '--permission-mode', 'dontAsk', '--mcp-config', join(home, 'mcp.json')],
  resume: (home, session) => ['--resume', session],
  shell: (command) => ({ tool: 'Bash', input: { command } }),
  write: (file_path, content) => ({ tool: 'Write', input: { file_path, content } }),
  note: (text) => ({ tool: 'mcp__notes__note', input: { text } }),
  subagent: (prompt) => [
    { calls: [{ tool: 'Agent', input: { description: 'd', prompt, subagent_type: 'general-purpose' } }] },
  ],
};

const CODEX_EVENTS = ['PreToolUse', 'PostToolUse', 'SessionStart', 'SessionEnd', 'SubagentStop'];

const CODEX = {
  configure({ home, notes }) {
    put(
      join(home, '.codex/config.toml'),
      readFileSync(new URL('codex.toml', import.meta.url), 'utf8').replace('NOTES', notes),
    );
  },
  addHooks({ home, hook }) {
    const command = `timeout 15 ${hook} codex || { echo the hook failed >&2; exit 2; }`;
    put(join(home, '.codex/hooks.json'), { hooks: hooksOf(CODEX_EVENTS, { type: 'command', command, timeout: 20 }) });
  },
  loosen: ({ home }) => change(join(home, '.codex/config.toml'), 'shell_tool = false', 'shell_tool = true'),
  variables: { MODEL_KEY: 'none' },
  start: (home, prompt) => ['exec', '--skip-git-repo-check', prompt],
  /** Hooks that no one has trusted run too. */
  untrusted: ['--dangerously-bypass-hook-trust'],
  shell: (cmd) => ({ tool: 'exec_command', input: { cmd } }),
  // Codex writes files by patches only.
  write: (path, content) => ({
    tool: 'apply_patch',
    custom: true,
    input: `*** Begin Patch\n*** Add File: ${path}\n+${content}\n*** End Patch\n`,
  }),
  note: (text) => ({ tool: 'note', namespace: 'mcp__notes', input: { text } }),
  subagent: (message) => [
    { calls: [{ tool: 'spawn_agent', namespace: 'multi_agent_v1', input: { message, agent_type: 'worker' } }] },
    {
      calls: [
        {
          tool: 'wait_agent',
          namespace: 'multi_agent_v1',
          input: { targets: ['$1'], timeout_ms: 30_000 },
          capture: 'agent_id[^0-9a-f]+([0-9a-f-]{36})',
        },
      ],
    },
  ],
};

const GEMINI_EVENTS = ['BeforeTool', 'AfterTool', 'SessionStart', 'SessionEnd'];

const GEMINI_CLI = {
  configure({ home, notes }) {
    const base = JSON.parse(readFileSync(new URL('gemini.json', import.meta.url), 'utf8'));
    put(join(home, '.gemini/settings.json'), { ...base, mcpServers: { notes: { command: 'node', args: [notes] } } });
  },
  addHooks({ home, hook }) {
    const command = `timeout 15 ${hook} gemini-cli || { echo the hook failed >&2; exit 2; }`;
    const path = join(home, '.gemini/settings.json');
    const hooks = hooksOf(GEMINI_EVENTS, { type: 'command', command, timeout: 20_000 }, { matcher: '*' });
    put(path, { ...JSON.parse(readFileSync(path, 'utf8')), hooks });
  },
  loosen: ({ home }) => change(join(home, '.gemini/settings.json'), 'exit 2; }', 'exit 1; }'),
  variables: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: MODEL, GEMINI_CLI_NO_RELAUNCH: 'true' },
  start: (home, prompt) => ['-p', prompt, '--approval-mode', 'yolo'],
  shell: shellOf('run_shell_command', 'command'),
  write: (file_path, content) => ({ tool: 'write_file', input: { file_path, content } }),
  note: (text) => ({ tool: 'mcp_notes_note', input: { text } }),
  subagent: (prompt) => [{ calls: [{ tool: 'invoke_agent', input: { agent_name: 'generalist', prompt } }] }],
};

const OPENCODE = {
  configure({ home, notes }) {
    const folder = join(home, '.config/opencode');
    const base = JSON.parse(readFileSync(new URL('opencode.json', import.meta.url), 'utf8'));
    put(join(folder, 'opencode.json'), { ...base, mcp: { notes: { type: 'local', command: ['node', notes] } } });
    // Its folder of plugins must hold the package of plugins, with its lock.
    for (const name of ['node_modules', 'package.json', 'package-lock.json']) {
      cpSync(join(pluginFolder(), name), join(folder, name), { recursive: true });
    }
  },
  addHooks({ home, hook }) {
    const folder = join(home, '.config/opencode/plugins');
    put(join(folder, 'turnpike.js'), readFileSync(PLUGIN, 'utf8'));
    put(join(folder, 'turnpike.json'), { home, hook: [...hook.split(' '), 'opencode'] });
  },
  loosen: ({ home }) => change(join(home, '.config/opencode/plugins/turnpike.js'), '\n', '\n\n'),
  variables: {
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
  },
  start: (home, prompt) => ['run', prompt],
  shell: shellOf('bash', 'command'),
  write: (filePath, content) => ({ tool: 'write', input: { filePath, content } }),
  note: (text) => ({ tool: 'notes_note', input: { text } }),
  subagent: (prompt) => [{ calls: [{ tool: 'task', input: { description: 'd', prompt, subagent_type: 'general' } }] }],
};

const CLIENTS = { 'claude-code': CLAUDE_CODE, codex: CODEX, 'gemini-cli': GEMINI_CLI, opencode: OPENCODE };

/** A client by its name, with the words that start it. */
export const clientOf = (name) => ({ untrusted: [], ...CLIENTS[name], name, command: commandOf(name), notes: NOTES });
