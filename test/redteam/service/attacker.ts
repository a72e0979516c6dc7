// One hostile token with every right except those of people, which attacks as hard as it can.

import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setPriority } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { call, type Answer } from './http-calls.js';
import { argument, type Attack, type AttackerOptions } from './protocol.js';

const options = argument() as AttackerOptions;
const { url, token, ms, seed } = options;
const { port, host } = new URL(url);
const until = performance.now() + ms;
const isOver = (): boolean => performance.now() >= until;
// It would have its own machine: its own work must not slow down the measured processes.
setPriority(10);

let state = seed >>> 0 || 1;
/** A number below `max`, the same for the same seed. */
function below(max: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 4_294_967_296) * max);
}

const open = new Set<Socket>();
function hostileSocket(text: string | Uint8Array, reads: boolean): Socket {
  const socket = connect(Number(port), '127.0.0.1');
  open.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => open.delete(socket));
  if (reads) socket.resume();
  else socket.pause();
  socket.write(text);
  return socket;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** Waves of connections that send, wait a moment, and disconnect. */
async function waves(count: number, text: (n: number) => string | Uint8Array, held: () => number): Promise<void> {
  while (!isOver()) {
    const sockets = Array.from({ length: count }, (_, n) => hostileSocket(text(n), false));
    await pause(held());
    for (const socket of sockets) socket.destroy();
  }
}

const ATTACKERS: Readonly<Record<Attack, () => Promise<void>>> = {
  /** 50 connections pipeline 200 lists of runs each, and disconnect. */
  'pipelined-runs': () => {
    const wave = get('/api/v1/runs?limit=100').repeat(200);
    return waves(
      50,
      () => wave,
      () => 20 + below(180),
    );
  },
  /** 200 connections request 100,000 entries each, and read none. */
  'unread-entries': () =>
    waves(
      200,
      (n) =>
        get(n % 4 === 0 ? '/api/v1/inspector/rows?from=0&to=100000' : '/api/v1/inspector/entries?from=0&to=100000'),
      () => 1_000 + below(2_000),
    ),
  /** Streams of the whole log that are never read, together with invalid tokens. */
  'unread-streams': async () => {
    const badly = get('/api/v1/runs').replace(token, 'x'.repeat(43));
    await Promise.all([
      waves(
        64,
        () => get('/api/v1/stream?after=-1'),
        () => 2_000 + below(2_000),
      ),
      waves(
        32,
        () => badly,
        () => 5 + below(20),
      ),
    ]);
  },
  /** Bodies of the maximum size, half of them never complete. */
  'large-bodies': async () => {
    const run = await started();
    const body = Buffer.alloc(4_194_304, 0x61);
    const head = `POST /api/v1/agents/${run}/steps HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/octet-stream\r\nContent-Length: ${body.length}\r\n\r\n`;
    const whole = Buffer.concat([Buffer.from(head), body]);
    await waves(
      100,
      (n) => (n % 2 === 0 ? whole : whole.subarray(0, whole.length / 2)),
      () => 300 + below(700),
    );
  },
  /** Steps of 64 runs at full speed, requests for unknown paths, and MCP sessions without limit. */
  'steps-and-mcp': async () => {
    const runs = await Promise.all(Array.from({ length: 64 }, started));
    const stepping = runs.map(async (run) => {
      while (!isOver()) await attempt(`/api/v1/agents/${run}/steps`, thinking());
    });
    const nothing = Array.from({ length: 16 }, async () => {
      while (!isOver()) await attempt('/api/v1/nothing');
    });
    const sessions = Array.from({ length: 16 }, async () => {
      while (!isOver()) await attempt('/mcp', greeting(), { accept: 'application/json, text/event-stream' });
    });
    await Promise.all([...stepping, ...nothing, ...sessions]);
  },
};

async function attempt(
  path: string,
  body?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer | null> {
  const sent = { url: `${url}${path}`, token, headers, ...(body === undefined ? {} : { method: 'POST', body }) };
  return call(sent).catch(() => null);
}

async function started(): Promise<string> {
  const answer = await attempt('/api/v1/agents', '{"case":"case-local"}');
  const { run_id } = JSON.parse(answer?.status === 201 ? answer.text : '{"run_id":"run_000000000000000000000"}') as {
    run_id: string;
  };
  return run_id;
}

const thinking = (): string =>
  JSON.stringify({ schema_version: '1.0.0', id: randomUUID(), reasoning: 'Noise.', action: 'THINK', args: {} });

const greeting = (): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'mallory', version: '1' } },
  });

await Promise.all(options.attacks.map((attack) => ATTACKERS[attack]()));
for (const socket of open) socket.destroy();
process.exit(0);
