// Asks `codex app-server` which hooks Codex has found and trusts, and makes it trust some. Codex writes its own
// config.toml, so that file keeps its form.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readJson } from '../../../core/contract/json.js';

/** A hook as Codex sees it. */
export interface CodexHook {
  readonly key: string;
  readonly command: string;
  readonly hash: string;
  readonly isTrusted: boolean;
}

const ANSWER_CHARS_MAX = 4_194_304;
const TIME_MS_MAX = 15_000;

/**
 * Makes Codex trust the hooks with these commands, and no others.
 * @returns the hooks with these commands afterwards
 * @throws Error if Codex does not answer in time, or with something else
 */
export async function trustCodexHooks(
  program: string,
  { cwd, commands, environment }: CodexTrust,
): Promise<readonly CodexHook[]> {
  const server = new AppServer(program, cwd, environment);
  try {
    await server.call('initialize', { clientInfo: { name: 'turnpike', version: '0.0.0' } });
    server.notify('initialized');
    const own = async (): Promise<readonly CodexHook[]> =>
      hooksIn(await server.call('hooks/list', { cwds: [cwd] })).filter(({ command }) => commands.includes(command));
    const state = Object.fromEntries((await own()).map(({ key, hash }) => [key, { trusted_hash: hash }]));
    await server.call('config/batchWrite', {
      edits: [{ keyPath: 'hooks.state', mergeStrategy: 'upsert', value: state }],
    });
    return await own();
  } finally {
    await server.close();
  }
}

/** What `trustCodexHooks` needs. */
export interface CodexTrust {
  readonly cwd: string;
  readonly commands: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

interface Answer {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

class AppServer {
  readonly #child;
  readonly #waiting = new Map<number, (answer: Answer | null) => void>();
  readonly #timer: NodeJS.Timeout;
  #text = '';
  #last = 0;

  constructor(program: string, cwd: string, environment: Readonly<Record<string, string | undefined>>) {
    this.#child = spawn(program, ['app-server'], { cwd, env: environment, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#timer = setTimeout(() => this.#fail(), TIME_MS_MAX);
    this.#child.on('error', () => this.#fail());
    this.#child.on('close', () => this.#fail());
    this.#child.stdin.on('error', () => this.#fail());
    this.#child.stdout.setEncoding('utf8').on('data', (part: string) => this.#receive(part));
  }

  async call(method: string, params: object): Promise<unknown> {
    const id = (this.#last += 1);
    const answer = await new Promise<Answer | null>((done) => {
      this.#waiting.set(id, done);
      this.#send({ id, method, params });
    });
    if (answer === null || answer.error !== undefined) throw new Error(`codex app-server gives no answer to ${method}`);
    return answer.result;
  }

  notify(method: string): void {
    this.#send({ method });
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#child.exitCode === null && this.#child.pid !== undefined && this.#child.kill('SIGKILL'))
      await once(this.#child, 'exit').catch(() => undefined);
  }

  #send(message: object): void {
    if (this.#child.exitCode !== null || !this.#child.stdin.writable) {
      this.#fail();
      return;
    }
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  #receive(part: string): void {
    this.#text += part;
    if (this.#text.length > ANSWER_CHARS_MAX) {
      this.#fail();
      return;
    }
    const lines = this.#text.split('\n');
    this.#text = lines.pop() ?? '';
    for (const line of lines) {
      const answer = parseAnswer(line);
      if (typeof answer?.id !== 'number') continue;
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    }
  }

  #fail(): void {
    for (const done of this.#waiting.values()) done(null);
    this.#waiting.clear();
    this.#child.kill('SIGKILL');
  }
}

const parseAnswer = (line: string): Answer | null => (readJson(line) ?? null) as Answer | null;

/** The hooks of an answer to `hooks/list`. */
function hooksIn(answer: unknown): readonly CodexHook[] {
  const entries = listIn(answer, 'data').flatMap((entry) => listIn(entry, 'hooks'));
  return entries.flatMap((entry) => {
    const { key, command, currentHash, trustStatus } = entry as Readonly<Record<string, unknown>>;
    if (typeof key !== 'string' || typeof command !== 'string' || typeof currentHash !== 'string') return [];
    return [{ key, command, hash: currentHash, isTrusted: trustStatus === 'trusted' || trustStatus === 'managed' }];
  });
}

function listIn(value: unknown, name: string): readonly object[] {
  const list = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : null;
  return Array.isArray(list) ? list.filter((item): item is object => typeof item === 'object' && item !== null) : [];
}
