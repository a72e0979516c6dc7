// Monitors the liveness of the service, as a load balancer does, every second time over a new connection.

import { setTimeout as pause } from 'node:timers/promises';
import { call, keptAlive } from './http-calls.js';
import { argument, type ClientOptions, type Measured } from './protocol.js';

const INTERVAL_MS = 25;

const { url, token, ms } = argument() as ClientOptions;
const agent = keptAlive();
// Until its own code is compiled, it would measure itself.
for (let n = 0; n < 5; n += 1) {
  await call({ url: `${url}/api/v1/health`, token, ...(n % 2 === 0 ? { agent } : {}) }).catch(() => null);
}
const begin = performance.now();
const times: number[] = [];
let failures = 0;
for (let n = 0; performance.now() - begin < ms; n += 1) {
  const since = performance.now();
  try {
    const { status } = await call({ url: `${url}/api/v1/health`, token, ...(n % 2 === 0 ? { agent } : {}) });
    if (status !== 200) failures += 1;
  } catch {
    failures += 1;
  }
  times.push(performance.now() - since);
  await pause(INTERVAL_MS);
}
const measured: Measured = { times: times.sort((a, b) => a - b), failures, ms: performance.now() - begin };
process.stdout.write(`${JSON.stringify(measured)}\n`);
agent.destroy();
