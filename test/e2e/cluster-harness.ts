// Several processes of the command on one ledger in PostgreSQL: real processes, homes, addresses and signals.

import type { statusJson } from '../../src/features/cluster/commands/cluster-commands.js';
import { expect } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { execute } from '../stores/postgres/postgres-harness.js';
import type { Postgres } from '../fixtures/postgres.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { Command, type Ended } from './process.js';

export const MS_MAX = 240_000;
const ADDRESS = /(http:\/\/127\.0\.0\.1:\d+)(?:\/#token=(\S+))?\n/;
let schemas = 0;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** A process that serves the ledger. */
export interface Server {
  readonly command: Command;
  readonly url: string;
  ask(path: string, token: string, body?: string): Promise<Answer>;
}

/** Repeats until the check passes; the time limit is that of the test. */
export async function until(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await delay(100);
}

/** What `cluster status --json` prints. */
type StatusJson = ReturnType<typeof statusJson>;

export class CommandCluster {
  readonly folder = tempFolder();
  readonly schema: string;
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
    schemas += 1;
    this.schema = `cluster_${process.pid}_${schemas}`;
  }

  get url(): string {
    return this.#postgres.url;
  }

  run(...argv: string[]): Promise<Ended> {
    return new Command(argv, this.folder).ended;
  }

  /** Creates the ledger with the home `a`, and a home for each further name. */
  async init(...others: readonly string[]): Promise<void> {
    expect(await this.initHome('a')).toMatchObject({ status: 0 });
    for (const home of others) {
      expect(await this.initHome(home, '--keys', 'a/keys', '--sandbox', 'a/sandbox')).toMatchObject({ status: 0 });
    }
  }

  initHome(home: string, ...options: readonly string[]): Promise<Ended> {
    return this.run(
      'init',
      '--template',
      'reference',
      '--store',
      this.url,
      '--schema',
      this.schema,
      '--home',
      home,
      ...options,
    );
  }

  async token(actor: string, role: string, ...rights: readonly string[]): Promise<string> {
    // The lane of agents requires a case.
    const bound = role === 'SANDBOX_AGENT' ? ['--case', 'case-local'] : [];
    const person = ['--actor', actor, '--role', role, ...rights.flatMap((right) => ['--right', right]), ...bound];
    const { status, stdout } = await this.run('token', '--home', 'a', ...person);
    expect(status).toBe(0);
    return stdout.trim();
  }

  async serve(home: string, ...options: readonly string[]): Promise<Server> {
    const argv = ['serve', '--home', home, '--port', '0', '--stored-tokens', ...options];
    const command = new Command(argv, this.folder);
    const [, url = ''] = await command.says(ADDRESS);
    const ask = async (path: string, token: string, body?: string): Promise<Answer> => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const init = body === undefined ? { headers } : { method: 'POST', headers, body };
      const response = await fetch(`${url}/api/v1${path}`, init);
      return { status: response.status, text: await response.text() };
    };
    return { command, url, ask };
  }

  async status(): Promise<StatusJson> {
    const { status, stdout } = await this.run('cluster', 'status', '--home', 'a', '--json');
    expect(status).toBe(0);
    return JSON.parse(stdout) as StatusJson;
  }

  async verify(): Promise<void> {
    expect(await this.run('ledger', 'verify', '--home', 'a')).toMatchObject({ status: 0, stderr: '' });
    // 4: there is nothing to replay.
    expect([0, 4]).toContain((await this.run('replay', '--home', 'a')).status);
  }

  async remove(): Promise<void> {
    await execute(this.url, `SET client_min_messages TO error; DROP SCHEMA IF EXISTS ${this.schema} CASCADE`);
  }
}
