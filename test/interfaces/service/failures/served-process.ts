// `turnpike serve` as a process of its own, on a file system of its own: a small one that can be full, or a disk that
// becomes read-only. The test reaches its files through /proc.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundled } from '../../../fixtures/bundled.js';

const MAIN = 'dist/src/interfaces/cli/main';
/** A slow machine needs long. */
export const WAIT_MS = 60_000;

/** Builds the command from the current sources. @returns its path */
export async function buildMain(folder: string): Promise<string> {
  await bundled(folder, { [MAIN]: 'src/interfaces/cli/main.ts' });
  return join(folder, `${MAIN}.js`);
}

export interface ServedOptions {
  /** The command, from `buildMain`. */
  readonly main: string;
  /** An empty folder. */
  readonly folder: string;
  /** `unshare` with these flags gives the process its own mounts. Null: it uses those of the test. */
  readonly namespace?: readonly string[] | null;
  /** Shell commands that mount a file system on `$DISK`. */
  readonly mount?: string;
  /** How the home is created. Default: `init`. */
  readonly init?: string;
  /** Shell commands after that, in the folder of the home; `turnpike` is the command. */
  readonly prepare?: string;
  /** A program with arguments that runs the served process. */
  readonly wrapper?: string;
  /** Further arguments of the command. */
  readonly args?: readonly string[];
  /** Default: `serve` on any port, with stored tokens. */
  readonly command?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface AskOptions {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class ServedProcess {
  readonly #child: ChildProcess;
  readonly #options: ServedOptions;
  readonly #disk: string;
  #stdout = '';
  #stderr = '';
  #run = '';
  readonly ended: Promise<number | null>;

  private constructor(child: ChildProcess, options: ServedOptions, disk: string) {
    this.#child = child;
    this.#options = options;
    this.#disk = disk;
    child.stdout?.setEncoding('utf8').on('data', (part: string) => (this.#stdout += part));
    child.stderr?.setEncoding('utf8').on('data', (part: string) => (this.#stderr += part));
    this.ended = new Promise((resolve) => child.once('close', resolve));
  }

  /** Starts the process; its home is on `$DISK`, with one token. */
  static start(options: ServedOptions): ServedProcess {
    const { main, folder, namespace = null, mount = '', init = 'init', prepare = '' } = options;
    const { wrapper = '', args = [], env = {} } = options;
    const { command = 'serve --port 0 --stored-tokens' } = options;
    const disk = join(folder, 'disk');
    const turnpike = `"${process.execPath}" "${main}"`;
    const script = [
      'set -e',
      `mkdir -p "${disk}"`,
      `DISK="${disk}"`,
      mount,
      `cd "${disk}"`,
      `${turnpike} ${init} >&2`,
      `turnpike() { ${turnpike} "$@"; }`,
      prepare,
      `${turnpike} token --actor reporter --role SANDBOX_AGENT --right act --right observe --expires 1`,
      `exec ${wrapper} ${turnpike} ${command} --admin 127.0.0.1:0 ${args.join(' ')}`,
    ].join('\n');
    const argv = ['sh', '-c', script];
    const whole = namespace === null ? argv : ['unshare', ...namespace, ...argv];
    const child = spawn(whole[0] ?? '', whole.slice(1), {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ServedProcess(child, options, disk);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** A file of its disk, as the test reaches it. */
  path(name: string): string {
    return join(`/proc/${this.pid}/root${this.#disk}`, name);
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The lines of the service log. */
  get log(): readonly string[] {
    return this.#stderr.split('\n').filter((line) => line.startsWith('{'));
  }

  get #token(): string {
    return /[A-Za-z0-9_-]{43}/.exec(this.#stdout)?.[0] ?? '';
  }

  #urlIn(pattern: RegExp): string {
    return pattern.exec(this.#stderr)?.[1] ?? '';
  }

  get adminUrl(): string {
    return this.#urlIn(/livez, readyz and metrics: (\S+)\n/);
  }

  get url(): string {
    return this.#urlIn(/^(https?:\S+)\n/m);
  }

  /** Waits until both addresses are printed, and starts an agent run. */
  async begin(): Promise<void> {
    await this.until('it prints its address', () => this.url !== '');
    const started = await this.ask('/agents', { method: 'POST', body: '{"case":"case-local"}' });
    this.#run = (JSON.parse(started.text) as { run_id: string }).run_id;
  }

  /** Waits for a condition; says what the process has printed if it does not come. */
  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const end = Date.now() + WAIT_MS;
    while (!(await holds())) {
      if (Date.now() > end) throw new Error(`${what}: not within ${WAIT_MS} ms\n${this.#stderr}`);
      await sleep(25);
    }
  }

  async ask(path: string, init: AskOptions = {}): Promise<{ readonly status: number; readonly text: string }> {
    const own = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' };
    const headers = { ...own, ...init.headers };
    const url = `${this.url}/api/v1${path}`;
    if (url.startsWith('https:')) return askUnverified(url, { ...init, headers });
    const response = await fetch(url, { ...init, headers });
    return { status: response.status, text: await response.text() };
  }

  /** The status and outcome of a thought: `200 SUCCESS`, `200 AUDIT_FAILURE`, `503 STORAGE_LOW`. */
  async step({ integrated = false } = {}): Promise<string> {
    const proposal = { schema_version: '1.0.0', id: randomUUID(), reasoning: 'A thought.', action: 'THINK', args: {} };
    const { status, text } = await this.ask(`/agents/${this.#run}/steps`, {
      method: 'POST',
      body: JSON.stringify(proposal),
      headers: integrated ? { prefer: 'wait=integrated' } : {},
    });
    const { outcome, error, code } = JSON.parse(text) as {
      outcome?: string;
      error?: { error_code: string } | null;
      code?: string;
    };
    return `${status} ${code ?? error?.error_code ?? outcome ?? ''}`;
  }

  async health(): Promise<{ readonly status: number; readonly reasons: readonly string[] }> {
    const { status, text } = await this.ask('/health');
    const { checks = [] } = JSON.parse(text) as { checks?: { name: string; reason: string }[] };
    return { status, reasons: checks.map(({ name, reason }) => `${name}: ${reason}`) };
  }

  /** The text of the admin listener; empty if nothing listens. */
  async admin(path: string): Promise<string> {
    try {
      return await (await fetch(`${this.adminUrl}${path}`)).text();
    } catch {
      return '';
    }
  }

  untilReady(): Promise<void> {
    return this.until('it is ready', async () => (await this.admin('/readyz')) === 'ok');
  }

  /** What another command prints that runs on the same home, in the same mounts. */
  command(...args: readonly string[]): string {
    const { main } = this.#options;
    const namespace = this.#options.namespace ?? null;
    const flags = namespace?.includes('-r') === true ? ['-U', '--preserve-credentials'] : [];
    const enter = namespace === null ? [] : ['nsenter', '-t', String(this.pid), '-m', ...flags];
    const home = join(this.#disk, '.turnpike');
    const argv: readonly string[] = [...enter, process.execPath, main, ...args, '--home', home];
    const { stdout, stderr } = spawnSync(argv[0] ?? '', argv.slice(1), { encoding: 'utf8', cwd: '/' });
    return stdout + stderr;
  }

  /** Takes all space of its disk, and the space of the reserve. */
  fillDisk(): void {
    rmSync(this.path('.turnpike/ledger.reserve'), { force: true });
    fill(this.path('filler'));
  }

  freeDisk(): void {
    rmSync(this.path('filler'));
  }

  /** Reports an error to the file system of its disk, an ext4 that becomes read-only after one. */
  failFileSystem(): void {
    const [, device = ''] = /^\/dev\/(loop\d+)$/m.exec(this.#stdout) ?? [];
    writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, '1');
  }

  /** Ends it at once. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), WAIT_MS);
    const code = await this.ended;
    clearTimeout(late);
    return code;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** As a client that accepts every certificate. */
async function askUnverified(
  url: string,
  { method = 'GET', body = '', headers = {} }: AskOptions,
): Promise<{ readonly status: number; readonly text: string }> {
  const sent = request(url, { method, headers, rejectUnauthorized: false, agent: false });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await readText(response) };
}

/** Until not one more byte fits. */
function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (let bytes = 1_048_576; bytes >= 512; bytes /= 2) {
      const block = Buffer.alloc(bytes, 1);
      try {
        for (;;) writeSync(descriptor, block);
      } catch {
        // Smaller blocks may still fit.
      }
    }
  } finally {
    closeSync(descriptor);
  }
  if (statfsSync(file).bavail !== 0) throw new Error('the disk is not full');
}
