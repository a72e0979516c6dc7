import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { turnpikeMatchers, type TurnpikeMatchers } from '../../../src/interfaces/replay/index.js';
import type { ReplayEntry, ReplaySource } from '../../../src/kernel/replay/replay.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

declare module 'expect' {
  interface Matchers<R> extends TurnpikeMatchers<R> {}
}

expect.extend(turnpikeMatchers);

const json = (value: object): string => JSON.stringify(value);

/** A ledger with a success, a denial and an end, as a service's own test would have it. */
async function withLedger(work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open();
  const agent = await bench.turnpike.startAgent();
  await agent.submit(json(proposal('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' })));
  await agent.submit(json(proposal('DELETE_FILE', { path: '/sandbox/a.sh' })));
  await agent.submit(json(proposal('FINISH', { response: '' })));
  await work(bench);
  await bench.close();
}

/** The same ledger with one entry changed. */
function changed(source: ReplaySource, change: (entry: ReplayEntry) => ReplayEntry): ReplaySource {
  return {
    async *log() {
      for await (const entry of source.log()) yield change(entry);
    },
    tree: (tree_id) => source.tree(tree_id),
    artifactsOf: (place) => source.artifactsOf(place),
  };
}

describe('toReplayIdentically', () => {
  test('U-06: passes on a ledger that the machines produced', () =>
    withLedger(async ({ turnpike }) => {
      await expect(turnpike).toReplayIdentically();
      await expect(turnpike.ledger).toReplayIdentically();
    }));

  test('U-06: names the first entry that they would not have produced', () =>
    withLedger(async ({ turnpike }) => {
      const forged = changed(turnpike.ledger, (entry) =>
        entry.type === 'step_trace' ? { ...entry, text: entry.text.replace('SUCCESS', 'SUCCES5') } : entry,
      );
      await expect(forged).not.toReplayIdentically();
      await expect(expect(forged).toReplayIdentically()).rejects.toThrow(/entry run_\w+#\d+ \(@\d+\): entry\.differs/);
      await expect(expect(turnpike).not.toReplayIdentically()).rejects.toThrow(/expected the ledger to differ/);
    }));
});

describe('toSatisfyLifecycle', () => {
  test('S4-21 S4-22 S4-44 S4-45 S4-46 S4-47 S4-48: passes on runs that follow the table, and reports every missing event', () =>
    withLedger(async (bench) => {
      const entries = await bench.entries();
      expect(entries).toSatisfyLifecycle();
      for (let index = 0; index < entries.length; index += 1) {
        const entry = entries[index];
        if (entry?.type !== 'audit_event' && entry?.type !== 'run_created') continue;
        expect(without(entries, index)).not.toSatisfyLifecycle();
      }
      expect([...entries, ...entries]).not.toSatisfyLifecycle();
    }));

  const without = (entries: readonly Entry[], index: number): Entry[] => entries.filter((_, at) => at !== index);
});

describe('toBeDeniedBy', () => {
  test('S4-36: names the denying rule', () =>
    withLedger(async (bench) => {
      const entries = await bench.entries();
      expect(entries).toBeDeniedBy('extension.not_allowed');
      expect(entries).not.toBeDeniedBy('lane.unknown');
      expect(entries.slice(0, 4)).not.toBeDeniedBy('extension.not_allowed');
      for await (const tree of bench.turnpike.ledger.trees()) {
        const denied = tree.runs.filter(({ status }) => status === 'denied');
        expect(denied).toHaveLength(1);
        expect(denied[0]).toBeDeniedBy('extension.not_allowed');
        expect(tree.runs[0]).not.toBeDeniedBy('extension.not_allowed');
      }
    }));
});
