/** @modules own */
// A feature whose module cannot be loaded, as in a damaged installation: the call that needs it rejects, and everything
// else works.

import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import type { Telemetry } from '../../src/engine/ports/telemetry.js';
import type { Bench as AnyBench } from '../fixtures/bench.js';
import type { Turnpike } from '../../src/host/turnpike.js';

const DAMAGED = [
  'features/decisions/decisions',
  'features/promotions/ballots',
  'features/promotions/high-risk-runs',
  'features/telemetry/engine-telemetry',
  'features/hooks/gate/hook-requests',
];
for (const name of DAMAGED) {
  jest.unstable_mockModule(`../../src/${name}.js`, () => {
    throw new Error(`${name} is damaged`);
  });
}
const { Bench } = await import('../fixtures/bench.js');
const { proposal } = await import('../fixtures/tree.js');

const errors: string[] = [];
const log = { info: () => undefined, warn: () => undefined, error: (message: string) => void errors.push(message) };

let bench: AnyBench;
beforeEach(async () => {
  errors.length = 0;
  bench = await Bench.open({ log });
});
afterEach(async () => {
  const agent = await bench.turnpike.startAgent();
  const step = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }));
  expect(await agent.submit(step)).toMatchObject({ outcome: 'SUCCESS' });
  await bench.close();
});

const starter = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-local' };
/** The module that each call needs. Calls of one part need the same. */
const CALLS: readonly (readonly [string, (turnpike: Turnpike) => Promise<unknown>])[] = [
  [
    'features/promotions/high-risk-runs',
    (turnpike) => turnpike.promote({ ...starter, ticket: 'T-1', target: 'notes', record: {} }),
  ],
  ['features/promotions/high-risk-runs', (turnpike) => turnpike.highRiskRun('run_00000000.1')],
  [
    'features/promotions/ballots',
    (turnpike) => turnpike.approve({ ...starter, run: 'run_00000000.1', digests: [], decision: 'approve' }),
  ],
  ['features/decisions/decisions', (turnpike) => turnpike.decide({ ...starter, tool: 't', input: {} })],
];

test('a call that needs the module rejects, each time, and the Turnpike goes on', async () => {
  for (const [damaged, call] of [...CALLS, ...CALLS])
    await expect(call(bench.turnpike)).rejects.toThrow(`${damaged} is damaged`);
});

test('opening with telemetry rejects, and leaves the home closed', async () => {
  await bench.turnpike.close();
  const telemetry = {} as Telemetry;
  await expect(Bench.reopen(bench, { telemetry })).rejects.toThrow('features/telemetry/engine-telemetry is damaged');
  bench = await Bench.reopen(bench);
});

test('a request of a hook gets an error, and its connection serves others', async () => {
  const socket = createConnection(join(bench.home, 'control.sock'));
  const answers = createInterface(socket)[Symbol.asyncIterator]();
  const send = async (request: object): Promise<unknown> => {
    socket.write(`${JSON.stringify(request)}\n`);
    const { value } = (await answers.next()) as IteratorResult<string, undefined>;
    return JSON.parse(value ?? 'null');
  };
  try {
    expect(await send({ id: 1, op: 'hook' })).toMatchObject({ id: 1, ok: false, error: { code: 'INVARIANT' } });
    expect(errors[0]).toBe('what a request of the control socket needs cannot be loaded');
    expect(await send({ id: 2, op: 'ping' })).toEqual({ id: 2, ok: true, result: {} });
  } finally {
    socket.destroy();
  }
});
