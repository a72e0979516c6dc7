// Goal: no decision waits for the report of another call, every run ends, and a replay gives the same, however
// reports and calls interleave. Method: many agents at once, each with several open calls, reported in random order,
// some never.

import { expect, test } from '@jest/globals';
import Type from 'typebox';
import { defineExternalTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { CASE_AGENT, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';
import { Random } from '../../simulation/random.js';

/** `AGENTS=1000` for the figure of docs/guarantees.md. */
const AGENTS = Number(process.env['AGENTS'] ?? sized(100, 300));
const CALLS = 8;
const LIVE_AT_ONCE = 20;
const SHOWN = ['done', 'failed', 'unknown'] as const;

const shell = defineExternalTool({
  name: 'mail.send',
  input: Type.Object({ command: Type.String() }, { additionalProperties: false }),
  timeout: 60_000,
});

test(`U-09 U-10: ${AGENTS} agents, each with ${CALLS} calls that are open at once`, async () => {
  const bench = await Bench.open({ edit: serviceEdit, tools: [shell] });
  const { turnpike } = bench;
  const random = new Random('open calls');
  const expected = new Map<string, string>();

  const work = async (n: number): Promise<void> => {
    const agent = await turnpike.startAgent({ ...CASE_AGENT, case: `case-${1_000 + n}`, link: 'remote' });
    const calls = Array.from({ length: CALLS }, (_, call) =>
      agent.submit(JSON.stringify(proposal('CALL_TOOL', { tool: 'mail.send', input: { command: `call ${call}` } }))),
    );
    // All are decided before the first report.
    const runs = (await Promise.all(calls)).map((response) => {
      expect(response).toMatchObject({ outcome: 'SUCCESS', result: { authorized: true } });
      return (response as { result: { run_id: string } }).result.run_id;
    });
    expect(new Set(runs).size).toBe(CALLS);
    const order = runs.map((run) => ({ run, at: random.next() })).sort((a, b) => a.at - b.at);
    const reported = order.slice(0, random.chance(0.8) ? CALLS : CALLS - 2);
    await Promise.all(
      reported.map(async ({ run }) => {
        const status = random.pick(SHOWN);
        await turnpike.report({ run, status, result: { n } });
        expected.set(run, status === 'done' ? 'completed' : status === 'failed' ? 'failed:FAILED' : UNKNOWN);
      }),
    );
    for (const { run } of order.slice(reported.length)) expected.set(run, UNKNOWN);
    await agent.end();
  };

  for (let from = 0; from < AGENTS; from += LIVE_AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(LIVE_AT_ONCE, AGENTS - from) }, (_, n) => work(from + n)));

  const recorded = new Map<string, string>();
  for await (const { runs } of turnpike.ledger.trees()) {
    for (const { run_id, status, outcome } of runs) {
      expect(['created', 'running']).not.toContain(status);
      if (expected.has(run_id)) recorded.set(run_id, outcome ?? status);
    }
  }
  expect(recorded.size).toBe(AGENTS * CALLS);
  for (const [run, outcome] of expected) expect([run, recorded.get(run)]).toEqual([run, outcome]);
  expect(await turnpike.replay()).toMatchObject({ ok: true, difference: null });
  // Closing it verifies the ledger, and replays it again from the store.
  await bench.close();
}, 600_000);

const UNKNOWN = 'failed:OUTCOME_UNKNOWN';
