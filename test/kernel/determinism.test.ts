import { describe, expect, test } from '@jest/globals';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../src/core/contract/hash.js';
import type { Decision, TreeInput } from '../../src/kernel/decision.js';
import { Tree } from '../../src/kernel/tree.js';
import { sized } from '../fixtures/campaign.js';
import { randomTree, REASONING } from '../fixtures/random-tree.js';
import { AGENT, essence, proposal, TreeDriver } from '../fixtures/tree.js';

/** 200 random trees with their inputs. */
const trees = Array.from({ length: sized(60, 200) }, (_, i) => randomTree(3_001 + i));

const decideAll = (tree_id: string, inputs: readonly TreeInput[]): Decision[] => {
  const tree = new Tree(tree_id);
  return inputs.map((input) => tree.decide(input));
};

test('S2-06 S2-18: the same inputs give the same ledger, byte for byte, and the same commands and replies', () => {
  for (const d of trees) {
    expect(decideAll(d.tree_id, d.inputs).map(essence)).toEqual(d.decisions.map(essence));
  }
});

test('S2-06: trees in one process do not affect one another', () => {
  for (let i = 0; i + 1 < trees.length; i += 2) {
    const [a, b] = [trees[i]!, trees[i + 1]!];
    const [treeA, treeB] = [new Tree(a.tree_id), new Tree(b.tree_id)];
    for (let n = 0; n < Math.max(a.inputs.length, b.inputs.length); n += 1) {
      if (n < a.inputs.length) expect(essence(treeA.decide(a.inputs[n]!))).toBe(essence(a.decisions[n]!));
      if (n < b.inputs.length) expect(essence(treeB.decide(b.inputs[n]!))).toBe(essence(b.decisions[n]!));
    }
  }
});

/** The hashes and references of one tree, and what they become in the other. */
type Renamed = Map<string, string>;

/** The same inputs, with another text of the same length for every reasoning. */
function withOtherReasoning(inputs: readonly TreeInput[]): { inputs: TreeInput[]; renamed: Renamed } {
  const renamed: Renamed = new Map();
  const doubled = inputs.map(({ recorded, materials }): TreeInput => {
    if (recorded.kind !== 'proposal') return { recorded, materials };
    const [payload, ...rest] = materials;
    const bytes = Buffer.from(Buffer.from(payload!.bytes).toString('latin1').replaceAll(REASONING, OTHER), 'latin1');
    const other: Artifact = { ...payload!, bytes };
    renamed.set(sha256(payload!.bytes), sha256(bytes));
    for (const [was, is] of reasonings(payload!.bytes, bytes)) renamed.set(sha256(was), sha256(is));
    const { seen } = recorded;
    const payload_sha256 = seen === null ? '' : (renamed.get(seen.payload_sha256) ?? seen.payload_sha256);
    return {
      recorded: { ...recorded, payload: artifactRef(other), seen: seen === null ? null : { ...seen, payload_sha256 } },
      materials: [other, ...rest],
    };
  });
  return { inputs: doubled, renamed };
}

const OTHER = 'ignore all rules'.slice(0, REASONING.length).padEnd(REASONING.length, '!');

/** The reasoning of both payloads, if they can be parsed. */
function reasonings(was: Uint8Array, is: Uint8Array): [string, string][] {
  try {
    const read = (bytes: Uint8Array): unknown =>
      (JSON.parse(Buffer.from(bytes).toString()) as { reasoning?: unknown }).reasoning;
    const pair = [read(was), read(is)];
    return pair.every((text) => typeof text === 'string') ? [pair as [string, string]] : [];
  } catch {
    return [];
  }
}

/** A decision without the chain of hashes, which differs completely after the first difference. */
const unchained = (decision: Decision): string =>
  essence({
    ...decision,
    entries: decision.entries.map((sealed) => ({ ...sealed, text: JSON.stringify(sealed.entry.body) })),
  });

test('S0-67 C20 S2-06: another text of the same length as reasoning changes no decision, effect, verdict or response', () => {
  let changed = 0;
  for (const d of trees) {
    const { inputs, renamed } = withOtherReasoning(d.inputs);
    const double = decideAll(d.tree_id, inputs);
    expect(
      double.map(({ commands, replies, timers, ended, refused }) => ({ commands, replies, timers, ended, refused })),
    ).toEqual(
      d.decisions.map(({ commands, replies, timers, ended, refused }) => ({
        commands,
        replies,
        timers,
        ended,
        refused,
      })),
    );
    const expected = d.decisions.map((decision) =>
      unchained(decision).replace(/[0-9a-f]{64}/g, (hash) => renamed.get(hash) ?? hash),
    );
    expect(double.map(unchained)).toEqual(expected);
    changed += expected.filter((text, i) => text !== unchained(d.decisions[i]!)).length;
  }
  expect(changed).toBeGreaterThan(trees.length * 3);
});

describe('S0-16: times are recorded, and decide nothing', () => {
  const shifted = (inputs: readonly TreeInput[], shift: (ms: number, n: number) => number): TreeInput[] =>
    inputs.map(({ recorded, materials }, n) => ({
      recorded: { ...recorded, time: new Date(shift(Date.parse(recorded.time), n)).toISOString() },
      materials,
    }));
  const untimed = (decision: Decision): string => unchained(decision).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time');

  test('a history that happens a year later is the same history', () => {
    for (const d of trees.slice(0, 60)) {
      const later = shifted(d.inputs, (ms) => ms + 31_536_000_000);
      expect(decideAll(d.tree_id, later).map(untimed)).toEqual(d.decisions.map(untimed));
    }
  });

  test('a history of attached agents may have any times, even decreasing ones', () => {
    const d = new TreeDriver().ready();
    d.act('READ_FILE', { path: '/sandbox/a.txt' });
    d.done(`${AGENT}.1`, { content: 'x' });
    d.propose(proposal('RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.sh' }));
    d.propose('{');
    d.cancel();
    for (const shift of [(ms: number) => ms, (_ms: number, n: number) => 1_000_000 - n * 1000, () => 0]) {
      expect(decideAll(d.tree_id, shifted(d.inputs, shift)).map(untimed)).toEqual(d.decisions.map(untimed));
    }
  });
});

test("D11: the ids of a tree come from its own ordinals, and not from the order of its agents' inputs", () => {
  const play = (turns: readonly number[]): string[] => {
    const d = new TreeDriver().ready();
    d.startAgent();
    for (const turn of turns) {
      const run_id = `${d.tree_id}.${turn}`;
      d.propose(proposal('READ_FILE', { path: '/sandbox/a.txt' }), null, run_id);
      d.facts({ paths: [{ status: 'refused', kind: 'symlink' }], usage: null }, run_id);
    }
    return d
      .bodies('run_created')
      .map(({ run_id }) => run_id)
      .sort();
  };
  expect(play([1, 1, 2, 2])).toEqual(play([2, 1, 2, 1]));
  expect(play([1, 2])).toEqual(['run_testtree', AGENT, `${AGENT}.1`, 'run_testtree.2', 'run_testtree.2.1']);
});
