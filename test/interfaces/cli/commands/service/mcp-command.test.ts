// `turnpike mcp` in this process: its output on each stream, and its usage errors. See test/e2e for the real process.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { SessionAnswer } from '../../../../../src/features/sessions/contract/session-answer.js';
import { connectControl } from '../../../../../src/host/control/control-client.js';
import { openTurnpike, type Turnpike } from '../../../../../src/host/turnpike.js';
import { initialised, jsonLines, linesOf, tempFolder, turnpike } from '../../fake-io.js';
import { PLAIN, putSpec, reportOf, stepOf } from '../../session-fixture.js';

interface Message {
  readonly id: unknown;
  readonly result?: {
    readonly structuredContent?: object;
    readonly _meta?: Readonly<Record<string, string>>;
    readonly tools?: readonly { readonly name: string }[];
  };
}

const request = (id: number, method: string, params: object = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const greeting = request(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});
const calling = (id: number, name: string, args: object = {}): string =>
  request(id, 'tools/call', { name, arguments: args });
const talk = (...messages: readonly string[]): string => [greeting, ...messages, ''].join('\n');

const byId = (stdout: string, id: number): Message => jsonLines<Message>(stdout).find((message) => message.id === id)!;

function dataOf(answer: object | undefined) {
  const { data } = answer as SessionAnswer;
  if (data === null) throw new Error(JSON.stringify(answer));
  return data;
}

test('stdout contains only the protocol; the run completes with the end of the input', async () => {
  const folder = await initialised();
  const stdin = talk(calling(1, 'write_file', { path: '/sandbox/a.md', content: 'x' }), request(2, 'tools/list'));
  const { code, stdout, stderr, log } = await turnpike(folder, ['mcp'], { stdin });
  expect({ code, stderr, log }).toEqual({ code: 0, stderr: '', log: [] });
  expect(linesOf(stdout)).toHaveLength(3);
  expect(byId(stdout, 1).result?.structuredContent).toMatchObject({ outcome: 'SUCCESS' });
  expect(byId(stdout, 2).result?.tools?.map(({ name }) => name)).toContain('propose');
  expect(readFileSync(join(folder, '.turnpike/sandbox/case-local/a.md'), 'utf8')).toBe('x');
  const runs = await turnpike(folder, ['runs', '--json']);
  expect(runs.stdout).toContain('end_of_input');
  expect(await turnpike(folder, ['replay'])).toMatchObject({ code: 0 });
});

test('the agent has the identity given by the options', async () => {
  const folder = await initialised();
  const argv = ['mcp', '--actor', 'claude', '--case', 'case-0007', '--exposure', 'decision'];
  const { stdout } = await turnpike(folder, argv, { stdin: talk(calling(1, 'think')) });
  expect(byId(stdout, 1).result?.structuredContent).toEqual({
    proposal_id: expect.any(String),
    action: 'THINK',
    decision: 'ALLOW',
    result: {},
  });
  const { stdout: runs } = await turnpike(folder, ['runs', '--json']);
  expect(runs).toContain('claude');
  expect(runs).toContain('case-0007');
});

describe('D13 while another process owns the home directory', () => {
  let folder: string;
  let holder: Turnpike;

  beforeEach(async () => {
    folder = await initialised();
    holder = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract') });
  });
  afterEach(() => holder.close());

  test.each([
    ['FINISH', 'finish', 'completed:finished'],
    ['the end of the input', 'think', 'completed:end_of_input'],
  ])('proposals go through that, in a remote run, until %s', async (_what, last, reason) => {
    const stdin = talk(
      calling(1, 'write_file', { path: '/sandbox/a.md', content: 'x' }),
      calling(2, last, last === 'finish' ? { response: 'x' } : {}),
    );
    const { code, stdout, stderr } = await turnpike(folder, ['mcp'], { stdin });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(byId(stdout, 1).result?.structuredContent).toMatchObject({ outcome: 'SUCCESS' });
    const run_id = byId(stdout, 1).result?._meta?.['turnpike/run-id'] ?? '';
    expect(await holder.remoteAgents.find(run_id)).toMatchObject({ ended: { state: 'completed', reason } });
  });

  test('works through a session: the step, a proposal into its run, the report', async () => {
    putSpec(folder, PLAIN);
    mkdirSync(join(folder, 'specs'));
    putSpec(join(folder, 'specs'), PLAIN);
    const argv = ['mcp', '--specs', 'specs'];
    const ask = async (name: string, args: object) => {
      const { stdout, stderr } = await turnpike(folder, argv, { stdin: talk(calling(1, name, args)) });
      expect(stderr).toBe('');
      return byId(stdout, 1).result!;
    };
    const step = async (command: string, args: object) =>
      dataOf((await ask('task', { action: 'session-step', command, ...args })).structuredContent);
    const { session_id } = await step('start', { spec_id: PLAIN.id });
    const one = stepOf(await step('next', { session_id }));
    // A new server for every call: the run continues only if its owner is known.
    const written = await ask('write_file', { path: '/sandbox/a.md', content: 'x', run_id: one.run_id });
    expect(written.structuredContent).toMatchObject({ outcome: 'SUCCESS' });
    expect(written._meta?.['turnpike/run-id']).toBe(one.run_id);
    const report = { ...(JSON.parse(reportOf(one)) as object), files_touched: ['a.md'] };
    const next = await step('next', { session_id, last_step_result: report });
    expect(stepOf(next).step_id).not.toBe(one.step_id);
    expect(await holder.replay(session_id)).toMatchObject({ ok: true });
  });

  test('cannot reach a run of another agent, an attached run or an unknown one', async () => {
    const attached = await holder.startAgent({ case: 'case-local' });
    const other = await holder.startAgent({ case: 'case-local', actor: 'somebody', link: 'remote' });
    for (const run_id of [attached.run_id, other.run_id, 'run_000000000000000000000.1']) {
      const stdin = talk(calling(1, 'propose', { proposal: '{}', run_id }));
      const { stdout } = await turnpike(folder, ['mcp'], { stdin });
      expect(byId(stdout, 1).result).toMatchObject({ isError: true });
      expect(stdout).toContain('There is no such run for you');
    }
    const client = (await connectControl(join(folder, '.turnpike/control.sock'), null))!;
    const { remoteAgents: remote } = client;
    await expect(remote.submit(attached.run_id, '{}')).rejects.toMatchObject({ code: 'RUN_UNKNOWN' });
    expect(await remote.find(attached.run_id)).toBeNull();
    expect(await remote.find(other.run_id)).toEqual(await holder.remoteAgents.find(other.run_id));
    await client.close();
    await attached.end();
  });

  test('a client that disconnects leaves its run active', async () => {
    const client = (await connectControl(join(folder, '.turnpike/control.sock'), null))!;
    const { run_id } = await client.remoteAgents.start({ case: 'case-local', actor: 'claude', idleMs: 60_000 });
    await client.close();
    while (holder.control?.connections !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await holder.remoteAgents.find(run_id)).toMatchObject({ actor: 'claude', ended: null });
  });
});

describe('over HTTP', () => {
  /** Serves until `work` is done. */
  async function serving(argv: readonly string[], work: (url: string, folder: string) => Promise<void>) {
    const folder = await initialised();
    const stop = new AbortController();
    const stdin = new PassThrough();
    const said = turnpike(folder, ['mcp', '--http', ...argv], { stdin, stop: stop.signal });
    const path = join(folder, '.turnpike/mcp-token');
    while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 10));
    await work(folder, path);
    stop.abort();
    return { ...(await said), folder, path };
  }

  test('stores the token in the home directory while it serves, and prints it nowhere', async () => {
    let token = '';
    const { code, stdout, stderr, path } = await serving(['127.0.0.1:0'], (_folder, file) => {
      token = readFileSync(file, 'utf8').trim();
      expect(statSync(file).mode & 0o777).toBe(0o600);
      return Promise.resolve();
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\nbearer token in \/.*mcp-token\n$/);
    expect(stderr).not.toContain(token);
    expect(existsSync(path)).toBe(false);
  });

  const hasIPv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  );
  (hasIPv6 ? test : test.skip)('serves an IPv6 address', async () => {
    const { stderr } = await serving(['[::1]:0'], () => Promise.resolve());
    expect(stderr).toMatch(/^http:\/\/\[::1\]:\d+\/mcp\n/);
  });
});

test('reports a missing home directory', async () => {
  const { code, stderr } = await turnpike(tempFolder(), ['mcp']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/is not a home directory/) });
});
