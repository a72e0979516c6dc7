// The examples of the operating page, with the real HAProxy and nginx in front of two services.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { request } from 'node:http';
import { ROOT } from '../../root.js';
import { freePort } from '../../fixtures/free-port.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { HttpBench } from '../http/http-harness.js';

const PUBLIC = 'turnpike.example.org';
const READY_MS = 30_000;

const isInstalled = (program: string): boolean =>
  [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'].some((folder) => existsSync(join(folder, program)));

function isUsable(program: string): boolean {
  if (isInstalled(program)) return true;
  if (process.env['CI'] !== undefined) throw new Error(`CI must have ${program}`);
  process.stdout.write(`skipped: what needs ${program}, which this machine does not have\n`);
  return false;
}

interface Ports {
  readonly port: number;
  readonly admin: number;
}

/** The example of the page, with other addresses. */
function example(program: string, front: number, workers: readonly Ports[]): string {
  const page = readFileSync(join(ROOT, 'docs/operating-postgresql.md'), 'utf8');
  const [, text = ''] =
    new RegExp(`<!-- test: load-balancers ${program} -->\n\`\`\`text\n([^]*?)\n\`\`\``).exec(page) ?? [];
  const changed = workers.reduce(
    (config, { port, admin }, at) =>
      config.replace(`10.0.0.1${at + 1}:7391`, `127.0.0.1:${port}`).replace('port 7392', `port ${admin}`),
    text.replace('0.0.0.0:8080', `127.0.0.1:${front}`),
  );
  expect(changed).not.toMatch(/10\.0\.0\.|:8080|739[12]/);
  return changed;
}

const PROXIES = {
  haproxy: (text: string, folder: string): readonly string[] => {
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(file, `${text}\n`);
    return ['-db', '-f', file];
  },
  nginx: (text: string, folder: string): readonly string[] => {
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    const file = join(folder, 'nginx.conf');
    const http = `http {\naccess_log off;\n${paths.join('\n')}\n${text}\n}`;
    writeFileSync(
      file,
      `daemon off;\nmaster_process off;\npid ${join(folder, 'pid')};\nerror_log stderr;\nevents {}\n${http}\n`,
    );
    return ['-p', folder, '-c', file];
  },
} as const;

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** `fetch` sets the Host header itself. */
const ask = (port: number, path: string, token: string, host: string = PUBLIC): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { host, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) };
    request({ host: '127.0.0.1', port, path, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => (body += part));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    })
      .on('error', reject)
      .end();
  });

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + READY_MS;
  while (!(await holds().catch(() => false))) {
    if (Date.now() > end) throw new Error('it did not become so in time');
    await sleep(50);
  }
}

describe.each(Object.keys(PROXIES) as (keyof typeof PROXIES)[])('behind %s', (program) => {
  let child: ChildProcess | null = null;
  let folder = '';
  const benches: HttpBench[] = [];
  afterEach(async () => {
    child?.kill('SIGKILL');
    for (const bench of benches.splice(0)) {
      await bench.server.close();
      await bench.bench.close();
    }
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });

  const start = async (hosts: readonly string[]): Promise<number> => {
    const serving = { hosts, admin: { host: '127.0.0.1', port: 0 } };
    benches.push(await HttpBench.open({}, serving), await HttpBench.open({}, serving));
    folder = tempFolder('load-balancer');
    mkdirSync(folder, { recursive: true });
    const front = await freePort();
    const text = example(
      program,
      front,
      benches.map(({ server }) => ({ port: server.port, admin: server.admin?.port ?? 0 })),
    );
    const argv = PROXIES[program](text, folder);
    const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}${delimiter}/usr/sbin` };
    child = spawn(program, [...argv], { env, stdio: 'ignore' });
    child.unref();
    return front;
  };

  (isUsable(program) ? test : test.skip)(
    'a request with the public name is served with --allow-host, and by the other worker once one is gone',
    async () => {
      const front = await start([PUBLIC]);
      const [first, second] = benches;
      const paths = Array.from({ length: 20 }, (_, n) => `/api/v1/runs/run_${String(n).padStart(21, '0')}`);
      // Each worker has tokens of its own, so its answer shows which one was asked.
      const asked = async (bench: HttpBench | undefined): Promise<readonly boolean[]> => {
        const token = bench?.token({ rights: ['observe'] }) ?? '';
        const answers = await Promise.all(paths.map((path) => ask(front, path, token)));
        return answers.map(({ status, body }) => status === 404 && body.includes('RUN_UNKNOWN'));
      };
      await until(async () => (await asked(first)).includes(true) && (await asked(second)).includes(true));
      const [byFirst, bySecond] = [await asked(first), await asked(second)];
      // Each run has its worker.
      expect(byFirst.map((isFirst, at) => isFirst !== bySecond[at])).toEqual(paths.map(() => true));
      await first?.server.close();
      await until(async () => !(await asked(second)).includes(false));
    },
    120_000,
  );

  (isUsable(program) ? test : test.skip)(
    'without --allow-host no request is served: HOST_NOT_SERVED',
    async () => {
      const front = await start([]);
      await until(async () => (await ask(front, '/api/v1/me', '')).status === 403);
      expect((await ask(front, '/api/v1/me', '')).body).toContain('HOST_NOT_SERVED');
      const direct = await ask(benches[0]?.server.port ?? 0, '/api/v1/me', '');
      expect(direct).toMatchObject({ status: 403, body: expect.stringContaining('HOST_NOT_SERVED') });
    },
    120_000,
  );

  (isUsable(program) ? test : test.skip)('its program accepts the example as it is on the page', () => {
    folder = tempFolder('load-balancer');
    mkdirSync(folder, { recursive: true });
    const argv = PROXIES[program](
      example(program, 18_081, [
        { port: 17_001, admin: 17_002 },
        { port: 17_003, admin: 17_004 },
      ]),
      folder,
    );
    const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}${delimiter}/usr/sbin` };
    execFileSync(program, [program === 'haproxy' ? '-c' : '-t', ...argv.filter((one) => one !== '-db')], {
      env,
      stdio: 'pipe',
    });
  });
});
