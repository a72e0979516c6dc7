// Connections to upstream MCP servers that break every rule: over stdio to child processes, over HTTP to a server in
// this process. The outcome of a call is never guessed, and no process is left behind.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { IDEMPOTENCY_KEY } from '../../../../src/core/contract/idempotency-key.js';
import { connectMcp } from '../../../../src/features/upstreams/mcp/mcp-client.js';
import type { UpstreamLink } from '../../../../src/engine/ports/effects/upstream.js';
import { listDefinitions } from '../../../../src/features/upstreams/tool-definitions.js';
import { startHttpUpstream, type HttpUpstream } from '../../../fixtures/http-upstream.js';
import { UpstreamGround, until, type Server } from '../../../fixtures/upstreams.js';
import { ROOT, textOf } from '../../../sources.js';

const never = (): AbortSignal => new AbortController().signal;

let ground: UpstreamGround;
const open: { close(): Promise<void> }[] = [];
beforeEach(() => {
  ground = new UpstreamGround();
});
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  await ground.close();
});

async function connect(server: Server, signal = never()): Promise<UpstreamLink> {
  const link = await connectMcp(server, { folder: ground.folder, signal });
  open.push(link);
  return link;
}

const call = (link: UpstreamLink, signal = never()) =>
  link.callTool({ tool: 'act', input: {}, idempotency_key: 'key-1' }, signal);

/** The first messages of the older protocols. */
const OLD = ['initialize', 'notifications/initialized'];

/** NOT_EXECUTED, FAILED, or an unknown outcome. */
const cameTo = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (answer) => answer,
    (error: unknown) => (error as { code?: string }).code ?? 'UNKNOWN',
  );

describe('a server that cannot be connected to', () => {
  test.each([
    ['no_tools', /offers no tools/],
    ['other_protocol', /protocol version is not supported/],
    ['dies_early', /last words: no such folder/],
  ])('%s', async (mode, why) => {
    await expect(connect(ground.hostile(mode))).rejects.toThrow(why);
  });

  test('an old server that ends when it is asked for its versions is started again, and not asked', async () => {
    const link = await connect(ground.hostile('dies_when_probed'));
    expect(link.isOpen).toBe(true);
    await until(() => ground.notes().includes('notifications/initialized'));
    expect(ground.notes().map((note) => note.replace(/ .*/, ''))).toEqual(['pids', 'server/discover', 'pids', ...OLD]);
  });

  test('an old server that does not say which versions it has is initialized', async () => {
    const link = await connect(ground.hostile('mute'));
    expect(link.isOpen).toBe(true);
    await until(() => ground.notes().includes('notifications/initialized'));
    expect(ground.notes().slice(1)).toEqual(['server/discover', ...OLD]);
  });

  test('a server that never completes the handshake is given up and killed', async () => {
    const abort = new AbortController();
    const connecting = connect(ground.hostile('silent'), abort.signal);
    await until(() => ground.notes().includes('initialize'));
    abort.abort();
    await expect(connecting).rejects.toThrow();
    await until(() => !ground.alive());
  });

  test('its last stderr output is reported without the secrets that we passed to it', async () => {
    process.env['TURNPIKE_TEST_SECRET'] = 'sesame-sesame';
    const command = [process.execPath, '-e', 'console.error("no entry for", process.env.TURNPIKE_TEST_SECRET)'];
    const server: Server = { name: 'x', transport: 'stdio', command, env: ['TURNPIKE_TEST_SECRET'] };
    await expect(connect(server)).rejects.toThrow('last words: no entry for [...]');
    delete process.env['TURNPIKE_TEST_SECRET'];
  });

  test.each([
    ['a missing program', { command: ['/nowhere/at-all'] }, /ENOENT/],
    ['a missing folder', { cwd: 'nowhere' }, /ENOENT/],
    ['a variable that is not set', { env: ['TURNPIKE_TEST_NEVER_SET'] }, /TURNPIKE_TEST_NEVER_SET is not set/],
  ])('%s', async (_what, more, why) => {
    await expect(connect({ ...ground.hostile('fine'), ...more })).rejects.toThrow(why);
  });
});

test('a server over stdio of protocol 2026-07-28 is neither initialized nor started twice', async () => {
  const code = `
    import { McpServer } from '@modelcontextprotocol/server';
    import { serveStdio } from '@modelcontextprotocol/server/stdio';
    console.error('started');
    serveStdio(() => {
      const mcp = new McpServer({ name: 'new', version: '1' }, { capabilities: { tools: {} } });
      mcp.server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'act', inputSchema: { type: 'object' } }] }));
      mcp.server.setRequestHandler('tools/call', ({ params }, { mcpReq: { _meta, envelope } }) => ({
        content: [{ type: 'text', text: JSON.stringify([params.name, _meta, Object.keys(envelope)]) }],
      }));
      return mcp;
    }, { legacy: 'reject' });`;
  const command = [process.execPath, '--input-type=module', '-e', code];
  const link = await connect({ name: 'new', transport: 'stdio', command, cwd: ROOT });
  expect(await link.listTools(null, never())).toMatchObject({ tools: [{ name: 'act' }] });
  const { content } = await call(link);
  expect(JSON.parse((content as { text: string }[])[0]?.text ?? '')).toEqual([
    'act',
    { [IDEMPOTENCY_KEY]: 'key-1' },
    expect.arrayContaining(['io.modelcontextprotocol/protocolVersion']),
  ]);
});

describe('a list of tools without end, with a wrong shape, or too large', () => {
  test.each([
    ['huge_list', /more than 256 tools/],
    ['endless_pages', /more than 64 pages/],
    ['same_cursor', /invalid or repeated cursor/],
    ['long_cursor', /invalid or repeated cursor/],
    ['no_list', /is malformed/],
  ])('%s', async (mode, why) => {
    const link = await connect(ground.hostile(mode));
    await expect(listDefinitions(link, never())).rejects.toThrow(why);
  });

  test('the SDK compiles no schema of the server', async () => {
    // Compiled by the client of the SDK, this pattern would become a RegExp in this process.
    const outputSchema = { type: 'object', properties: { a: { type: 'string', pattern: '(' } } };
    const link = await connect(ground.spy({ tools: [{ name: 'act', inputSchema: { type: 'object' }, outputSchema }] }));
    const { definitions } = await listDefinitions(link, never());
    expect(definitions).toMatchObject([{ tool: 'act', document: { outputSchema } }]);
  });
});

describe('the outcome of a call', () => {
  test.each([
    ['dies', 'UNKNOWN', false],
    ['huge_line', 'UNKNOWN', false],
    ['malformed_line', 'UNKNOWN', false],
    ['deep', 'UNKNOWN', false],
    ['proto', 'UNKNOWN', false],
    ['twice', 'UNKNOWN', false],
    ['not_utf8', 'UNKNOWN', false],
    ['neither', 'UNKNOWN', false],
    ['floods', 'UNKNOWN', false],
    ['shouts', 'UNKNOWN', false],
    ['refuses', 'NOT_EXECUTED', true],
    ['fails', 'FAILED', true],
    ['wrong_id', { content: [{ type: 'text', text: 'done' }] }, true],
    ['chatters', { content: [{ type: 'text', text: 'done' }] }, true],
    ['asks', { content: [{ type: 'text', text: 'done' }] }, true],
  ])('%s: %j', async (mode, expected, staysOpen) => {
    const link = await connect(ground.hostile(mode));
    expect(await cameTo(call(link))).toEqual(expected);
    expect(link.isOpen).toBe(staysOpen);
    expect(ground.notes().filter((note) => note === 'tools/call')).toHaveLength(1);
    if (staysOpen) return;
    expect(await cameTo(call(link))).toBe('NOT_EXECUTED');
    await until(() => !ground.alive());
  });

  test('a call that is never answered ends when its caller aborts it, and the server gets a cancellation', async () => {
    const link = await connect(ground.hostile('never_answers'));
    const abort = new AbortController();
    const answer = cameTo(call(link, abort.signal));
    await until(() => ground.notes().includes('tools/call'));
    abort.abort();
    expect(await answer).toBe('UNKNOWN');
    await until(() => ground.notes().includes('notifications/cancelled'));
    expect(link.isOpen).toBe(true);
  });

  test('requests of a server are refused, except a ping', async () => {
    const link = await connect(ground.hostile('asks'));
    await call(link);
    expect(ground.notes().filter((note) => note.startsWith('answer'))).toEqual([
      'answer q1 -32601',
      'answer q2 -32601',
      'answer q3 ok',
    ]);
  });

  test('a call over a closed connection is not sent', async () => {
    const link = await connect(ground.hostile('fine'));
    await link.close();
    expect(await cameTo(call(link))).toBe('NOT_EXECUTED');
    expect(ground.notes()).not.toContain('tools/call');
  });
});

test('closing ends a process that ignores it, with its child processes', async () => {
  const link = await connect(ground.hostile('stubborn'));
  expect(ground.alive()).toBe(true);
  await link.close();
  await until(() => !ground.alive());
});

test('a process that ends without closing its servers kills them', async () => {
  // The adapter itself, as JavaScript for a separate process.
  for (const name of ['features/upstreams/mcp/child-lines', 'core/errors']) {
    const { outputText } = ts.transpileModule(textOf(`src/${name}.ts`), {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    });
    mkdirSync(join(ground.folder, dirname(name)), { recursive: true });
    writeFileSync(join(ground.folder, `${name}.mjs`), outputText.replaceAll(/(from '\.[^']*)\.js'/g, "$1.mjs'"));
  }
  const { command } = ground.hostile('stubborn') as { readonly command: readonly string[] };
  writeFileSync(
    join(ground.folder, 'main.mjs'),
    `import { ChildLines } from './features/upstreams/mcp/child-lines.mjs';
     const options = { argv: ${JSON.stringify(command)}, cwd: '.', env: process.env, lineBytesMax: 1000 };
     await ChildLines.start(options, { onLine: () => process.exit(0), onEnd: () => undefined });
     process.stdin.once('data', () => process.exit(0));`,
  );
  const child = spawn(process.execPath, [join(ground.folder, 'main.mjs')], { stdio: ['pipe', 'inherit', 'inherit'] });
  await until(() => ground.notes().length > 1);
  expect(ground.alive()).toBe(true);
  child.stdin.write('end');
  await until(() => !ground.alive());
});

describe('over HTTP', () => {
  let upstream: HttpUpstream;
  beforeEach(async () => {
    upstream = await startHttpUpstream();
  });
  afterEach(async () => {
    await upstream.close();
  });
  const server = (more: object = {}): Server => ({ name: 'web', transport: 'http', url: upstream.url, ...more });

  test.each(['json', 'events'] as const)('a server of the SDK that answers in %s', async (form) => {
    upstream.behave({ form });
    const link = await connect(server());
    expect(await link.listTools(null, never())).toMatchObject({ tools: [{ name: 'act' }] });
    expect(await call(link)).toMatchObject({ content: [{ type: 'text', text: 'done' }] });
    expect(upstream.calls).toEqual([{ name: 'act', arguments: {}, _meta: { [IDEMPOTENCY_KEY]: 'key-1' } }]);
    await link.close();
    // No stream was opened for unsolicited messages, and the session was ended.
    expect(upstream.methods).toEqual(['POST', 'POST', 'POST', 'POST', 'POST', 'DELETE']);
    // The first request asks for the versions of the server.
    const [probe, first, ...later] = upstream.headers;
    expect(probe).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'server/discover' });
    expect(first).not.toHaveProperty('mcp-session-id');
    for (const headers of later) {
      expect(headers).toMatchObject({ 'mcp-session-id': expect.any(String), 'mcp-protocol-version': '2025-11-25' });
      expect(headers).not.toHaveProperty('authorization');
    }
  });

  test.each(['json', 'events'] as const)('a server of protocol 2026-07-28 that answers in %s', async (form) => {
    upstream.behave({ era: 'modern', form });
    const link = await connect(server());
    const { tools } = await link.listTools(null, never());
    // As the server sent it, because a pin covers every member.
    expect(tools).toEqual([{ name: 'act', inputSchema: { type: 'object' } }]);
    expect(await call(link)).toMatchObject({ content: [{ type: 'text', text: 'done' }] });
    expect(upstream.calls).toEqual([{ name: 'act', arguments: {}, _meta: { [IDEMPOTENCY_KEY]: 'key-1' } }]);
    await link.close();
    expect(upstream.posted).toEqual(['server/discover', 'tools/list', 'tools/call']);
    expect(upstream.methods).toEqual(['POST', 'POST', 'POST']);
    for (const headers of upstream.headers) {
      expect(headers).toMatchObject({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': expect.any(String) });
      expect(headers).not.toHaveProperty('mcp-session-id');
    }
    expect(upstream.headers.at(-1)).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'act' });
  });

  test('a tool name that is no header value is encoded', async () => {
    upstream.behave({ era: 'modern' });
    const link = await connect(server());
    for (const tool of ['größe', '=?base64?eA==?=', ' x']) {
      await link.callTool({ tool, input: {}, idempotency_key: 'key' }, never());
    }
    expect(upstream.calls).toMatchObject([{ name: 'größe' }, { name: '=?base64?eA==?=' }, { name: ' x' }]);
    expect(upstream.headers.at(-1)?.['mcp-name']).toBe('=?base64?IHg=?=');
  });

  test.each([
    ['complete', { content: [] }],
    ['other_type', 'UNKNOWN'],
    ['no_type', 'UNKNOWN'],
    ['input_required', 'UNKNOWN'],
    ['no_method', 'NOT_EXECUTED'],
    ['mismatch', 'NOT_EXECUTED'],
    ['status_401', 'NOT_EXECUTED'],
    ['status_500', 'UNKNOWN'],
    ['hangs_up', 'UNKNOWN'],
    ['other_id', 'UNKNOWN'],
    ['deep', 'UNKNOWN'],
    ['proto', 'UNKNOWN'],
    ['huge', 'UNKNOWN'],
    ['flood', 'UNKNOWN'],
  ] as const)('%s, protocol 2026-07-28: %j', async (mode, expected) => {
    upstream.behave({ era: 'modern' });
    const link = await connect(server());
    upstream.behave({ era: 'modern', mode });
    expect(await cameTo(call(link))).toEqual(expected);
    expect(upstream.posted.filter((method) => method === 'tools/call')).toHaveLength(1);
  });

  test('protocol 2026-07-28: no session is lost with a status 404', async () => {
    upstream.behave({ era: 'modern' });
    const link = await connect(server());
    upstream.behave({ era: 'modern', mode: 'no_method' });
    await cameTo(call(link));
    expect(link.isOpen).toBe(true);
  });

  test('protocol 2026-07-28: an aborted call ends with its stream, and no cancellation is posted', async () => {
    upstream.behave({ era: 'modern' });
    const link = await connect(server());
    upstream.behave({ era: 'modern', mode: 'drips' });
    const abort = new AbortController();
    const answer = cameTo(call(link, abort.signal));
    await until(() => upstream.posted.includes('tools/call'));
    abort.abort();
    expect(await answer).toBe('UNKNOWN');
    await until(() => upstream.streams === 0);
    expect(upstream.posted).not.toContain('notifications/cancelled');
    expect(link.isOpen).toBe(true);
  });

  test('the token is the one configured for the server, from the environment', async () => {
    process.env['TURNPIKE_TEST_TOKEN'] = 'for-the-server';
    upstream.behave({ token: 'for-the-server' });
    const link = await connect(server({ token_env: 'TURNPIKE_TEST_TOKEN' }));
    expect(await call(link)).toMatchObject({ content: [{ text: 'done' }] });
    process.env['TURNPIKE_TEST_TOKEN'] = 'another';
    const refused = connect(server({ token_env: 'TURNPIKE_TEST_TOKEN' }));
    await expect(refused).rejects.toThrow('the status 401');
    await expect(refused).rejects.not.toThrow('another');
    process.env['TURNPIKE_TEST_TOKEN'] = 'two\nlines';
    await expect(connect(server({ token_env: 'TURNPIKE_TEST_TOKEN' }))).rejects.toThrow('holds no token');
    delete process.env['TURNPIKE_TEST_TOKEN'];
    await expect(connect(server({ token_env: 'TURNPIKE_TEST_TOKEN' }))).rejects.toThrow('is not set');
  });

  test.each([
    ['no address', 'example', /not valid/],
    ['unencrypted to another machine', 'http://example.org/mcp', /begin with https/],
    ['a name that only looks like this machine', 'http://localhost.example.org/mcp', /begin with https/],
    ['a file', 'file:///etc/hostname', /begin with https/],
    ['a password in it', 'https://user:secret@example.org/', /must not hold a password/],
  ])('refuses an address: %s', async (_what, url, why) => {
    await expect(connect(server({ url }))).rejects.toThrow(why);
  });

  test.each([
    ['status_401', 'NOT_EXECUTED'],
    ['status_404', 'NOT_EXECUTED'],
    ['status_429', 'NOT_EXECUTED'],
    ['redirect', 'NOT_EXECUTED'],
    ['see_other', 'UNKNOWN'],
    ['status_500', 'UNKNOWN'],
    ['status_503', 'UNKNOWN'],
    ['hangs_up', 'UNKNOWN'],
    ['no_answer', 'UNKNOWN'],
    ['html', 'UNKNOWN'],
    ['ends_early', 'UNKNOWN'],
    ['other_id', 'UNKNOWN'],
    ['deep', 'UNKNOWN'],
    ['proto', 'UNKNOWN'],
    ['huge', 'UNKNOWN'],
    ['huge_event', 'UNKNOWN'],
    ['flood', 'UNKNOWN'],
    ['comments', 'UNKNOWN'],
    ['crlf_events', { content: [] }],
    ['other_events', { content: [] }],
    ['cr_lines', 'UNKNOWN'],
  ] as const)('%s: %j', async (mode, expected) => {
    const link = await connect(server());
    upstream.behave({ mode });
    expect(await cameTo(call(link))).toEqual(expected);
    expect(upstream.posted.filter((method) => method === 'tools/call')).toHaveLength(1);
    expect(upstream.elsewhere).toBe(0);
  });

  test('a session that the server has forgotten is over: the next connection initializes again', async () => {
    const link = await connect(server());
    upstream.behave({ mode: 'status_404' });
    expect(await cameTo(call(link))).toBe('NOT_EXECUTED');
    expect(link.isOpen).toBe(false);
  });

  test('an endless answer is aborted with its call, and its stream is closed', async () => {
    const link = await connect(server());
    upstream.behave({ mode: 'drips' });
    const abort = new AbortController();
    const answer = cameTo(call(link, abort.signal));
    await until(() => upstream.posted.includes('tools/call'));
    abort.abort();
    expect(await answer).toBe('UNKNOWN');
    await until(() => upstream.posted.includes('notifications/cancelled') && upstream.streams === 0);
    expect(link.isOpen).toBe(true);
  });

  test('without a server, the call was certainly not executed', async () => {
    const link = await connect(server());
    await upstream.close();
    expect(await cameTo(call(link))).toBe('NOT_EXECUTED');
  });
});
