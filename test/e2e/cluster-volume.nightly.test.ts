// `turnpike serve` without the sandbox volume, in front of workers that have it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { think, write } from '../interfaces/cli/fake-io.js';
import { built } from '../docs/built.js';
import { startPostgres } from '../fixtures/postgres.js';
import { CommandCluster, MS_MAX, until, type Server } from './cluster-harness.js';
import { endAll } from './process.js';

const postgres = await startPostgres({ isDurable: true });
const campaign = postgres === null ? describe.skip : describe;
let cluster: CommandCluster;

beforeAll(() => built(), MS_MAX);
afterAll(() => postgres?.stop());
beforeEach(() => {
  if (postgres !== null) cluster = new CommandCluster(postgres);
});
afterEach(async () => {
  endAll();
  if (postgres !== null) await cluster.remove();
});

const post = (url: string, token: string, body: string, prefer = ''): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(prefer === '' ? {} : { prefer }),
    },
    body,
  });
const steps = (server: Pick<Server, 'url'>, run_id: string): string => `${server.url}/api/v1/agents/${run_id}/steps`;

campaign('a worker without the sandbox volume', () => {
  test(
    'answers steps with 421 and the address of a worker that has it, and everything else itself',
    async () => {
      const first = await cluster.initHome('a', '--without-volume');
      expect(first).toMatchObject({ status: 2, stderr: expect.stringContaining('the first home of a ledger') });
      await cluster.init();
      const named = await cluster.initHome('f', '--keys', 'a/keys', '--without-volume', '--sandbox', 'a/sandbox');
      expect(named).toMatchObject({ status: 2, stderr: expect.stringContaining('omit --sandbox and --volume') });
      expect(await cluster.initHome('f', '--keys', 'a/keys', '--without-volume')).toMatchObject({
        status: 0,
        stdout: expect.stringContaining('other workers execute the steps'),
      });
      const agent = await cluster.token('agent-one', 'SANDBOX_AGENT', 'act');
      const reader = await cluster.token('rita', 'REVIEWER', 'observe');
      const front = await cluster.serve('f');
      const health = await front.ask('/health', reader);
      expect(health).toMatchObject({ status: 200, text: expect.not.stringContaining('unsafe') });
      const started = await front.ask('/agents', agent, '{}');
      expect(started).toMatchObject({ status: 201 });
      const { run_id } = JSON.parse(started.text) as { run_id: string };
      const alone = await post(steps(front, run_id), agent, think());
      expect([alone.status, alone.headers.get('turnpike-worker')]).toEqual([421, null]);
      const worker = await cluster.serve('a', '--advertise', 'http://worker.example:7391');
      await until(async () => (await cluster.status()).performers.length === 2);
      await until(async () => (await post(steps(front, run_id), agent, think())).headers.has('turnpike-worker'));
      const refused = await post(steps(front, run_id), agent, write('/sandbox/a.md', 'one'));
      expect(refused.status).toBe(421);
      expect(refused.headers.get('turnpike-worker')).toBe('http://worker.example:7391');
      expect(await refused.json()).toMatchObject({ code: 'VOLUME_ELSEWHERE', status: 421 });
      const mcp = await post(`${front.url}/mcp`, agent, '{}');
      expect([mcp.status, mcp.headers.get('turnpike-worker')]).toEqual([421, 'http://worker.example:7391']);
      const done = await post(steps(worker, run_id), agent, write('/sandbox/a.md', 'one'), 'wait=integrated');
      expect([done.status, done.headers.get('preference-applied')]).toEqual([200, 'wait=integrated']);
      expect(await done.text()).toContain('SUCCESS');
      const trace = await front.ask(`/runs/${run_id}/tree`, reader);
      expect(trace).toMatchObject({ status: 200, text: expect.stringContaining(run_id) });
      expect((await cluster.status()).performers.map(({ volume_id }) => volume_id === null)).toEqual([true, false]);
      const ended = await post(`${front.url}/api/v1/agents/${run_id}/end`, agent, '{}');
      expect(await ended.json()).toMatchObject({ state: 'completed' });
      expect(existsSync(join(cluster.folder, 'f/sandbox'))).toBe(false);
      const acted = await cluster.run('run', 'none.jsonl', '--home', 'f');
      expect(acted.status).not.toBe(0);
      await cluster.verify();
      const unsafe = await cluster.initHome('u', '--keys', 'a/keys', '--sandbox', 'a/sandbox', '--unsafe-shared');
      expect(unsafe).toMatchObject({ status: 0 });
      const shown = await cluster.serve('u');
      expect((await shown.ask('/health', reader)).text).toContain('"unsafe_shared":true');
      for (const server of [front, worker, shown]) expect(await server.command.stop()).toMatchObject({ status: 0 });
    },
    MS_MAX,
  );
});
