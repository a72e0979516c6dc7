// Several `turnpike serve` and `turnpike worker` on one ledger in PostgreSQL, as a shell runs them.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttpTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { line, think, write } from '../interfaces/cli/fake-io.js';
import { built } from '../docs/built.js';
import { startPostgres } from '../fixtures/postgres.js';
import { call } from '../interfaces/mcp/mcp-harness.js';
import { CommandCluster, MS_MAX, until, type Server } from './cluster-harness.js';
import { Command, endAll } from './process.js';

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

const AGENT = ['agent-one', 'SANDBOX_AGENT', 'act'] as const;
const READER = ['rita', 'REVIEWER', 'observe'] as const;

async function startRun(server: Server, token: string): Promise<string> {
  const { status, text } = await server.ask('/agents', token, '{}');
  expect({ status, text }).toMatchObject({ status: 201 });
  return (JSON.parse(text) as { run_id: string }).run_id;
}

async function step(server: Server, token: string, run_id: string, proposal = think()): Promise<unknown> {
  const { status, text } = await server.ask(`/agents/${run_id}/steps`, token, proposal);
  expect({ status, text }).toMatchObject({ status: 200 });
  return (JSON.parse(text) as { outcome: unknown }).outcome;
}

async function healthOf(server: Server, token: string): Promise<number> {
  return (await server.ask('/health', token)).status;
}

async function mcpClient({ url }: Server, token: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
  return client;
}

async function statelessClient({ url }: Server, token: string): Promise<ModernClient> {
  const client = new ModernClient(
    { name: 'test', version: '2' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new ModernHttpTransport(new URL(`${url}/mcp`), { requestInit }));
  return client;
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

campaign('turnpike init --store', () => {
  test(
    'creates a ledger, joins it with its keys only, and stores no password',
    async () => {
      const url = cluster.url.replace('postgres@', 'postgres:unsaid-password@');
      const place = ['--store', url, '--schema', cluster.schema];
      const created = await cluster.run('init', '--template', 'reference', ...place, '--home', 'a', '--volume', 'main');
      expect(created).toMatchObject({ status: 0, stdout: expect.stringContaining('created the ledger') });
      const refused = await cluster.run('init', ...place, '--home', 'b');
      expect(refused).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('name the key folder of the ledger'),
      });
      await cluster.run('init', '--home', 'other', '--contract', 'other-contract');
      const foreign = await cluster.run('init', ...place, '--home', 'b', '--keys', 'other/keys');
      expect(foreign).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('mount the key folder of the ledger'),
      });
      const apart = await cluster.run('init', ...place, '--home', 'b', '--keys', 'a/keys');
      expect(apart).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('not the sandbox volume of the ledger'),
      });
      const folders = ['--keys', 'a/keys', '--sandbox', 'a/sandbox'];
      const joined = await cluster.run('init', ...place, '--home', 'b', ...folders, '--json');
      expect(JSON.parse(joined.stdout)).toMatchObject({ ledger: 'joined', volume: { name: 'main' } });
      const renamed = await cluster.run('init', ...place, '--home', 'c', ...folders, '--volume', 'second');
      expect(renamed).toMatchObject({ status: 2, stderr: expect.stringContaining('is the volume main') });
      const misplaced = await cluster.run('serve', url);
      expect(misplaced.stderr).toContain('unexpected extra argument');
      for (const { stdout, stderr } of [created, refused, foreign, joined, renamed, misplaced]) {
        expect(stdout + stderr).not.toContain('unsaid-password');
      }
      for (const path of filesBelow(cluster.folder))
        expect(readFileSync(path, 'utf8')).not.toContain('unsaid-password');
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'refuses keys, a volume and a database that are not those of the home',
    async () => {
      await cluster.init('b');
      await cluster.run('init', '--home', 'other', '--contract', 'other-contract');
      const path = join(cluster.folder, 'b/store.json');
      const stored = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>;
      const refusal = async (over: Record<string, string>): Promise<string> => {
        const { writeFileSync } = await import('node:fs');
        writeFileSync(path, JSON.stringify({ ...stored, ...over }));
        const { status, stderr } = await cluster.run('runs', '--home', 'b');
        expect(status).toBe(3);
        return stderr;
      };
      expect(await refusal({ keys: join(cluster.folder, 'other/keys') })).toContain('mount its key folder');
      expect(await refusal({ sandbox: join(cluster.folder, 'other/sandbox') })).toContain('mount that volume');
      expect(await refusal({ ledger_id: 'led_000000000000' })).toContain('has another ledger');
      expect(await cluster.run('ledger', 'archive', 'x.archive', '--home', 'a')).toMatchObject({ status: 2 });
    },
    MS_MAX,
  );
});

campaign('several turnpike serve on one ledger', () => {
  test(
    'an agent may use any process over HTTP, a stream shows all entries, and one killed process stops none',
    async () => {
      await cluster.init('b', 'c');
      const [agent, reader] = [await cluster.token(...AGENT), await cluster.token(...READER)];
      const [a, b, c] = [await cluster.serve('a'), await cluster.serve('b'), await cluster.serve('c')];
      const stream = await fetch(`${c.url}/api/v1/stream`, { headers: { authorization: `Bearer ${reader}` } });
      expect(stream.status).toBe(200);
      const run_id = await startRun(a, agent);
      for (const server of [a, b, c, a, b, c]) expect(await step(server, agent, run_id)).toBe('SUCCESS');
      expect(await step(b, agent, run_id, write('/sandbox/a.md', 'one'))).toBe('SUCCESS');
      expect((await cluster.status()).performers).toHaveLength(3);
      await a.command.kill();
      for (const server of [b, c, c, b]) expect(await step(server, agent, run_id)).toBe('SUCCESS');
      await until(async () => (await cluster.status()).performers.length === 2);
      expect((await cluster.status()).performers).toMatchObject([
        { connected: true, over_at: null, version: expect.any(String), address: b.url },
        { connected: true, over_at: null, address: c.url },
      ]);
      const traces = 11;
      const body = stream.body?.getReader();
      let text = '';
      while (body !== undefined && text.split('"type":"step_trace"').length <= traces) {
        text += Buffer.from((await body.read()).value ?? []).toString();
      }
      await body?.cancel();
      const { text: metrics } = await b.ask('/metrics', reader);
      expect(metrics).toContain('turnpike_cluster_performers 2\n');
      expect(metrics).toMatch(/turnpike_cluster_merge_delay_seconds [0-9.]+\n/);
      await cluster.verify();
      for (const server of [b, c]) expect(await server.command.stop()).toMatchObject({ status: 0 });
      expect((await cluster.status()).performers).toEqual([]);
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'a vote may be cast at another process than the one that was asked for the export',
    async () => {
      await cluster.init('b');
      const anna = await cluster.token('anna', 'ATTORNEY_ADMIN', 'govern', 'act', 'observe');
      const berta = await cluster.token('berta', 'ATTORNEY_ADMIN', 'approve', 'observe');
      const [a, b] = [await cluster.serve('a'), await cluster.serve('b')];
      const body = JSON.stringify({ case: 'case-local', reason: 'discovery', name: 'bag' });
      const asked = await a.ask('/exports', anna, body);
      expect(asked).toMatchObject({ status: 202 });
      const { run_id, digest } = JSON.parse(asked.text) as { run_id: string; digest: string };
      const listed = await b.ask('/approvals', berta);
      expect(listed.text).toContain(digest);
      const vote = JSON.stringify({ run_id, digests: [digest], decision: 'approve' });
      expect(await b.ask('/approvals', berta, vote)).toMatchObject({
        status: 200,
        text: expect.stringContaining('"counted":true'),
      });
      for (const server of [a, b]) {
        await until(async () => (await server.ask(`/exports/${run_id}`, berta)).text.includes('"completed"'));
      }
      expect(readdirSync(join(cluster.folder, 'a/sandbox/.exports/bag'))).toContain('bagit.txt');
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'an MCP session belongs to one process, and another one answers 404, after which a client begins a new session',
    async () => {
      await cluster.init('b');
      const agent = await cluster.token(...AGENT);
      const [a, b] = [await cluster.serve('a'), await cluster.serve('b')];
      const client = await mcpClient(a, agent);
      expect(await call(client, 'think')).toMatchObject({ isError: false });
      const transport = client.transport as StreamableHTTPClientTransport;
      const headers = {
        authorization: `Bearer ${agent}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': transport.sessionId ?? '',
      };
      const message = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' });
      const elsewhere = await fetch(`${b.url}/mcp`, { method: 'POST', headers, body: message });
      expect(elsewhere.status).toBe(404);
      // The client of the SDK at a load balancer that sends its next request to another process.
      const moved = new StreamableHTTPClientTransport(new URL(`${b.url}/mcp`), {
        sessionId: transport.sessionId ?? '',
        requestInit: { headers: { authorization: `Bearer ${agent}` } },
      });
      await moved.start();
      const sent = moved.send({ jsonrpc: '2.0', id: 8, method: 'tools/list' });
      await expect(sent).rejects.toMatchObject({ code: 404 });
      const again = await mcpClient(b, agent);
      expect(await call(again, 'think')).toMatchObject({ isError: false });
      await Promise.all([client.close(), again.close()]);
    },
    MS_MAX,
  );

  test(
    'protocol 2026-07-28: any process answers any request, and a killed one stops none',
    async () => {
      await cluster.init('b');
      const agent = await cluster.token(...AGENT);
      const [a, b] = [await cluster.serve('a'), await cluster.serve('b')];
      const [one, other] = [await statelessClient(a, agent), await statelessClient(b, agent)];
      const first = await call(one, 'create_directory', { path: '/sandbox/d' }, 'k');
      expect(first).toMatchObject({ isError: false });
      expect(await call(other, 'create_directory', { path: '/sandbox/d' }, 'k')).toEqual(first);
      const clients = [one, other, one, other, one, other, one, other];
      const answers = await Promise.all(clients.map((client) => call(client, 'think')));
      expect(answers.map(({ run_id }) => run_id)).toEqual(clients.map(() => first.run_id));
      let next = answers;
      for (let round = 0; round < 10; round += 1) {
        await call(other, 'finish', { response: 'done' }, `end ${round}`);
        const ended = next[0]?.run_id;
        // Both begin the next run at once.
        next = await Promise.all(clients.map((client) => call(client, 'think')));
        const [begun] = next;
        expect(next.map(({ run_id, text }) => (run_id === begun?.run_id ? 'same' : text))).toEqual(
          next.map(() => 'same'),
        );
        expect(begun?.run_id).toMatch(/^run_/);
        expect(begun?.run_id).not.toBe(ended);
      }
      await a.command.kill();
      expect(await call(other, 'create_directory', { path: '/sandbox/d' }, 'k')).toEqual(first);
      expect((await call(other, 'think')).run_id).toBe(next[0]?.run_id);
      await other.close();
    },
    MS_MAX,
  );

  test(
    'D1 policy deny returns when every worker applies the rule, and names a worker that does not',
    async () => {
      await cluster.init('b');
      const agent = await cluster.token(...AGENT);
      const [a, b] = [await cluster.serve('a'), await cluster.serve('b')];
      const run_id = await startRun(a, agent);
      const rule = ['--home', 'a', '--reason', 'an incident'];
      expect(await cluster.run('policy', 'deny', ...rule, '--action', 'WRITE_FILE')).toMatchObject({ status: 0 });
      expect((await cluster.status()).performers).toMatchObject([{ overlay_epoch: 1 }, { overlay_epoch: 1 }]);
      for (const server of [a, b]) {
        expect(await step(server, agent, run_id, write('/sandbox/a.md', 'x'))).toBe('DENIED');
        expect(await step(server, agent, run_id)).toBe('SUCCESS');
      }
      // A stopped process keeps its session with the database: no command can tell when it continues.
      b.command.child.kill('SIGSTOP');
      const incomplete = await cluster.run('policy', 'deny', ...rule, '--action', 'CREATE_DIRECTORY');
      expect(incomplete).toMatchObject({ status: 1, stderr: expect.stringContaining(`at ${b.url}, does not apply`) });
      expect(await step(a, agent, run_id, line('CREATE_DIRECTORY', { path: '/sandbox/d' }))).toBe('DENIED');
      b.command.child.kill('SIGCONT');
      expect(await step(b, agent, run_id, line('CREATE_DIRECTORY', { path: '/sandbox/d' }))).toBe('DENIED');
      await a.command.kill();
      expect(await cluster.run('policy', 'deny', '--home', 'b', '--lift', 'deny-2')).toMatchObject({ status: 0 });
      expect(await step(b, agent, run_id, line('CREATE_DIRECTORY', { path: '/sandbox/d' }))).toBe('SUCCESS');
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'reports that the database is gone, and continues when it returns',
    async () => {
      await cluster.init('b');
      const [agent, reader] = [await cluster.token(...AGENT), await cluster.token(...READER)];
      const servers = [await cluster.serve('a'), await cluster.serve('b')];
      const [a] = servers;
      if (a === undefined) return;
      const run_id = await startRun(a, agent);
      await postgres?.restart(async () => {
        for (const server of servers) {
          await until(async () => (await healthOf(server, reader)) === 503);
          const { status, text } = await server.ask('/metrics', reader);
          expect({ status, text }).toMatchObject({ status: 200, text: expect.stringContaining('turnpike_cluster') });
        }
        expect((await a.ask(`/agents/${run_id}/steps`, agent, think())).status).toBe(503);
      });
      for (const server of servers) {
        await until(async () => (await healthOf(server, reader)) === 200);
        expect(await step(server, agent, run_id)).toBe('SUCCESS');
      }
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'a rolling restart refuses no step of a client that changes to another process',
    async () => {
      await cluster.init('b');
      const agent = await cluster.token(...AGENT);
      let servers = [await cluster.serve('a'), await cluster.serve('b')];
      const run_id = await startRun(servers[0] as Server, agent);
      let ended = false;
      let answered = 0;
      const client = async (): Promise<void> => {
        for (let at = 0; !ended; at += 1) {
          const server = servers[at % servers.length] as Server;
          const key = think();
          // A refused or closed connection: the client sends the same proposal to another process.
          const answer = await server.ask(`/agents/${run_id}/steps`, agent, key).catch(() => null);
          if (answer === null || answer.status === 503) continue;
          expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"SUCCESS"') });
          answered += 1;
        }
      };
      const working = client();
      for (const home of ['a', 'b']) {
        const [leaving, staying] = servers as [Server, Server];
        await until(() => Promise.resolve(answered > 5));
        servers = [staying];
        expect(await leaving.command.stop()).toMatchObject({ status: 0 });
        servers = [staying, await cluster.serve(home)];
        answered = 0;
      }
      await until(() => Promise.resolve(answered > 5));
      ended = true;
      await working;
      await cluster.verify();
    },
    MS_MAX,
  );
});

campaign('turnpike worker', () => {
  test(
    'ends the run of a command that was killed, and ends in order itself',
    async () => {
      await cluster.init('b');
      const worker = new Command(['worker', '--home', 'a'], cluster.folder);
      await worker.says(/has joined the ledger/);
      const mcp = new Command(['mcp', '127.0.0.1:0', '--http', '--home', 'b'], cluster.folder);
      await mcp.says(/bearer token in/);
      expect(await cluster.run('runs', '--home', 'a')).toMatchObject({ status: 0 });
      expect((await cluster.status()).performers).toHaveLength(2);
      await mcp.kill();
      await until(async () => (await cluster.status()).performers.length === 1);
      expect(await worker.stop()).toMatchObject({ status: 0 });
      expect((await cluster.status()).performers).toEqual([]);
      await cluster.verify();
    },
    MS_MAX,
  );

  test(
    'hides the password of its URL from other users of the machine',
    async () => {
      await cluster.init();
      const url = cluster.url.replace('postgres@', 'postgres:unsaid-password@');
      const worker = new Command(['worker', '--home', 'a', '--store', url], cluster.folder);
      await worker.says(/has joined the ledger/);
      expect(readFileSync(`/proc/${String(worker.child.pid)}/cmdline`, 'utf8')).not.toContain('unsaid-password');
      expect(await worker.stop()).toMatchObject({ status: 0 });
      expect(await cluster.run('worker', '--home', 'a', '--store', 'mysql://x:unsaid-password@h')).toMatchObject({
        status: 2,
        stderr: expect.not.stringContaining('unsaid-password'),
      });
    },
    MS_MAX,
  );
});
