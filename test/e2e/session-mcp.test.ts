// A spec of three phases and twelve tasks, worked through by the official MCP client, whose server is killed after
// every single call. People speak by the command, while no server is there.

import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Entry } from '../../src/contract/entry.js';
import type { NextStep, SessionAnswer, SessionData } from '../../src/contract/session-answer.js';
import { homePaths, openHome } from '../../src/runtime/home.js';
import { LedgerReader } from '../../src/runtime/ledger-reader.js';
import { initialised, tempFolder, turnpike } from '../cli/fake-io.js';
import { builtCommand } from '../fixtures/build.js';
import { call, type Called } from '../service/mcp/mcp-harness.js';

const MS_MAX = 400_000;
const CALLS_MAX = 120;
const SPEC = fileURLToPath(new URL('../../docs/examples/spec.yaml', import.meta.url));
let command: string;
let folder: string;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  command = await builtCommand(tempFolder());
}, 400_000);
beforeEach(async () => {
  folder = await initialised();
  mkdirSync(join(folder, 'specs'));
  copyFileSync(SPEC, join(folder, 'specs/volunteer-handbook.yaml'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

const env = { PATH: process.env['PATH'] ?? '' };
type Asking = (name: string, args: object) => Promise<Called>;

/** One call to a server of its own, which is killed when it has answered. */
const overStdio: Asking = async (name, args) => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [command, 'mcp', '--specs', 'specs'],
    cwd: folder,
    env,
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const answer = await call(client, name, args);
  const gone = new Promise<void>((resolve) => (client.onclose = resolve));
  process.kill(transport.pid!, 'SIGKILL');
  await gone;
  return answer;
};

const overHttp: Asking = async (name, args) => {
  const argv = [command, 'mcp', '--http', '127.0.0.1:0', '--specs', 'specs'];
  const child = spawn(process.execPath, argv, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  children.add(child);
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  while (!said.includes('bearer token in')) await Promise.race([once(child.stderr, 'data'), once(child, 'exit')]);
  const token = readFileSync(join(folder, '.turnpike/mcp-token'), 'utf8').trim();
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(said.split('\n', 1).join('')), { requestInit }));
  const answer = await call(client, name, args);
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  await client.close();
  children.delete(child);
  return answer;
};

const NOTES = '- Ada: keys\n- Ben: first aid\n- Cho: van\n';
const CHAPTERS = ['# Welcome\n\nHello.\n', '# First day\n\nCome at ten.\n', '# Emergencies\n\nCall Ben.\n'];
/** What an honest agent writes for each task. */
const FILES: Readonly<Record<string, readonly [string, string]>> = {
  contacts: ['notes/contacts.md', NOTES],
  'opening-hours': ['notes/hours.md', '- Tuesday: 10:00-16:00\n- Saturday: 9:00-13:00\n'],
  safety: ['notes/safety.md', '- fire: call Ada\n- injury: call Ben\n- theft: call Cho\n'],
  welcome: ['handbook/1-welcome.md', CHAPTERS[0]!],
  'first-day': ['handbook/2-first-day.md', CHAPTERS[1]!],
  emergencies: ['handbook/3-emergencies.md', CHAPTERS[2]!],
  assemble: ['handbook.md', `# Handbook\n\n${CHAPTERS.join('\n')}`],
  contents: ['contents.md', '1. Welcome\n2. First day\n3. Emergencies\n'],
};

class Worker {
  readonly #ask: Asking;
  session_id = '';
  calls = 0;

  constructor(ask: Asking) {
    this.#ask = ask;
  }

  async tool(name: string, args: object): Promise<Called> {
    this.calls += 1;
    if (this.calls > CALLS_MAX) throw new Error('the session does not come to its end');
    return this.#ask(name, args);
  }

  async step(next: string, args: object = {}): Promise<SessionAnswer> {
    const asked = { action: 'session-step', command: next, session_id: this.session_id, ...args };
    return (await this.tool('task', asked)).structured as unknown as SessionAnswer;
  }

  /** Works a step off and reports it. */
  async work(step: NextStep): Promise<SessionAnswer> {
    const { session_id } = this;
    const { step_id, type, step_proof, task_id, phase_id } = step;
    const report = { step_id, step_type: type, outcome: 'success', step_proof };
    switch (type) {
      case 'implement_task': {
        const files = await this.#write(step);
        return this.step('next', { last_step_result: { ...report, task_id, files_touched: files } });
      }
      case 'execute_verification': {
        const ran = await this.tool('verification', { action: 'execute', session_id, step_id });
        const { verification_receipt } = dataOf(ran.structured as unknown as SessionAnswer);
        return this.step('next', { last_step_result: { ...report, task_id, verification_receipt } });
      }
      case 'run_fidelity_gate': {
        const ids = { spec_id: 'volunteer-handbook', session_id, phase_id, step_id };
        const reviewed = await this.tool('review', { action: 'fidelity-gate', ...ids });
        const gate_attempt_id = dataOf(reviewed.structured as unknown as SessionAnswer).review?.gate_attempt_id;
        return this.step('next', { last_step_result: { ...report, phase_id, gate_attempt_id } });
      }
      default:
        throw new Error(`nothing is to be done for ${type}`);
    }
  }

  async #write({ task_id, run_id }: NextStep): Promise<string[]> {
    const [path, content] = FILES[task_id ?? ''] ?? ['', ''];
    const into = path.split('/').slice(0, -1).join('/');
    if (into !== '') await this.tool('create_directory', { path: `/sandbox/${into}`, run_id });
    const written = await this.tool('write_file', { path: `/sandbox/${path}`, content, run_id });
    expect(written.structured).toMatchObject({ outcome: 'SUCCESS' });
    return [path];
  }
}

const dataOf = ({ data }: SessionAnswer): SessionData => {
  if (data === null) throw new Error('the answer has no data');
  return data;
};

/** The ledger as a reader sees it, after it was held against itself. */
async function ledger(): Promise<Entry[]> {
  const { store, anchor } = openHome(homePaths(join(folder, '.turnpike')), { readOnly: true });
  try {
    const reader = new LedgerReader(store, anchor);
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(await reader.replay()).toMatchObject({ ok: true });
    const entries: Entry[] = [];
    for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
    return entries;
  } finally {
    await store.close();
  }
}

const people = async (...argv: string[]): Promise<void> => {
  const said = await turnpike(folder, ['session', ...argv, '--actor', 'anna']);
  expect(said).toMatchObject({ code: 0 });
};

test.each<[string, Asking]>([
  ['stdio', overStdio],
  ['Streamable HTTP', overHttp],
])(
  'S3-40 C64: over %s, with the server killed after every call, a spec comes to its end: nothing twice',
  async (_transport, ask) => {
    const worker = new Worker(ask);
    const started = await worker.tool('task', {
      action: 'session-step',
      command: 'start',
      spec_id: 'volunteer-handbook',
    });
    worker.session_id = dataOf(started.structured as unknown as SessionAnswer).session_id;
    let answer = await worker.step('next');
    for (;;) {
      const { next_step, pause_reason, status } = dataOf(answer);
      if (status === 'completed' || next_step === null) break;
      if (next_step.type !== 'pause') {
        answer = await worker.work(next_step);
        continue;
      }
      if (pause_reason === 'gate_review_required') {
        const attempt = /[\w-]+-g\d+/.exec(next_step.instruction)?.[0] ?? '';
        await people('ack', attempt, 'pass');
      } else {
        expect(pause_reason).toBe('phase_complete');
        await people('resume');
      }
      answer = await worker.step('next');
    }
    expect(dataOf(answer)).toMatchObject({ status: 'completed', loop_signal: 'spec_complete' });
    const events = (await ledger()).flatMap((entry) => (entry.type === 'session_event' ? [entry.body] : []));
    const consumed = events.filter(({ event }) => event === 'step_consumed');
    const tasks = consumed.flatMap(({ task_id }) => (task_id === null ? [] : [task_id]));
    expect(tasks).toHaveLength(12);
    expect(new Set(tasks).size).toBe(12);
    const proofs = consumed.map(({ detail }) => detail['proof_sha256']);
    expect(new Set(proofs).size).toBe(proofs.length);
    const mediated = consumed.filter(({ step_type }) => step_type === 'implement_task').map(({ detail }) => detail);
    expect(mediated.map(({ mediation }) => mediation)).toEqual(mediated.map(() => 'mediated'));
  },
  MS_MAX,
);
