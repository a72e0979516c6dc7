// An agent that works while another token attacks: one governed read after another.

import { randomUUID } from 'node:crypto';
import { call, keptAlive } from './http-calls.js';
import { argument, type ClientOptions, type Measured } from './protocol.js';

const STEPS_PER_RUN = 500;

const { url, token, ms } = argument() as ClientOptions;
const agent = keptAlive();
const api = `${url}/api/v1/agents`;
const begin = performance.now();
const times: number[] = [];
let failures = 0;
let run: string | null = null;
while (performance.now() - begin < ms) {
  try {
    if (run === null || times.length % STEPS_PER_RUN === STEPS_PER_RUN - 1) run = await start();
    const since = performance.now();
    const { status, text } = await call({ url: `${api}/${run}/steps`, token, method: 'POST', body: step(), agent });
    times.push(performance.now() - since);
    if (status !== 200 || !text.includes('"outcome":"SUCCESS"')) failures += 1;
  } catch {
    failures += 1;
    run = null;
  }
}
const measured: Measured = { times: times.sort((a, b) => a - b), failures, ms: performance.now() - begin };
process.stdout.write(`${JSON.stringify(measured)}\n`);
agent.destroy();

async function start(): Promise<string> {
  const { text } = await call({ url: api, token, method: 'POST', body: '{"case":"case-local"}', agent });
  return (JSON.parse(text) as { run_id: string }).run_id;
}

function step(): string {
  const proposal = { action: 'READ_FILE', args: { path: '/sandbox/a/note.txt' } };
  return JSON.stringify({ schema_version: '1.0.0', id: randomUUID(), reasoning: 'My own work.', ...proposal });
}
