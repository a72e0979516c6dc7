// The lines of policy that made a decision, found for every decision of a few runs.

import { afterEach, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decisionsIn } from '../../../src/features/simulation/decision-fold.js';
import { explain, type Explanation } from '../../../src/features/simulation/explain.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';
import { answerJson, DecisionServer } from '../../host/decision-points/decision-server.js';
import { refund, refundCall, refundEdit } from '../../host/conditions/refund-service.js';

const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
const CALLS = `    calls:
      - { id: small, tools: [payments.refund], decision: allow }
      - { id: large, tools: [billing.charge], decision: deny }
`;

let server: DecisionServer;
let bench: Bench;
afterEach(async () => {
  await server.close();
  await bench.close();
});

async function open(): Promise<void> {
  server = await DecisionServer.start();
  const points = `decision_points:
  - name: other
    protocol: opa
    url: ${server.url}
    actions: [DELETE_FILE]
    timeout_ms: 1000
  - name: fraud
    protocol: authzen
    url: ${server.url}
    actions: ['CALL_TOOL:payments.refund']
    timeout_ms: 1000
approvals:
  - { for: DELETE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
  bench = await Bench.open({
    tools: [refund],
    edit: (name, text) => {
      const edited = refundEdit(name, text);
      if (name === 'lanes') return edited.replace('    scope: { requires: [case_id, run_id]', `${CALLS}$&`);
      return name === 'actions' ? `${edited.replace('bytes_max: 104857600', 'bytes_max: 20')}\n${points}` : edited;
    },
  });
}

async function explanations(): Promise<readonly Explanation[]> {
  await bench.turnpike.close();
  const { store, externalHeadStore } = openHome(homePaths(bench.home), { readOnly: true });
  const found: Explanation[] = [];
  try {
    const count = { trees: 0, entries: 0, not_recomputed: 0 };
    const { folded } = new LedgerReader(store, externalHeadStore);
    for await (const decision of decisionsIn(folded, undefined, count)) found.push(await explain(decision));
  } finally {
    await store.close();
  }
  return found;
}

test('each place is the line of its file that says so', async () => {
  await open();
  const files = await bench.turnpike.startAgent();
  const propose = (action: string, args: object) => files.submit(JSON.stringify(proposal(action, args)));
  await propose('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
  await propose('WRITE_FILE', { path: '/sandbox/a.bin', content: 'x' });
  await propose('WRITE_FILE', { path: '/sandbox/b.txt', content: 'x'.repeat(40) });
  server.answer = answerJson({ result: true });
  await propose('DELETE_FILE', { path: '/sandbox/a.txt' });
  const agent = await bench.turnpike.startAgent(AGENT);
  server.answer = answerJson({ decision: true });
  await agent.submit(refundCall(5));
  server.answer = answerJson({ decision: false });
  await agent.submit(refundCall(6));
  const lines = (file: string): readonly string[] =>
    readFileSync(join(bench.contract, 'policy', file), 'utf8').split('\n');
  const linesOf = new Map(['lanes.yaml', 'actions.yaml'].map((file) => [file, lines(file)]));
  const explained = await explanations();
  const places = new Map(
    explained.map(({ decision, places: own }) => [`${decision.said.rule_id ?? '-'} ${decision.action}`, own]),
  );
  for (const { file, line, text } of [...places.values()].flat()) {
    expect(linesOf.get(file)?.[line - 1]?.trim()).toBe(text);
  }
  const textsOf = (key: string) => places.get(key)?.map(({ name, text }) => `${name}: ${text}`);
  expect(textsOf('extension.not_allowed WRITE_FILE')).toEqual([expect.stringMatching(/^extensions of WRITE_FILE: /)]);
  expect(textsOf('quota.bytes WRITE_FILE')).toEqual([expect.stringMatching(/^sandbox.bytes_max: .*bytes_max: 20/)]);
  expect(textsOf('approval.required DELETE_FILE')).toEqual([
    expect.stringMatching(/^approval DELETE_FILE: - \{ for: DELETE_FILE/),
  ]);
  expect(textsOf('decision_point.denied CALL_TOOL')).toEqual(['decision point fraud: - name: fraud']);
  const denied = explained.find(({ decision }) => decision.said.rule_id === 'decision_point.denied');
  expect(denied?.changes).toContainEqual({
    text: 'decision point fraud would have to be removed',
    gives: { decision: 'allow', rule_id: 'lane.granted' },
  });
  expect(textsOf('lane.granted CALL_TOOL')).toEqual([
    'action CALL_TOOL: - action: CALL_TOOL',
    'lane CASE_WORK: - lane_id: CASE_WORK',
    'role CASE_AGENT: allowed_callers: { roles: [CASE_AGENT] }',
    expect.stringMatching(/^tool payments\.refund: tools: \[payments\.refund,/),
    'call small: - { id: small, tools: [payments.refund], decision: allow }',
    'decision point fraud: - name: fraud',
  ]);
});
