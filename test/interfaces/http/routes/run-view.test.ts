// S4-69: which retry a run is, as HTTP shows it.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { nanoidIds } from '../../../../src/system/nanoid-ids.js';
import type { RunView } from '../../../../src/interfaces/http/routes/run-routes.js';
import { Bench } from '../../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../../fixtures/service.js';
import { proposal } from '../../../fixtures/tree.js';
import { HttpBench } from '../http-harness.js';

const offered = service({ idempotent: true });
let http: HttpBench;
beforeEach(async () => {
  const edit = (name: Parameters<typeof serviceEdit>[0], text: string) =>
    `${serviceEdit(name, text)}${name === 'actions' ? '\nretries: { max: 1, backoff_ms: 1 }\n' : ''}`;
  http = await HttpBench.on(await Bench.open({ ...offered, edit, ids: nanoidIds() }));
});
afterEach(() => http.close());

test('S4-69: the run of a retry has its number as a number, and its recorded metadata as texts', async () => {
  const agent = await http.bench.turnpike.startAgent(CASE_AGENT);
  offered.world.mode = 'down';
  const call = proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 7 } });
  const submitted = agent.submit(JSON.stringify(call));
  while (offered.world.calls.length < 2) {
    http.bench.clock.advance(1);
    await new Promise(setImmediate);
  }
  await submitted;
  const token = http.token({ rights: ['observe'] });
  const { runs } = (await (await http.ask(`/runs/${agent.run_id}/tree`, token)).json()) as { runs: RunView[] };
  const [retry] = runs.filter(({ retry_count }) => retry_count !== undefined);
  expect(retry).toMatchObject({ retry_count: 1, metadata: { retry_count: '1' } });
  const one = await http.ask(`/runs/${retry?.run_id ?? ''}`, token);
  expect(await one.json()).toMatchObject({ retry_count: 1 });
  const list = (await (await http.ask('/runs', token)).json()) as { trees: { runs: RunView[] }[] };
  expect(list.trees.flatMap((tree) => tree.runs.flatMap(({ retry_count }) => retry_count ?? []))).toEqual([1]);
  await agent.end();
});
