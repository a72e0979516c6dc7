// The opencode plugin of Turnpike. It belongs into ~/.config/opencode/plugins/, or into .opencode/plugins/ of a project.
//
// It runs the hook command before and after every call of a tool, with the event on standard input. A call goes on only if
// the answer is `{"decision":"allow"}`: any other answer, a failure and a timeout stop it. opencode goes on without a
// plugin that it cannot load, so check that the plugin is loaded.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** `turnpike agents install` writes the hook command into this file, with the absolute path of the program. */
const OPTIONS = new URL('turnpike.json', import.meta.url);
const COMMAND = ['turnpike', 'hook', 'opencode'];
const TIMEOUT_MS = 10_000;
const ANSWER_CHARS_MAX = 65_536;
const NESTED_MAX = 16;

/** Read for each call and not at the start: opencode goes on without a plugin that fails then. */
const commandOf = () => {
  if (!existsSync(OPTIONS)) return COMMAND;
  const { hook } = JSON.parse(readFileSync(OPTIONS, 'utf8'));
  if (!Array.isArray(hook) || hook.length === 0 || !hook.every((word) => typeof word === 'string'))
    throw new Error('Turnpike: turnpike.json has no hook command, so the call is denied');
  return hook;
};

const ask = (event) =>
  new Promise((done, fail) => {
    const [program, ...words] = commandOf();
    const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'ignore'] });
    let answer = '';
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(new Error('Turnpike: the hook command did not answer in time, so the call is denied'));
    }, TIMEOUT_MS);
    child.stdin.on('error', () => undefined);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      answer = (answer + text).slice(0, ANSWER_CHARS_MAX);
    });
    child.on('error', (error) => {
      clearTimeout(timer);
      fail(new Error(`Turnpike: the hook command could not be started, so the call is denied (${error.code})`));
    });
    child.on('close', () => {
      clearTimeout(timer);
      done(answer);
    });
    child.stdin.end(JSON.stringify(event));
  });

const parse = (answer) => {
  try {
    return JSON.parse(answer) ?? {};
  } catch {
    return {};
  }
};

/** The name of a tool of an MCP server is the server and the tool, both with `_` in place of special characters. */
const prefixOf = (server) => `${server.replace(/[^a-zA-Z0-9_-]/g, '_')}_`;

export const Turnpike = async ({ client, directory }) => {
  const sessions = new Set();

  /** A subagent has a session of its own; the session of the main agent is at the end of its parents. */
  const rootOf = async (session) => {
    let at = session;
    for (let n = 0; n < NESTED_MAX; n++) {
      const { data } = await client.session.get({ path: { id: at } });
      if (!data) throw new Error('Turnpike: opencode does not know the session, so the call is denied');
      if (!data.parentID) return at;
      at = data.parentID;
    }
    throw new Error('Turnpike: the session is nested too deeply, so the call is denied');
  };

  const serverOf = async (tool) => {
    const { data } = await client.mcp.status();
    const fitting = Object.keys(data ?? {}).filter((server) => tool.startsWith(prefixOf(server)));
    if (fitting.length !== 1) return undefined;
    return { name: fitting[0], tool: tool.slice(prefixOf(fitting[0]).length) };
  };

  const headOf = async (name, session) => {
    const root = await rootOf(session);
    const agent = root === session ? {} : { agent_id: session };
    return { hook_event_name: name, session_id: root, cwd: directory, ...agent };
  };

  const callOf = async (name, { tool, sessionID, callID }) => ({
    ...(await headOf(name, sessionID)),
    tool_name: tool,
    tool_use_id: callID,
    mcp_server: await serverOf(tool),
  });

  const beginSession = async (session) => {
    const head = await headOf('SessionStart', session);
    if (sessions.has(head.session_id)) return;
    sessions.add(head.session_id);
    await ask({ ...head, agent_id: undefined });
  };

  const endSession = (session) =>
    sessions.delete(session) ? ask({ hook_event_name: 'SessionEnd', session_id: session, cwd: directory }) : undefined;

  return {
    'tool.execute.before': async (input, output) => {
      await beginSession(input.sessionID);
      const event = { ...(await callOf('PreToolUse', input)), tool_input: output.args };
      const { decision, reason } = parse(await ask(event));
      if (decision !== 'allow') throw new Error(reason ?? 'Turnpike: the call was not decided, so it is denied');
    },
    'tool.execute.after': async (input, output) => {
      const event = { ...(await callOf('PostToolUse', input)), tool_input: input.args, tool_response: output };
      await ask(event).catch(() => undefined);
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID;
      if (event.type === 'session.deleted') await endSession(session);
      if (event.type !== 'session.idle') return;
      const head = await headOf('SubagentStop', session).catch(() => ({}));
      if (head.agent_id !== undefined) await ask(head).catch(() => undefined);
    },
    dispose: async () => {
      for (const session of sessions) await endSession(session);
    },
  };
};
