// `turnpike mcp` as a client starts it: a process that may be killed at any time.

import '../fixtures/features.js';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttpTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdioTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Entry } from '../../src/core/contract/run/entry.js';
import type { SessionAnswer } from '../../src/features/sessions/contract/session-answer.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { initialised, turnpike } from '../interfaces/cli/fake-io.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { builtCommand } from '../fixtures/build.js';
import { make, phase, spec } from '../fixtures/spec.js';
import { call } from '../interfaces/mcp/mcp-harness.js';

const MS_MAX = 120_000;
let command: string;
let folder: string;
const clients = new Set<{ close(): Promise<void> }>();
const children = new Set<ChildProcess>();

beforeAll(async () => {
  command = await builtCommand(diskFolder());
}, 400_000);
beforeEach(async () => {
  folder = await initialised();
});
afterEach(async () => {
  for (const client of clients) await client.close();
  for (const child of children) child.kill('SIGKILL');
  clients.clear();
  children.clear();
});

interface Started {
  readonly client: Client;
  readonly transport: StdioClientTransport;
  readonly stderr: () => string;
}

/** A server on stdio, with the official client. */
async function started(argv: readonly string[] = []): Promise<Started> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [command, 'mcp', ...argv],
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '' },
    stderr: 'pipe',
  });
  let stderr = '';
  transport.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  clients.add(client);
  return { client, transport, stderr: () => stderr };
}

async function killed({ client, transport }: Started): Promise<void> {
  const gone = new Promise<void>((resolve) => (client.onclose = resolve));
  process.kill(transport.pid!, 'SIGKILL');
  await gone;
}

/** The ledger as a reader sees it, after verification and replay. */
async function ledger(): Promise<Entry[]> {
  const { store, externalHeadStore } = openHome(homePaths(join(folder, '.turnpike')), { readOnly: true });
  try {
    const reader = new LedgerReader(store, externalHeadStore);
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(await reader.replay()).toMatchObject({ ok: true });
    const entries: Entry[] = [];
    for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
    return entries;
  } finally {
    await store.close();
  }
}

const steps = async (): Promise<unknown[]> =>
  (await ledger()).flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.outcome] : []));

test(
  'over stdio an agent lists tools, acts, is denied, and closes the session',
  async () => {
    const { client, stderr } = await started();
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['propose', 'write_file']),
    );
    const written = await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' });
    expect(written.structured).toMatchObject({ outcome: 'SUCCESS' });
    expect(await call(client, 'write_file', { path: '/sandbox/a.sh', content: 'x' })).toMatchObject({ isError: true });
    expect(await call(client, 'propose', { proposal: '{' })).toMatchObject({
      structured: { error: { error_code: 'INVALID_JSON' } },
    });
    await client.close();
    expect(stderr()).toBe('');
    expect(await steps()).toEqual(['SUCCESS', 'DENIED', 'VALIDATION_ERROR']);
    expect((await turnpike(folder, ['runs', '--json'])).stdout).toContain('end_of_input');
  },
  MS_MAX,
);

test(
  'protocol 2026-07-28 over stdio: an agent acts, the run continues in the next process, and ends with the input',
  async () => {
    const connect = async (): Promise<{ client: ModernClient; transport: ModernStdioTransport }> => {
      const args = [command, 'mcp'];
      const env = { PATH: process.env['PATH'] ?? '' };
      const transport = new ModernStdioTransport({ command: process.execPath, args, cwd: folder, env, stderr: 'pipe' });
      const client = new ModernClient({ name: 'test', version: '2' }, { versionNegotiation: { mode: 'auto' } });
      await client.connect(transport);
      clients.add(client);
      expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
      return { client, transport };
    };
    const first = await connect();
    expect((await first.client.listTools()).tools.map(({ name }) => name)).toContain('write_file');
    const written = await call(first.client, 'write_file', { path: '/sandbox/a.md', content: 'x' }, 'key-1');
    expect(written).toMatchObject({ isError: false });
    const gone = new Promise<void>((resolve) => (first.client.onclose = resolve));
    process.kill(first.transport.pid!, 'SIGKILL');
    await gone;
    const second = await connect();
    expect(await call(second.client, 'write_file', { path: '/sandbox/a.md', content: 'x' }, 'key-1')).toEqual(written);
    expect((await call(second.client, 'think')).run_id).toBe(written.run_id);
    await second.client.close();
    expect(await steps()).toEqual(['SUCCESS', 'SUCCESS']);
    expect((await turnpike(folder, ['runs', '--json'])).stdout).toContain('end_of_input');
  },
  MS_MAX,
);

describe('killed and started again', () => {
  test(
    'D3 D4: the run continues, and acknowledged actions are not executed twice',
    async () => {
      const first = await started();
      const before = await call(first.client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
      await killed(first);
      const second = await started();
      const again = await call(second.client, 'create_directory', { path: '/sandbox/d' }, 'key-1');
      expect(again).toEqual(before);
      expect(await call(second.client, 'think')).toMatchObject({ isError: false, run_id: before.run_id });
      await second.client.close();
      expect(await steps()).toEqual(['SUCCESS', 'SUCCESS']);
    },
    MS_MAX,
  );

  test(
    'after its run was denied, the agent learns why, and opens another run',
    async () => {
      const first = await started();
      let run_id: unknown;
      for (let denials = 0; denials < 10; denials += 1)
        ({ run_id } = await call(first.client, 'delete_file', { path: '/sandbox/a.sh' }));
      await killed(first);
      const second = await started();
      const late = await call(second.client, 'think');
      expect(JSON.parse(late.text)).toMatchObject({
        error: { code: 'RUN_ENDED', run_id, state: 'denied', cause: 'TOO_MANY_DENIALS' },
      });
      const opened = await call(second.client, 'new_run');
      expect(opened).toMatchObject({ isError: false, structured: { opened: true, previous: { run_id } } });
      const write = { path: '/sandbox/a.md', content: 'x' };
      expect(await call(second.client, 'write_file', write)).toMatchObject({ isError: false, run_id: opened.run_id });
      await second.client.close();
      const third = await started(['--new-runs-max', '0']);
      expect((await third.client.listTools()).tools.map(({ name }) => name)).not.toContain('new_run');
      await third.client.close();
      expect((await steps()).filter((outcome) => outcome === 'SUCCESS')).toHaveLength(1);
    },
    MS_MAX,
  );

  test(
    'D4 D8: during calls, every executed action was executed once',
    async () => {
      const names = Array.from({ length: 60 }, (_, i) => `n${i}`);
      const calling = (client: Client) =>
        Promise.allSettled(names.map((name) => call(client, 'create_directory', { path: `/sandbox/${name}` }, name)));
      const first = await started();
      await call(first.client, 'think');
      const cut = calling(first.client);
      // Some are executed, and some are not.
      while (!existsSync(join(folder, '.turnpike/sandbox/case-local/n5'))) await delay(1);
      await killed(first);
      await cut;
      const second = await started();
      const answers = await calling(second.client);
      const outcomes = answers.map((answer) =>
        answer.status === 'fulfilled' ? answer.value.structured?.['outcome'] : 'lost',
      );
      expect(outcomes).toEqual(names.map(() => 'SUCCESS'));
      await second.client.close();
      expect(await steps()).toEqual(['SUCCESS', ...names.map(() => 'SUCCESS')]);
    },
    MS_MAX,
  );
});

test(
  'C64 C65: killed between a step and its report, the session continues with the next server',
  async () => {
    mkdirSync(join(folder, 'specs'));
    writeFileSync(join(folder, 'specs/spec-1.json'), JSON.stringify(spec(phase('p1', [make('t1')]))));
    const argv = ['--specs', 'specs', '--posture', 'unattended'];
    const asked = async (client: Client, command: string, args: object = {}): Promise<SessionAnswer> =>
      (await call(client, 'task', { action: 'session-step', command, ...args })).structured as unknown as SessionAnswer;
    const first = await started(argv);
    const session_id = (await asked(first.client, 'start', { spec_id: 'spec-1' })).data?.session_id;
    const told = await asked(first.client, 'next', { session_id });
    await call(first.client, 'write_file', { path: '/sandbox/t1.md', content: 'x' });
    await killed(first);
    const { client } = await started(argv);
    const again = await asked(client, 'replay', { session_id });
    expect(again.data?.next_step).toEqual(told.data?.next_step);
    const { step_id, type, step_proof, task_id, run_id } = again.data!.next_step!;
    expect((await call(client, 'read_file', { path: '/sandbox/t1.md' })).run_id).toBe(run_id);
    const last_step_result = {
      step_id,
      step_type: type,
      outcome: 'success',
      step_proof,
      task_id,
      files_touched: ['t1.md'],
    };
    const done = await asked(client, 'next', { session_id, last_step_result });
    expect(done).toMatchObject({
      success: true,
      data: { loop_signal: expect.stringMatching(/^(?:phase|spec)_complete$/) },
    });
    await client.close();
    expect(await steps()).toEqual(['SUCCESS', 'SUCCESS']);
  },
  MS_MAX,
);

test(
  'D13: a second server on the same home directory works through the first',
  async () => {
    const first = await started();
    await call(first.client, 'think');
    const second = await started(['--actor', 'second']);
    expect(await call(second.client, 'write_file', { path: '/sandbox/b.md', content: 'x' })).toMatchObject({
      isError: false,
    });
    await second.client.close();
    await first.client.close();
    expect(await steps()).toEqual(['SUCCESS', 'SUCCESS']);
  },
  MS_MAX,
);

describe('over HTTP', () => {
  const tokenFile = (): string => join(folder, '.turnpike/mcp-token');

  async function served(): Promise<{ child: ChildProcess; url: URL; token: string }> {
    const env = { PATH: process.env['PATH'] };
    const argv = [command, 'mcp', '--http', '127.0.0.1:0'];
    const child = spawn(process.execPath, argv, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    let said = '';
    child.stdout.on('data', () => expect('stdout').toBe('silent'));
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    while (!/bearer token .*\n/.test(said)) await Promise.race([once(child.stderr, 'data'), once(child, 'exit')]);
    const [address = '', place = ''] = said.split('\n');
    // The second server of a home prints its token.
    const token = place.startsWith('bearer token in ')
      ? readFileSync(tokenFile(), 'utf8').trim()
      : place.replace('bearer token ', '');
    return { child, url: new URL(address), token };
  }

  async function connected(url: URL, token: string): Promise<Client> {
    const headers = { authorization: `Bearer ${token}` };
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    clients.add(client);
    return client;
  }

  async function statelesslyConnected(url: URL, token: string): Promise<ModernClient> {
    const client = new ModernClient({ name: 'test', version: '2' }, { versionNegotiation: { mode: 'auto' } });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new ModernHttpTransport(url, { requestInit }));
    clients.add(client);
    return client;
  }

  test(
    'protocol 2026-07-28: any of two processes on one home answers a request, and none is executed twice',
    async () => {
      const servers = [await served(), await served()];
      const [a, b] = [
        await statelesslyConnected(servers[0]!.url, servers[0]!.token),
        await statelesslyConnected(servers[1]!.url, servers[1]!.token),
      ];
      expect(b.getNegotiatedProtocolVersion()).toBe('2026-07-28');
      const first = await call(a, 'create_directory', { path: '/sandbox/d' }, 'k');
      expect(first).toMatchObject({ isError: false });
      expect(await call(b, 'create_directory', { path: '/sandbox/d' }, 'k')).toEqual(first);
      const runs = await Promise.all([a, b, a, b].map((client) => call(client, 'think')));
      expect(runs.map(({ run_id }) => run_id)).toEqual(runs.map(() => first.run_id));
      await call(b, 'finish', { response: 'done' });
      expect(await call(a, 'create_directory', { path: '/sandbox/d' }, 'k')).toEqual(first);
      const next = await call(a, 'think');
      expect(next.run_id).not.toBe(first.run_id);
      expect((await call(b, 'think')).run_id).toBe(next.run_id);
      // The first server owns the home, so the second ends before it.
      for (const { child } of servers.reverse()) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      const third = await served();
      const client = await statelesslyConnected(third.url, third.token);
      expect(await call(client, 'create_directory', { path: '/sandbox/d' }, 'k')).toEqual(first);
      expect((await call(client, 'think')).run_id).toBe(next.run_id);
      third.child.kill('SIGTERM');
      await once(third.child, 'exit');
      expect(await steps()).toHaveLength(9);
    },
    MS_MAX,
  );

  test(
    'an agent acts; on SIGTERM the server ends and deletes its token',
    async () => {
      const { child, url, token } = await served();
      const client = await connected(url, token);
      expect(await call(client, 'write_file', { path: '/sandbox/a.md', content: 'x' })).toMatchObject({
        isError: false,
      });
      await expect(connected(url, `${token}x`)).rejects.toThrow();
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      expect(await ended).toEqual([0, null]);
      expect(existsSync(tokenFile())).toBe(false);
      expect(await steps()).toEqual(['SUCCESS']);
    },
    MS_MAX,
  );

  test(
    'D3: killed and started again, it has another token, and the run of an agent is reachable by its id',
    async () => {
      const first = await served();
      const { run_id } = await call(
        await connected(first.url, first.token),
        'create_directory',
        { path: '/sandbox/d' },
        'k',
      );
      const ended = once(first.child, 'exit');
      first.child.kill('SIGKILL');
      await ended;
      const second = await served();
      expect(second.token).not.toBe(first.token);
      await expect(connected(second.url, first.token)).rejects.toThrow();
      const client = await connected(second.url, second.token);
      const again = await call(client, 'create_directory', { path: '/sandbox/d', run_id }, 'k');
      expect(again).toMatchObject({ isError: false, run_id });
      await client.close();
      second.child.kill('SIGTERM');
      await once(second.child, 'exit');
      expect(await steps()).toEqual(['SUCCESS']);
    },
    MS_MAX,
  );
});
