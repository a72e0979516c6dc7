// More trees than are followed at a time, in alternation: each continues from its last reported event.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { InspectionEvent } from 'xstate';
import { watchLedger, type LedgerWatch } from '../../src/runtime/ledger/watch-ledger.js';
import { Bench } from '../fixtures/bench.js';
import { sized } from '../fixtures/campaign.js';
import { proposal } from '../fixtures/tree.js';

/** Six more trees than are followed at a time. */
const TREES = 70;
const ROUNDS = sized(2, 3);

let bench: Bench;
let watch: LedgerWatch;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(async () => {
  await watch.close();
  await bench.close();
});

test('reports every event of a tree once, whatever other trees do meanwhile, and follows each to its end', async () => {
  const events = new Map<string, number>();
  const values = new Map<string, unknown>();
  const observe = (event: InspectionEvent): void => {
    const { id } = event.actorRef as unknown as { readonly id: string };
    if (event.type === '@xstate.event' && event.event.type === 'PROPOSE') events.set(id, (events.get(id) ?? 0) + 1);
    if (event.type === '@xstate.snapshot') values.set(id, (event.snapshot as { readonly value?: unknown }).value);
  };
  const failures: unknown[] = [];
  watch = watchLedger(bench.turnpike.ledger, observe, { from: 0, failed: (error) => failures.push(error) });
  const runs = [];
  for (let at = 0; at < TREES; at += 1) runs.push(await bench.turnpike.startAgent({ case: `case-${at % 5}` }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const run of runs) await run.submit(JSON.stringify(proposal('THINK', {})));
    await watch.caughtUp();
  }
  expect([...events].filter(([, count]) => count !== ROUNDS)).toEqual([]);
  expect([...events.keys()].sort()).toEqual(runs.map(({ run_id }) => run_id).sort());
  for (const run of runs) await run.end();
  await watch.caughtUp();
  expect(runs.filter(({ run_id }) => values.get(run_id) !== 'completed')).toEqual([]);
  expect(failures).toEqual([]);
});
