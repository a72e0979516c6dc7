// The handle of an agent run from before a restart: the run continues, and only a new handle can act on it.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const think = (): string => JSON.stringify(proposal('THINK', {}));
const RUN_ENDED = expect.objectContaining({ code: 'RUN_ENDED' });

test.each([
  ['cancel', 'before it is found again', (run: AgentRun) => run.cancel('stale')],
  ['cancel', 'after it is found again', (run: AgentRun) => run.cancel('stale')],
  ['interrupt', 'before it is found again', (run: AgentRun) => run.interrupt()],
  ['interrupt', 'after it is found again', (run: AgentRun) => run.interrupt()],
])('D3 a handle from before a restart cannot %s the run, %s', async (_what, when, act) => {
  const state = new LedgerModel();
  const sandbox = tempFolder('stale');
  mkdirSync(join(sandbox, 'case-local'));
  const bench = await Bench.open({ store: modelStore(state), sandbox });
  const { turnpike } = bench;
  const stale = await turnpike.startAgent({ link: 'remote' });
  state.breakCommits(true);
  await stale.submit(think());
  state.breakCommits(false);
  await turnpike.restart();
  if (when.startsWith('after')) await turnpike.agent(stale.run_id);
  await expect(act(stale)).rejects.toEqual(RUN_ENDED);
  const current = await turnpike.agent(stale.run_id);
  expect(await current?.submit(think())).toMatchObject({ outcome: 'SUCCESS' });
  await expect(current?.cancel('current')).resolves.toMatchObject({ state: 'cancelled' });
  await expect(stale.cancel('ended')).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
  await bench.close();
});
