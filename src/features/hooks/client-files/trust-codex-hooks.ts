// Asks `codex app-server` which hooks Codex has found and trusts, and makes it trust some. Codex writes its own
// config.toml, so that file keeps its form.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { isJsonObject, type Json, readJson } from '../../../core/contract/json.js';
import { objectsIn } from '../clients/read-settings.js';

/** A hook as Codex sees it. */
interface CodexHook {
  readonly key: string;
  readonly command: string;
  readonly hash: string;
  readonly isTrusted: boolean;
}

const ANSWER_CHARS_MAX = 4_194_304;
const TIME_MS_MAX = 15_000;

interface CodexTrust {
  readonly cwd: string;
  readonly commands: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

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
    server.send({ method: 'initialized' });
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

/**
 * A process that gets one request at a time. It is killed when its time is over. Its end is the end of its answers,
 * even if a process that it has started keeps its output open.
 */
class AppServer {
  readonly #child;
  readonly #lines: AsyncIterator<string>;
  #last = 0;

  constructor(program: string, cwd: string, environment: CodexTrust['environment']) {
    const limits = { timeout: TIME_MS_MAX, killSignal: 'SIGKILL' } as const;
    const child = spawn(program, ['app-server'], {
      ...limits,
      cwd,
      env: environment,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    // The end of its output says enough.
    for (const emitter of [child, child.stdin]) emitter.on('error', () => undefined);
    child.on('exit', () => child.stdout.destroy());
    this.#child = child;
    this.#lines = linesOf(child.stdout.setEncoding('utf8'));
  }

  async call(method: string, params: object): Promise<Json | undefined> {
    const id = (this.#last += 1);
    this.send({ id, method, params });
    for (let line = await this.#lines.next(); line.done !== true; line = await this.#lines.next()) {
      const answer = readJson(line.value);
      if (!isJsonObject(answer) || answer['id'] !== id) continue;
      if (answer['error'] === undefined) return answer['result'];
      break;
    }
    throw new Error(`codex app-server gives no answer to ${method}`);
  }

  send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.pid !== undefined && this.#child.kill('SIGKILL'))
      await once(this.#child, 'exit').catch(() => undefined);
  }
}

/** The lines of an output, until it ends or one is too long. Not readline, which splits inside of JSON, at U+2028. */
async function* linesOf(output: Readable): AsyncGenerator<string, undefined> {
  let text = '';
  try {
    for await (const part of output) {
      text += String(part);
      if (text.length > ANSWER_CHARS_MAX) return;
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      yield* lines;
    }
  } catch {
    // Destroyed at the end of the process.
  }
}

/** The hooks of an answer to `hooks/list`. */
const hooksIn = (answer: Json | undefined): readonly CodexHook[] =>
  listIn(answer, 'data')
    .flatMap((entry) => listIn(entry, 'hooks'))
    .flatMap(({ key, command, currentHash: hash, trustStatus }) => {
      if (typeof key !== 'string' || typeof command !== 'string' || typeof hash !== 'string') return [];
      return [{ key, command, hash, isTrusted: trustStatus === 'trusted' || trustStatus === 'managed' }];
    });

const listIn = (value: Json | undefined, name: string) =>
  isJsonObject(value) ? objectsIn(value[name]).map(([one]) => one) : [];
