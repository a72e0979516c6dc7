// A PostgreSQL server for a demonstration: in a temporary folder, on a free loopback port, with the settings of a
// durable server.

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

const START_MS = 30_000;

/**
 * @param more further settings, as `name=value`
 * @returns the URL and the process id of the server, and `stop` @throws if PostgreSQL is not installed
 */
export async function startPostgres(folder, more = []) {
  const bin = programs();
  if (bin === undefined) throw new Error('PostgreSQL is not installed: initdb and postgres were not found');
  const home = join(folder, 'postgres');
  mkdirSync(home);
  // PostgreSQL refuses to run as root.
  const owner = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  if (owner.uid !== undefined) {
    chmodSync(folder, 0o711);
    chownSync(home, owner.uid, owner.gid);
  }
  const as = { ...owner, cwd: home, env: { ...process.env, LC_ALL: 'C.UTF-8' }, stdio: 'ignore' };
  const data = join(home, 'data');
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'], as);
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${home}`, ...more];
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((one) => ['-c', one])], as);
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const stop = async () => {
    server.kill('SIGQUIT');
    await ended;
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  for (const end = Date.now() + START_MS; !(await answers(url)); await pause(50)) {
    if (server.exitCode !== null || Date.now() > end) throw new Error('PostgreSQL did not start');
  }
  return { url, pid: server.pid, stop };
}

const idOf = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));

function programs() {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, 'bin')), ...process.env.PATH.split(delimiter)];
  return folders.find((each) => ['initdb', 'postgres'].every((name) => existsSync(join(each, name))));
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function answers(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}
