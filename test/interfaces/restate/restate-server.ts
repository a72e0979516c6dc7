// Servers of Restate on loopback: one node, or a cluster with a replicated log. The server is a package of 216 MB for
// one platform, so it is no dependency: it is installed on demand, at one version, in the cache folder of the packages.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../fixtures/free-port.js';
import { ROOT } from '../../sources.js';

export const SERVER_VERSION = '1.7.12';
const PACKAGE = `@restatedev/restate-server-${process.platform}-${process.arch}`;
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
const INSTALL_MS = 180_000;
const START_MS = 180_000;
const PARTITIONS = 4;

/** @returns the path of the server; null, and prints why, where it cannot be installed */
export function restateServer(): string | null {
  const folder = join(ROOT, 'node_modules/.cache', `restate-server-${SERVER_VERSION}`);
  const binary = join(folder, 'node_modules', PACKAGE, 'bin/restate-server');
  if (existsSync(binary)) return binary;
  const skip = (why: string): null => {
    process.stdout.write(`skipped: what needs the server of Restate, because ${why}\n`);
    return null;
  };
  if (!PLATFORMS.includes(`${process.platform}-${process.arch}`)) return skip('it has no package for this platform');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${PACKAGE}@${SERVER_VERSION}`];
  try {
    execFileSync('npm', install, { cwd: folder, stdio: 'ignore', timeout: INSTALL_MS });
  } catch {
    return skip(`the registry did not provide ${PACKAGE}@${SERVER_VERSION}`);
  }
  return existsSync(binary) ? binary : skip('its package has another layout');
}

export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

/** One node of a cluster. */
export class RestateNode {
  readonly ingress: string;
  readonly admin: string;
  readonly #start: () => ChildProcess;
  #process: ChildProcess | null = null;

  constructor(start: () => ChildProcess, ingressPort: number, adminPort: number) {
    this.#start = start;
    this.ingress = `http://127.0.0.1:${ingressPort}`;
    this.admin = `http://127.0.0.1:${adminPort}`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  start(): void {
    this.#process = this.#start();
  }

  async kill(): Promise<void> {
    const server = this.#process;
    this.#process = null;
    if (server === null || server.exitCode !== null) return;
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    await exit;
  }

  /** Waits until the node answers and, with `isReady`, accepts requests. */
  async answering(): Promise<void> {
    const deadline = Date.now() + START_MS;
    for (;;) {
      const answers = await Promise.all(
        [`${this.ingress}/restate/health`, `${this.admin}/health`].map((url) =>
          fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
            (response) => response.ok,
            () => false,
          ),
        ),
      );
      if (answers.every((isOk) => isOk)) return;
      if (Date.now() > deadline) throw new Error(`a node of Restate does not answer at ${this.admin}`);
      await sleep(100);
    }
  }
}

/** Starts a cluster of `count` nodes; its metadata and its log are replicated if there are three. */
export async function startRestate(binary: string, folder: string, count: 1 | 3): Promise<readonly RestateNode[]> {
  const ports = await freePorts(3 * count);
  const portOf = (index: number, offset: number): number => ports[3 * index + offset] ?? 0;
  const addresses = Array.from({ length: count }, (_, index) => `"http://127.0.0.1:${portOf(index, 0)}/"`).join(', ');
  const nodes = Array.from({ length: count }, (_, index) => {
    const [fabric, ingress, admin] = [0, 1, 2].map((offset) => portOf(index, offset));
    const base = join(folder, `node-${index}`);
    mkdirSync(base, { recursive: true });
    const config = `
cluster-name = "turnpike"
node-name = "node-${index}"
base-dir = "${base}"
auto-provision = ${index === 0}
listen-mode = "tcp"
bind-address = "127.0.0.1:${fabric}"
advertised-address = "http://127.0.0.1:${fabric}/"
default-num-partitions = ${PARTITIONS}
default-replication = ${count === 1 ? 1 : 2}
rocksdb-total-memory-size = "256.0 MiB"
disable-telemetry = true
log-filter = "warn"
log-disable-ansi-codes = true

[metadata-client]
type = "replicated"
addresses = [${addresses}]

[bifrost]
default-provider = "replicated"

[ingress]
bind-address = "127.0.0.1:${ingress}"

[admin]
bind-address = "127.0.0.1:${admin}"
disable-web-ui = true

[worker.invoker]
http2-streams-per-connection-limit = 4
`;
    const file = join(base, 'restate.toml');
    writeFileSync(file, config);
    const log = openSync(join(base, 'log.txt'), 'a');
    // A node that is killed leaves its temporary folders.
    const env = { ...process.env, TMPDIR: base };
    const start = (): ChildProcess =>
      spawn(binary, ['--config-file', file, '--no-logo'], { cwd: base, env, stdio: ['ignore', log, log] });
    return new RestateNode(start, ingress ?? 0, admin ?? 0);
  });
  for (const node of nodes) node.start();
  await Promise.all(nodes.map((node) => node.answering()));
  return nodes;
}

/** Registers the address of the workers. */
export async function register(node: RestateNode, uri: string): Promise<void> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const answer = await fetch(`${node.admin}/deployments`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri, force: true }),
    }).then(
      async (response) => (response.ok ? null : await response.text()),
      (error: unknown) => String(error),
    );
    if (answer === null) return;
    if (Date.now() > deadline) throw new Error(`Restate did not accept the deployment: ${answer}`);
    await sleep(200);
  }
}
