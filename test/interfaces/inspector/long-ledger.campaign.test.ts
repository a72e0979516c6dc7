// Reads of a ledger that exceeds one response, which must not delay other work.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createHomeView, type LedgerView } from '../../../src/interfaces/inspector/ledger-view.js';
import { homeInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { ENTRY_BYTES_MAX, type InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { explainDecisionAt } from '../../../src/features/simulation/views/explain-decision.js';
import { readDecisionsAt } from '../../../src/features/simulation/decision-fold.js';
import { explain } from '../../../src/features/simulation/explain.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

let bench: Bench;
let source: InspectorSource;
let looked: LedgerView;
let denied = -1;
const texts: string[] = [];

beforeAll(async () => {
  bench = await Bench.open();
  const { ledger } = bench.turnpike;
  looked = createHomeView(ledger, null, true);
  source = homeInspectorSource(ledger, null);
  for (let bytes = 0; bytes < 1.2 * ENTRY_BYTES_MAX;) {
    const agent = await bench.turnpike.startAgent();
    for (let step = 0; step < 40; step += 1)
      await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${step % 3}.md`, content: 'x' })));
    await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/run.sh', content: 'x' })));
    await agent.end();
    for await (const { text, log_index } of ledger.log(texts.length)) {
      texts.push(text);
      bytes += Buffer.byteLength(text) + 1;
      if (text.includes('"authz_decision"') && text.includes('"outcome":"deny"')) denied = log_index;
    }
  }
}, 120_000);
afterAll(async () => {
  await source.close();
  await bench.close();
});

test('returns entries in consecutive responses of at most 4 MiB, each as large as allowed', async () => {
  const sizes: number[] = [];
  const got: string[] = [];
  while (got.length < texts.length) {
    const part = await source.entries(got.length, texts.length);
    got.push(...part);
    sizes.push(Buffer.byteLength(part.map((text) => `${text}\n`).join('')));
    const next = texts[got.length];
    if (next !== undefined) expect((sizes.at(-1) ?? 0) + Buffer.byteLength(next) + 1).toBeGreaterThan(ENTRY_BYTES_MAX);
  }
  expect(got).toEqual(texts);
  expect(sizes.length).toBe(2);
  for (const size of sizes) expect(size).toBeLessThanOrEqual(4 * 1024 * 1024);
});

test('searches for changes that would flip a decision one policy at a time, and yields between them', async () => {
  let turns = 0;
  const pause = (): undefined => void (turns += 1);
  const { tree_id } = JSON.parse(texts[denied] ?? '{}') as { tree_id: string };
  const { decisions } = await readDecisionsAt(looked, tree_id, ({ log_index }) => log_index === denied, pause);
  const folding = turns;
  turns = 0;
  const why = await explainDecisionAt(looked, denied, pause);
  expect(turns - folding).toBeGreaterThan(20);
  const { changes } = await explain(decisions[0] ?? (undefined as never));
  expect(why?.changes.map(({ text }) => text)).toEqual(changes.map(({ text }) => text));
  expect(changes.length).toBeGreaterThan(0);
});
