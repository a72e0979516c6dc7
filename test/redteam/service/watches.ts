// Figures besides times and memory that are the same on any machine, however slow it is.

import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from './http-calls.js';
import type { Served } from './protocol.js';

/** Concurrent steps of the hostile token. */
const STEPS = 64;
const LOOKS_MAX = 3_000;
const LOOK_MS = 20;

/**
 * How many steps of the hostile token run while a step of another token runs. None of these steps ever gets its whole
 * body, so none ends: the running ones are those that the service admits, and all others wait.
 */
export async function stepsBesideAnother(served: Served): Promise<number> {
  const { victim, hostile } = served.tokens;
  const [theirs, own] = [await started(served, victim), await started(served, hostile)];
  const sockets = [half(served, victim, theirs)];
  try {
    // This query is a request, too.
    await look(served, ({ running }) => running >= 2);
    for (let n = 0; n < STEPS; n += 1) sockets.push(half(served, hostile, own));
    const { running } = await look(served, (found) => found.running + found.waiting >= STEPS + 2);
    return running - 2;
  } finally {
    for (const socket of sockets) socket.destroy();
    await look(served, ({ running, waiting }) => running + waiting === 1);
  }
}

async function started({ url }: Served, token: string): Promise<string> {
  const { text } = await call({ url: `${url}/api/v1/agents`, token, method: 'POST', body: '{"case":"case-local"}' });
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** A step whose announced body never arrives. */
function half({ url }: Served, token: string, run: string): Socket {
  const { host, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
  socket.resume();
  socket.write(
    `POST /api/v1/agents/${run}/steps HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/octet-stream\r\nContent-Length: 100\r\n\r\n{',
  );
  return socket;
}

interface Requests {
  readonly running: number;
  readonly waiting: number;
}

/** The request metrics of the service, as soon as `holds` is true. @throws Error if it never is */
async function look({ url, tokens }: Served, holds: (found: Requests) => boolean): Promise<Requests> {
  let text = '';
  for (let n = 0; n < LOOKS_MAX; n += 1) {
    ({ text } = await call({ url: `${url}/api/v1/metrics`, token: tokens.probe }));
    const found = { running: gauge(text, 'running'), waiting: gauge(text, 'waiting') };
    if (holds(found)) return found;
    await pause(LOOK_MS);
  }
  throw new Error(`the requests of the service are not what was sent: ${text}`);
}

const gauge = (text: string, state: string): number =>
  Number(new RegExp(`turnpike_requests_running\\{state="${state}"\\} (\\d+)`).exec(text)?.[1]);

/** The hostile token requests two long responses over one connection, and reads nothing of them. */
export function unreadAnswer({ url, tokens }: Served): Socket {
  const { host, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
  socket.pause();
  const request =
    `GET /api/v1/inspector/entries?from=0&to=100000 HTTP/1.1\r\nHost: ${host}\r\n` +
    `Authorization: Bearer ${tokens.hostile}\r\n\r\n`;
  // The kernel may take the first response of 4 MiB whole. The second stays in the memory of the service.
  socket.write(request.repeat(2));
  return socket;
}

/**
 * The largest number of bytes that the service has held for one response, by its own reports: as soon as that exceeds
 * the limit, or no growing response is left. The service aborts responses that are not read.
 */
export async function heldBytes(served: Served, lines: () => readonly string[], limit: number): Promise<number> {
  const held = (): number => largest(lines());
  await look(served, ({ running, waiting }) => running + waiting === 1 || held() > limit);
  return held();
}

/** The first line of the service is about itself. */
function largest(lines: readonly string[]): number {
  return Math.max(0, ...lines.slice(1).map((line) => (JSON.parse(line) as { readonly held: number }).held));
}
