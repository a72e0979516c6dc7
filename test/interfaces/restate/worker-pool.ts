// Two workers behind one address: a proxy of TCP connections, as a load balancer would be.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('restate-worker.js', import.meta.url));
const START_MS = 60_000;

/** One worker process. */
export class RestateWorker {
  readonly port: number;
  readonly #args: readonly string[];
  #process: ChildProcess | null = null;

  constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Resolves when it serves. */
  async start(): Promise<void> {
    const worker = spawn(process.execPath, [PROGRAM, String(this.port), ...this.#args], {
      stdio: ['ignore', 'pipe', process.env['RESTATE_CHAOS_LOG'] === undefined ? 'ignore' : 'inherit'],
    });
    this.#process = worker;
    await once(worker.stdout, 'data', { signal: AbortSignal.timeout(START_MS) });
    worker.stdout.resume();
  }

  async kill(): Promise<void> {
    const worker = this.#process;
    this.#process = null;
    if (worker === null || worker.exitCode !== null) return;
    const exit = once(worker, 'exit');
    worker.kill('SIGKILL');
    await exit;
  }
}

/** Connects each client to the next worker that answers. */
export async function startProxy(port: number, workers: readonly RestateWorker[]): Promise<Server> {
  let next = 0;
  const forward = (client: Socket, left: number): void => {
    const worker = workers[next++ % workers.length];
    if (worker === undefined || left === 0) return void client.destroy();
    const upstream = connect(worker.port, '127.0.0.1');
    upstream.once('error', () => {
      if (upstream.bytesRead === 0 && client.bytesRead === 0) forward(client, left - 1);
      else client.destroy();
    });
    upstream.once('connect', () => {
      client.pipe(upstream).pipe(client);
      client.once('error', () => upstream.destroy());
      client.once('close', () => upstream.destroy());
      upstream.once('close', () => client.destroy());
    });
  };
  const server = createServer((client) => {
    client.on('error', () => undefined);
    forward(client, workers.length);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
