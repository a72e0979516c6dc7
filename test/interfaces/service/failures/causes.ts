// Causes each failure of the table for real, on a process that serves, and removes it as the operator would.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { makeCertificate } from '../../../fixtures/certificate.js';
import { AUDIENCE, OidcIssuer } from '../../../fixtures/oidc-issuer.js';
import { startPostgres, type Postgres } from '../../../fixtures/postgres.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
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
  'the key of the ledger cannot be read': async (ground) => {
    const wrapper = withoutOverride();
    if (wrapper === null) return null;
    const process = await serve(ground, { wrapper });
    const key = process.path('.turnpike/keys/ledger.key');
    chmodSync(key, 0);
    return { process, remedy: () => chmodSync(key, 0o600) };
  },
  'the certificate has expired': async (ground) => {
    if (spawnSync('openssl', ['version']).status !== 0) return null;
    const { cert, key } = makeCertificate(ground.folder, 'server', -1);
    const process = start(ground, { args: ['--tls-cert', cert, '--tls-key', key] });
    await process.begin();
    assert.equal(await verifyingClient(process.url, cert), 'CERT_HAS_EXPIRED');
    const renew = async (): Promise<void> => {
      const renewed = makeCertificate(ground.folder, 'renewed');
      renameSync(renewed.key, key);
      renameSync(renewed.cert, cert);
      await process.untilReady();
      assert.equal(await verifyingClient(`${process.url}/api/v1/health`, cert), '401');
    };
    return { process, remedy: renew };
  },
  'the identity provider is down': async (ground) => {
    const issuer = await OidcIssuer.open();
    const { url, port } = issuer;
    const file = join(ground.folder, 'identities.yaml');
    writeFileSync(file, identitiesOf(url));
    const process = await serve(ground, {
      prepare: `cp "${file}" contract/policy/identities.yaml && turnpike policy pin >&2`,
      args: ['--oidc-issuer', url, '--oidc-audience', AUDIENCE],
    });
    const tokenOf = (from: OidcIssuer): Promise<string> => from.token({ groups: ['counsel'] });
    const statusOf = async (token: string): Promise<number> =>
      (await process.ask('/runs', { headers: { authorization: `Bearer ${token}` } })).status;
    const token = await tokenOf(issuer);
    await issuer.close();
    assert.equal(await statusOf(token), 503);
    const startAgain = async (): Promise<void> => {
      const again = await OidcIssuer.open('ES256', port);
      ground.atEnd(() => again.close());
      // No token arrives until then: a process that is not ready gets no requests.
      await process.untilReady();
      assert.equal(await statusOf(await tokenOf(again)), 200);
    };
    return { process, remedy: startAgain };
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

/** Members of `counsel` read runs. */
const identitiesOf = (issuer: string): string => `version: v1
contract_version: v1
last_updated: 2026-11-25
issuers:
  - issuer: ${issuer}
    mappings:
      - id: counsel
        claims: { groups: [counsel] }
        actor: { claim: sub }
        role: SANDBOX_AGENT
        case: any
        rights: [observe]
`;

/** What a client sees that verifies certificates: a status, or the code of an error. */
async function verifyingClient(url: string, cert: string): Promise<string> {
  const sent = request(url, { ca: readFileSync(cert), agent: false }).end();
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    return String(response.statusCode);
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

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

/** Runs a process as a user who cannot read every file: root has to give up its right. Null if that is impossible. */
function withoutOverride(): string | null {
  if (process.getuid?.() !== 0) return '';
  const wrapper = 'setpriv --bounding-set=-dac_override,-dac_read_search';
  if (spawnSync('sh', ['-c', `${wrapper} true`]).status === 0) return wrapper;
  process.stdout.write('skipped: a key without permissions, which needs setpriv\n');
  return null;
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
