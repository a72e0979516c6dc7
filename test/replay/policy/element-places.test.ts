// The lines of policy that made a decision, found for every decision of a few runs.

import { afterEach, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decisionsIn } from '../../../src/replay/policy/decision-fold.js';
import { placesOf, type ElementPlace } from '../../../src/replay/policy/element-places.js';
import { homePaths, openHome } from '../../../src/runtime/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';
import { answerJson, DecisionServer } from '../../runtime/decision-points/decision-server.js';
import { refund, refundCall, refundEdit } from '../../runtime/conditions/refund-service.js';

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

/** The places of every decision, by `rule id` and action. */
async function placesByRule(): Promise<ReadonlyMap<string, readonly ElementPlace[]>> {
  await bench.turnpike.close();
  const { store, anchor } = openHome(homePaths(bench.home), { readOnly: true });
  const found = new Map<string, readonly ElementPlace[]>();
  try {
    const count = { trees: 0, entries: 0, not_recomputed: 0 };
    for await (const decision of decisionsIn(new LedgerReader(store, anchor).folded, undefined, count)) {
      found.set(`${decision.said.rule_id ?? '-'} ${decision.action}`, placesOf(decision));
    }
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
  const places = await placesByRule();
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
  expect(textsOf('lane.granted CALL_TOOL')).toEqual([
    'action CALL_TOOL: - action: CALL_TOOL',
    'lane CASE_WORK: - lane_id: CASE_WORK',
    'role CASE_AGENT: allowed_callers: { roles: [CASE_AGENT] }',
    expect.stringMatching(/^tool payments\.refund: tools: \[payments\.refund,/),
    'call small: - { id: small, tools: [payments.refund], decision: allow }',
    'decision point fraud: - name: fraud',
  ]);
});
