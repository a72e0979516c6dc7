// A spec of three phases and twelve tasks. The official MCP client works through it while its server is killed between
// calls. People act through the command line at the same time.

import '../fixtures/features.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Entry } from '../../src/core/contract/run/entry.js';
import type { NextStep, SessionAnswer, SessionData } from '../../src/features/sessions/contract/session-answer.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { call, type Called } from '../interfaces/mcp/mcp-harness.js';
import { ROOT } from '../sources.js';

const SPEC = join(ROOT, 'docs/examples/spec.yaml');
const SPEC_ID = 'volunteer-handbook';
const CALLS_MAX = 120;
const env = { PATH: process.env['PATH'] ?? '' };
const run = promisify(execFile);

export const TRANSPORTS = ['stdio', 'http'] as const;

export interface Walk {
  readonly transport: (typeof TRANSPORTS)[number];
  /** The path of the built command. */
  readonly command: string;
  /** An empty folder; the walk creates its home in it. */
  readonly folder: string;
  /** Whether to kill the server after this call; the first call is 1. */
  readonly killBehind: (call: number) => boolean;
}

export interface Walked {
  readonly data: SessionData;
  readonly entries: readonly Entry[];
  readonly calls: number;
  readonly kills: number;
}

/** Works through the spec. @returns its end, and the ledger, verified and replayed; throws if an invariant fails */
export async function walk(options: Walk): Promise<Walked> {
  const { folder, command } = options;
  mkdirSync(join(folder, 'specs'), { recursive: true });
  copyFileSync(SPEC, join(folder, `specs/${SPEC_ID}.yaml`));
  const people = async (...argv: string[]): Promise<void> => {
    await run(process.execPath, [command, ...argv], { cwd: folder, env });
  };
  await people('init');
  const server = new KilledServer(options);
  try {
    const data = await toTheEnd(new Worker(server), people);
    server.kill();
    return { data, entries: await ledgerOf(folder), calls: server.calls, kills: server.kills };
  } finally {
    server.kill();
  }
}

async function toTheEnd(worker: Worker, people: (...argv: string[]) => Promise<void>): Promise<SessionData> {
  let answer = await worker.start();
  for (;;) {
    const { next_step, pause_reason, status } = dataOf(answer);
    if (status === 'completed' || next_step === null) return dataOf(answer);
    if (next_step.type !== 'pause') {
      answer = await worker.work(next_step);
      continue;
    }
    if (pause_reason === 'gate_review_required') {
      const attempt = /[\w-]+-g\d+/.exec(next_step.instruction)?.[0] ?? '';
      await people('session', 'ack', attempt, 'pass', '--actor', 'anna');
    } else if (pause_reason === 'phase_complete') {
      await people('session', 'resume', '--actor', 'anna');
    } else throw new Error(`the session pauses: ${pause_reason ?? 'for nothing'}`);
    answer = await worker.step('next');
  }
}

/** Reads the ledger like a client, after it was verified. */
async function ledgerOf(folder: string): Promise<Entry[]> {
  const { store, externalHeadStore } = openHome(homePaths(join(folder, '.turnpike')), { readOnly: true });
  try {
    const reader = new LedgerReader(store, externalHeadStore);
    const [verified, replayed] = [await reader.verify(), await reader.replay()];
    if (!verified.ok || !replayed.ok) throw new Error(JSON.stringify({ verified, replayed }));
    const entries: Entry[] = [];
    for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
    return entries;
  } finally {
    await store.close();
  }
}

interface Reached {
  readonly client: Client;
  readonly kill: () => Promise<void>;
}

/** A server that starts on request, and is killed on request. */
class KilledServer {
  readonly #walk: Walk;
  #reached: Reached | null = null;
  calls = 0;
  kills = 0;

  constructor(walk: Walk) {
    this.#walk = walk;
  }

  async ask(name: string, args: object): Promise<Called> {
    this.calls += 1;
    if (this.calls > CALLS_MAX) throw new Error('the session does not come to its end');
    this.#reached ??= await (this.#walk.transport === 'stdio' ? overStdio(this.#walk) : overHttp(this.#walk));
    const answer = await call(this.#reached.client, name, args);
    if (this.#walk.killBehind(this.calls)) {
      await this.#reached.kill();
      this.#reached = null;
      this.kills += 1;
    }
    return answer;
  }

  kill(): void {
    void this.#reached?.kill();
    this.#reached = null;
  }
}

async function overStdio({ command, folder }: Walk): Promise<Reached> {
  const args = [command, 'mcp', '--specs', 'specs'];
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd: folder, env });
  const client = new Client({ name: 'walk', version: '1' });
  await client.connect(transport);
  const gone = new Promise<void>((resolve) => (client.onclose = resolve));
  const kill = async (): Promise<void> => {
    if (transport.pid !== null) process.kill(transport.pid, 'SIGKILL');
    await gone;
  };
  return { client, kill };
}

async function overHttp({ command, folder }: Walk): Promise<Reached> {
  const argv = [command, 'mcp', '--http', '127.0.0.1:0', '--specs', 'specs'];
  const child = spawn(process.execPath, argv, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  while (!output.includes('bearer token in') && child.exitCode === null) {
    await Promise.race([once(child.stderr, 'data'), ended]);
  }
  const token = readFileSync(join(folder, '.turnpike/mcp-token'), 'utf8').trim();
  const client = new Client({ name: 'walk', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(output.split('\n', 1).join('')), { requestInit }));
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    await client.close();
  };
  return { client, kill };
}

const NOTES = '- Ada: keys\n- Ben: first aid\n- Cho: van\n';
const CHAPTERS = ['# Welcome\n\nHello.\n', '# First day\n\nCome at ten.\n', '# Emergencies\n\nCall Ben.\n'];
/** The files that an honest agent writes for each task. */
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
  readonly #server: KilledServer;
  #session_id = '';

  constructor(server: KilledServer) {
    this.#server = server;
  }

  async start(): Promise<SessionAnswer> {
    const request = { action: 'session-step', command: 'start', spec_id: SPEC_ID };
    this.#session_id = dataOf(answerOf(await this.#server.ask('task', request))).session_id;
    return this.step('next');
  }

  async step(next: string, args: object = {}): Promise<SessionAnswer> {
    const request = { action: 'session-step', command: next, session_id: this.#session_id, ...args };
    return answerOf(await this.#server.ask('task', request));
  }

  /** Does the work of a step and reports it. */
  async work(step: NextStep): Promise<SessionAnswer> {
    const session_id = this.#session_id;
    const { step_id, type, step_proof, task_id, phase_id } = step;
    const report = { step_id, step_type: type, outcome: 'success', step_proof };
    switch (type) {
      case 'implement_task': {
        const files = await this.#write(step);
        return this.step('next', { last_step_result: { ...report, task_id, files_touched: files } });
      }
      case 'execute_verification': {
        const ran = await this.#server.ask('verification', { action: 'execute', session_id, step_id });
        const { verification_receipt } = dataOf(answerOf(ran));
        return this.step('next', { last_step_result: { ...report, task_id, verification_receipt } });
      }
      case 'run_fidelity_gate': {
        const ids = { spec_id: SPEC_ID, session_id, phase_id, step_id };
        const reviewed = await this.#server.ask('review', { action: 'fidelity-gate', ...ids });
        const gate_attempt_id = dataOf(answerOf(reviewed)).review?.gate_attempt_id;
        return this.step('next', { last_step_result: { ...report, phase_id, gate_attempt_id } });
      }
      default:
        throw new Error(`nothing is to be done for ${type}`);
    }
  }

  async #write({ task_id, run_id }: NextStep): Promise<string[]> {
    const [path, content] = FILES[task_id ?? ''] ?? ['', ''];
    const into = path.split('/').slice(0, -1).join('/');
    if (into !== '') await this.#server.ask('create_directory', { path: `/sandbox/${into}`, run_id });
    const written = await this.#server.ask('write_file', { path: `/sandbox/${path}`, content, run_id });
    if (written.structured?.['outcome'] !== 'SUCCESS') throw new Error(written.text);
    return [path];
  }
}

const answerOf = ({ structured }: Called): SessionAnswer => structured as unknown as SessionAnswer;

const dataOf = ({ data }: SessionAnswer): SessionData => {
  if (data === null) throw new Error('the answer has no data');
  return data;
};

const TASKS = 12;

/** What is wrong with a walk: the session must be complete, and no work done or accepted twice. */
export function faultsOf({ data, entries }: Walked): readonly string[] {
  const events = entries.flatMap((entry) => (entry.type === 'session_event' ? [entry.body] : []));
  const consumed = events.filter(({ event }) => event === 'step_consumed');
  const tasks = consumed.flatMap(({ task_id }) => (task_id === null ? [] : [task_id]));
  const proofs = consumed.map(({ detail }) => detail['proof_sha256']);
  const unmediated = consumed.filter(
    ({ step_type, detail }) => step_type === 'implement_task' && detail['mediation'] !== 'mediated',
  );
  return [
    ...(data.status === 'completed' && data.loop_signal === 'spec_complete' ? [] : [`it ends as ${data.status}`]),
    ...(tasks.length === TASKS && new Set(tasks).size === TASKS ? [] : [`tasks are done: ${tasks.join(', ')}`]),
    ...(new Set(proofs).size === proofs.length ? [] : ['a proof is accepted twice']),
    ...(unmediated.length === 0 ? [] : ['work was not mediated']),
  ];
}
