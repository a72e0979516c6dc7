// What a tool says of its failure, and the keys of requests that can be repeated, inside a tree (C94, C95).

import { expect, test } from '@jest/globals';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { ExecutionCause } from '../../src/core/contract/fault.js';
import { GovernedTree, governedPolicy } from '../fixtures/governed.js';
import { AGENT } from '../fixtures/tree.js';

const RETRYING = governedPolicy('retries: { max: 1, backoff_ms: 10000 }\n');
const [FIRST, SECOND] = [`${AGENT}.1`, `${AGENT}.2`] as const;
const WORDS = 'CANARY: the words of a tool';

function failWithWords(d: GovernedTree, run_id: string, cause: ExecutionCause): void {
  const words: Artifact = { kind: 'explanation', case_id: d.caseOf(run_id), bytes: Buffer.from(WORDS) };
  const explanation = artifactRef(words);
  d.send({ kind: 'result', run_id, status: 'failed', cause, result: null, explanation, settled: false }, [words]);
}

test('C94: no snapshot of a tree holds the words of a tool, not even while a step waits for a retry', () => {
  const d = new GovernedTree(RETRYING).working();
  d.call('slow.tool', { amount: 5 });
  failWithWords(d, FIRST, 'NOT_EXECUTED');
  expect(JSON.stringify(d.tree.snapshot())).not.toContain('CANARY');
  d.wait(9_000).wake();
  failWithWords(d, SECOND, 'REFUSED');
  expect(d.traces).toMatchObject([{ cause: 'REFUSED', explanation_ref: { artifact_kind: 'explanation' } }]);
  expect(JSON.stringify(d.tree.snapshot())).not.toContain('CANARY');
});

test('C95: at most 64 requests can be repeated; a further one has an unknown outcome', () => {
  const d = new GovernedTree(governedPolicy()).working();
  for (let amount = 1; amount <= 65; amount += 1) {
    d.call('slow.tool', { amount });
    d.failed(`${AGENT}.${amount}`, 'REPEATABLE');
  }
  const performs = d.commands.flatMap((command) => (command.kind === 'perform' ? [command.effect] : []));
  expect(performs.map(({ run_id, idempotency_key }) => run_id === idempotency_key)).toEqual(Array(65).fill(true));
  d.call('slow.tool', { amount: 65 });
  expect(d.traces.at(-1)).toMatchObject({ rule_id: 'outcome.unsettled' });
  d.call('slow.tool', { amount: 1 });
  const [last] = d.commands.slice(-1);
  expect(last).toMatchObject({ kind: 'perform', effect: { idempotency_key: `${AGENT}.1` } });
});
