// Causes each failure of the table for real, on a process that serves, and removes it as the operator would.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startPostgres, type Postgres } from '../../fixtures/postgres.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ServedProcess, type ServedOptions } from './served-process.js';
import { createSettableClock } from './set-clock.js';

/** What a cause needs of the test. */
export interface Ground {
  /** The command, from `buildMain`. */
  readonly main: string;
  /** An empty folder on a disk. */
  readonly folder: string;
  /** The flags with which `unshare` gives a process its own mounts; null without the right. */
  readonly namespace: readonly string[] | null;
  /** Ends with the test, in reverse order. */
  readonly atEnd: (work: () => unknown) => void;
}

/** A process in which the failure has happened. */
export interface FailedProcess {
  readonly process: ServedProcess;
  /** Removes the failure; the process must then be ready. Null if the process has ended, or must be started again. */
  readonly remedy: (() => unknown) | null;
}

/** @returns null if this machine does not allow it */
export type Cause = (ground: Ground) => Promise<FailedProcess | null>;

const HOURS_2 = 7_200;

/** By the first cell of the row. */
export const CAUSES: Readonly<Record<string, Cause>> = {
  'the disk is full': async (ground) => {
    if (ground.namespace === null) return null;
    const process = await serve(ground, { mount: 'mount -t tmpfs -o size=16m tmpfs "$DISK"' });
    process.fillDisk();
    await process.step();
    return { process, remedy: () => process.freeDisk() };
  },
  'the file system has become read-only': async (ground) => {
    if (ground.namespace === null || !canMountImages(ground.namespace)) return null;
    const image = join(ground.folder, 'image');
    const process = await serve(ground, {
      mount: [
        `truncate -s 64M "${image}"`,
        `mkfs.ext4 -q -F "${image}"`,
        `mount -o loop,errors=remount-ro "${image}" "$DISK"`,
        'findmnt -no SOURCE "$DISK"',
      ].join('\n'),
    });
    process.failFileSystem();
    await process.step();
    return { process, remedy: null };
  },
  'the clock is set forward by two hours': (ground) => setClock(ground, HOURS_2),
  'the clock is set back by two hours': (ground) => setClock(ground, -HOURS_2),
  'the key of the ledger can be read by others': async (ground) => {
    const process = await serve(ground);
    const key = process.path('.turnpike/keys/ledger.key');
    chmodSync(key, 0o644);
    return { process, remedy: () => chmodSync(key, 0o600) };
  },
  'the port is taken': async (ground) => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((done) => other.once('listening', done));
    ground.atEnd(() => other.close());
    const { port } = other.address() as AddressInfo;
    const process = start(ground, { command: `serve --port ${port} --stored-tokens` });
    return { process, remedy: null };
  },
  'the database is down': async (ground) => {
    const database = await openDatabase(ground);
    if (database === null) return null;
    const { process, server } = database;
    let up = (): void => undefined;
    const isDown = new Promise<void>((down) => {
      void server.restart(async () => {
        down();
        await new Promise<void>((resolve) => (up = resolve));
      });
    });
    await isDown;
    await process.step().catch(() => undefined);
    return { process, remedy: () => up() };
  },
  'the database has lost commits': async (ground) => {
    const database = await openDatabase(ground);
    if (database === null) return null;
    const { process, server, data } = database;
    const copy = (from: string, to: string): Promise<void> => {
      execFileSync('cp', ['-a', from, to]);
      return Promise.resolve();
    };
    await server.restart(() => copy(data, `${data}.old`));
    await process.untilReady();
    await process.begin();
    await process.step({ integrated: true });
    await server.restart(() => {
      rmSync(data, { recursive: true });
      return copy(`${data}.old`, data);
    });
    return { process, remedy: null };
  },
};

function start({ main, folder, namespace, atEnd }: Ground, options: Partial<ServedOptions> = {}): ServedProcess {
  const process = ServedProcess.start({ main, folder, namespace, ...options });
  atEnd(() => process.end());
  return process;
}

/** A process that is ready and has an agent. */
async function serve(ground: Ground, options: Partial<ServedOptions> = {}): Promise<ServedProcess> {
  const process = start(ground, options);
  await process.begin();
  await process.untilReady();
  // The key of the case exists from now on.
  if ((await process.step()) !== '200 SUCCESS') throw new Error(`no step: ${process.stderr}`);
  return process;
}

async function setClock(ground: Ground, seconds: number): Promise<FailedProcess | null> {
  const clock = createSettableClock(ground.folder);
  if (clock === null) return null;
  const process = await serve(ground, { env: clock.env });
  clock.set(seconds);
  return { process, remedy: null };
}

interface ServedDatabase {
  readonly process: ServedProcess;
  readonly server: Postgres;
  /** The folder of its data. */
  readonly data: string;
}

async function openDatabase(ground: Ground): Promise<ServedDatabase | null> {
  const folder = tempFolder('pg');
  const server = await startPostgres({ folder, isDurable: true });
  if (server === null) return null;
  ground.atEnd(() => server.stop());
  const process = await serve(ground, { namespace: null, init: `init --store ${server.url}` });
  return { process, server, data: join(folder, 'data') };
}

/** Whether this process may mount a file system from a file: not in a user namespace. */
function canMountImages(namespace: readonly string[]): boolean {
  const isPossible = !namespace.includes('-r') && spawnSync('losetup', ['-f']).status === 0;
  if (!isPossible) process.stdout.write('skipped: a file system that becomes read-only, which needs a loop device\n');
  return isPossible;
}
