// `turnpike mcp`, in this process: what is said on which stream, and what is refused. See test/e2e for the real one.

import { describe, expect, test } from '@jest/globals';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { openTurnpike } from '../../src/runtime/turnpike.js';
import { initialised, jsonLines, linesOf, tempFolder, turnpike } from './fake-io.js';

interface Message {
  readonly id: unknown;
  readonly result?: { readonly structuredContent?: object; readonly tools?: readonly { readonly name: string }[] };
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

test('stdout is the protocol and nothing else; the run is completed with the input', async () => {
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

test('the agent is who the options say', async () => {
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

test('D13 while another process has the home, proposals go through that', async () => {
  const folder = await initialised();
  const holder = await openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract') });
  const stdin = talk(
    calling(1, 'write_file', { path: '/sandbox/a.md', content: 'x' }),
    calling(2, 'finish', { response: 'x' }),
    calling(3, 'think'),
  );
  const { code, stdout, stderr } = await turnpike(folder, ['mcp'], { stdin });
  expect(code).toBe(0);
  expect(stderr).toBe('another process has the home: proposals go through it, sessions do not\n');
  for (const id of [1, 2]) expect(byId(stdout, id).result?.structuredContent).toMatchObject({ outcome: 'SUCCESS' });
  expect(byId(stdout, 3).result).toBeDefined();
  await holder.close();
});

describe('over HTTP', () => {
  /** Serves until the work is done. */
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

  test('the token lies in the home while it is served, and is said nowhere', async () => {
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
  (hasIPv6 ? test : test.skip)('an IPv6 address is served by its name', async () => {
    const { stderr } = await serving(['[::1]:0'], () => Promise.resolve());
    expect(stderr).toMatch(/^http:\/\/\[::1\]:\d+\/mcp\n/);
  });

  test.each([
    ['an address without --http', ['mcp', '127.0.0.1:0']],
    ['no port', ['mcp', '--http', '127.0.0.1']],
    ['no address', ['mcp', '--http', 'here']],
    ['a port that is none', ['mcp', '--http', '127.0.0.1:65536']],
    ['an address that other machines reach', ['mcp', '--http', '0.0.0.0:0']],
    ['a name that may lead anywhere', ['mcp', '--http', 'evil.example:0']],
    ['an address in a URL', ['mcp', '--http', 'http://127.0.0.1:0']],
    ['a role that is none', ['mcp', '--session-role', 'king']],
    ['a posture that is none', ['mcp', '--posture', 'lying']],
  ])('%s is wrong usage', async (_what, argv) => {
    const { code, stdout, stderr } = await turnpike(await initialised(), argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^USAGE: .*see `turnpike help mcp`\n$/);
  });
});

test('without a home it says so', async () => {
  const { code, stderr } = await turnpike(tempFolder(), ['mcp']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/is no home/) });
});
