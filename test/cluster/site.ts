// Where one case at a time runs: a PostgreSQL server of its own, on a small file system if the process may mount one.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgres, type Postgres } from '../fixtures/postgres.js';
import type { CaseOptions } from './campaign.js';

/** The size of the file system of the server, in MiB: little more than it needs. */
const DISK_MIB = 400;
const SETTINGS = ['max_wal_size=64MB', 'min_wal_size=32MB', 'max_connections=60', 'shared_buffers=32MB'];

export class Site {
  readonly options: Pick<CaseOptions, 'server' | 'smallDisk' | 'folder'>;
  readonly #server: Postgres;
  #disk: string | null;

  private constructor(server: Postgres, disk: string | null, folder: string) {
    this.#server = server;
    this.#disk = disk;
    this.options = { server, smallDisk: disk, folder };
  }

  /** @returns null if this machine has no PostgreSQL */
  static async open(folder: string, say: (text: string) => void): Promise<Site | null> {
    const disk = join(folder, 'disk');
    // The server runs as another user.
    mkdirSync(folder, { mode: 0o711 });
    mkdirSync(disk);
    const isMounted = mount(disk);
    if (!isMounted) say('skipped: full disks, because this process may not mount a file system');
    const server = await startPostgres({ isDurable: true, folder: disk, settings: SETTINGS });
    if (server !== null) return new Site(server, isMounted ? disk : null, folder);
    if (isMounted) execFileSync('umount', ['-l', disk]);
    return null;
  }

  async close(): Promise<void> {
    await this.#server.stop();
    this.unmount();
  }

  unmount(): void {
    if (this.#disk !== null) execFileSync('umount', ['-l', this.#disk]);
    this.#disk = null;
  }
}

/** Mounts a file system of limited size. @returns whether this process may */
function mount(disk: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
