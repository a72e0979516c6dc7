import { describe, expect, test } from '@jest/globals';
import type { Artifact } from '../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { Fold, type Difference } from '../../src/kernel/fold.js';
import type { Decision } from '../../src/kernel/decision.js';
import { sized } from '../fixtures/campaign.js';
import { random, randomTree } from '../fixtures/random-tree.js';
import { AGENT, essence, TreeDriver } from '../fixtures/tree.js';

/** How many random trees are folded, and how many are tampered with. */
const [FOLDED, TAMPERED] = [sized(60, 1_000), sized(25, 200)];

/** An entry as a ledger returns it: its text, and the content of an input. */
interface Recorded {
  readonly text: string;
  readonly artifacts: readonly Artifact[];
  /** Whether it is an input; its consequences follow it. */
  readonly input: boolean;
}

const recordOf = (d: TreeDriver): Recorded[] =>
  d.decisions.flatMap(({ entries, artifacts }) =>
    entries.map(({ text }, i) => ({ text, artifacts: i === 0 ? artifacts : [], input: i === 0 })),
  );

/** Folds a record in a new kernel; the position of an entry is its index. */
function foldRecord(tree_id: string, record: readonly Recorded[]) {
  const fold = new Fold(tree_id);
  const decisions: Decision[] = [];
  for (const [seq, { text, artifacts }] of record.entries()) {
    const applied = fold.apply({ seq, text }, artifacts);
    if ('difference' in applied) return { difference: applied.difference, decisions, fold };
    if (!('decision' in applied)) throw new Error('nothing is withheld here, and all can be evaluated');
    if (applied.decision !== null) decisions.push(applied.decision);
  }
  return { difference: fold.finish(), decisions, fold };
}

describe('a tree that is folded from its record', () => {
  test(`U-06 S2-06 S2-18: produces the same entries, commands, replies, timers and marks, for ${FOLDED} random trees`, () => {
    let inputs = 0;
    let entries = 0;
    for (let seed = 1; seed <= FOLDED; seed += 1) {
      const d = randomTree(seed);
      const { difference, decisions, fold } = foldRecord(d.tree_id, recordOf(d));
      expect(difference).toBeNull();
      expect(decisions.findIndex((decision, i) => essence(decision) !== essence(d.decisions[i]!))).toBe(-1);
      expect(fold.tree.head).toEqual(d.tree.head);
      expect(fold.tree.pending).toEqual(d.tree.pending);
      expect(fold.tree.timers).toEqual(d.tree.timers);
      expect(fold.tree.hasEnded).toBe(d.tree.hasEnded);
      inputs += d.inputs.length;
      entries += d.entries.length;
    }
    expect(inputs).toBeGreaterThan(12 * FOLDED);
    expect(entries).toBeGreaterThan(40 * FOLDED);
  }, 180_000);
});

/** Random trees, run to their ends, with their records. */
const recorded = Array.from({ length: TAMPERED }, (_, i) => {
  const seed = 2_001 + i;
  const d = randomTree(seed, { inputs: 5, close: true });
  return { seed, tree_id: d.tree_id, record: recordOf(d) };
});

/** One kind of tampering, and where the fold must report the difference. */
type Tampering = (record: readonly Recorded[], at: number, chance: () => number) => readonly Recorded[];

const put = (record: readonly Recorded[], at: number, count: number, ...entries: Recorded[]): Recorded[] => [
  ...record.slice(0, at),
  ...entries,
  ...record.slice(at + count),
];

/** Replaces one character by another. */
const changeByte: Tampering = (record, at, chance) => {
  const { text, ...rest } = record[at]!;
  const place = Math.floor(chance() * text.length);
  const other = text[place] === 'a' ? 'b' : 'a';
  return put(record, at, 1, { ...rest, text: text.slice(0, place) + other + text.slice(place + 1) });
};

/** Changes one value of the body, and writes the entry as if it had always been so. */
const changeField: Tampering = (record, at, chance) => {
  const { text, ...rest } = record[at]!;
  const entry = JSON.parse(text) as { body: Record<string, unknown> };
  const names = Object.keys(entry.body);
  const name = names[Math.floor(chance() * names.length)]!;
  const body = { ...entry.body, [name]: changed(entry.body[name]) };
  return put(record, at, 1, { ...rest, text: canonicalJson({ ...entry, body }) });
};

function changed(value: unknown): unknown {
  if (typeof value === 'string')
    return /\d/.test(value) ? value.replace(/\d/, (d) => String((Number(d) + 1) % 10)) : `${value}X`;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  return value === null ? 'x' : null;
}

const drop: Tampering = (record, at) => put(record, at, 1);
const repeat: Tampering = (record, at) => put(record, at, 0, record[at]!);
const swap: Tampering = (record, at) => put(record, at, 2, record[at + 1]!, record[at]!);

/** Where the fold reports a difference in the tampered record, over every entry of the random trees. */
function findings(tampering: Tampering, every: number) {
  const found: { seq: number; at: number; input: boolean; last: boolean; difference: Difference | null }[] = [];
  for (const { seed, tree_id, record } of recorded) {
    const chance = random(seed);
    for (let at = seed % every; at < record.length; at += every) {
      const tampered = tampering(record, at, chance);
      const { difference } = foldRecord(tree_id, tampered);
      const last = at === record.length - 1;
      found.push({ seq: difference?.seq ?? -1, at, input: record[at]!.input, last, difference });
    }
  }
  return found;
}

describe(`S4-09 S4-24 S2-18: a record that was tampered with, over every kind of entry of ${TAMPERED} random trees`, () => {
  test.each([
    ['one byte', changeByte, 2],
    ['one field', changeField, 3],
  ] as const)(
    'differs where %s of an entry was changed; for an input, there or at the next entry',
    (_what, tampering, every) => {
      const found = findings(tampering, every);
      expect(found.length).toBeGreaterThan(5 * TAMPERED);
      // Nothing in its tree proves the existence of a last input: only the external head does.
      const wrong = found.filter(({ seq, at, input, last }) =>
        input ? !(seq === at || seq === at + 1 || (last && seq === -1)) : seq !== at,
      );
      expect(wrong).toEqual([]);
    },
    120_000,
  );

  test('differs where an entry is missing', () => {
    const found = findings(drop, 4);
    expect(found.filter(({ seq, at, input, last }) => seq !== at && !(last && input))).toEqual([]);
    expect(found.filter(({ last, input }) => last && !input).map(({ difference }) => difference?.rule)).toEqual(
      expect.arrayContaining(['entry.missing']),
    );
  }, 120_000);

  test('differs where an entry is duplicated', () => {
    const found = findings(repeat, 4);
    expect(found.filter(({ seq, at }) => seq !== at + 1)).toEqual([]);
  }, 120_000);

  test('differs where two entries were exchanged', () => {
    const found = findings((record, at) => (at + 1 < record.length ? swap(record, at, random(1)) : record), 4);
    expect(found.filter(({ seq, at, last }) => !last && seq !== at)).toEqual([]);
  }, 120_000);

  test('is incomplete if it was truncated within the consequences of an input; between inputs only an external head reveals it', () => {
    for (const { tree_id, record } of recorded) {
      const { fold } = foldRecord(tree_id, []);
      for (const [seq, { text, artifacts, input }] of record.entries()) {
        const rest = fold.finish();
        expect(rest === null ? null : [rest.seq, rest.rule, rest.expected]).toEqual(
          input ? null : [seq, 'entry.missing', text],
        );
        fold.apply({ seq, text }, artifacts);
      }
      expect(fold.finish()).toBeNull();
    }
  }, 120_000);

  test('differs at the input whose content was changed, omitted or extended', () => {
    for (const { seed, tree_id, record } of recorded) {
      const chance = random(seed);
      const inputs = [...record.keys()].filter((at) => record[at]!.input);
      const at = inputs[Math.floor(chance() * inputs.length)]!;
      const entry = record[at]!;
      const extra: Artifact = { kind: 'result', case_id: null, bytes: Buffer.from('{}') };
      const exchanged = [[...entry.artifacts, extra], entry.artifacts.slice(0, -1), entry.artifacts.map(flipped)];
      for (const artifacts of exchanged.slice(0, entry.artifacts.length === 0 ? 1 : 3)) {
        const { difference } = foldRecord(tree_id, put(record, at, 1, { ...entry, artifacts }));
        expect(difference).toMatchObject({ seq: at, rule: 'artifact.differs' });
      }
    }
  }, 120_000);
});

function flipped(artifact: Artifact): Artifact {
  const bytes = Buffer.from(artifact.bytes);
  if (bytes.length === 0) return { ...artifact, bytes: Buffer.from('x') };
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
  return { ...artifact, bytes };
}

describe('the report of a fold', () => {
  const record = recordOf(new TreeDriver().ready());
  const rules = (tampered: readonly Recorded[]) => foldRecord('run_testtree', tampered).difference?.rule;

  test('for a malformed text, or an entry without an input, is that the entry was not expected', () => {
    for (const text of ['', '{', '[]', '{"type":"input","body":{}}', record[1]!.text]) {
      const found = foldRecord('run_testtree', [...record, { text, artifacts: [], input: false }]).difference;
      expect(found).toMatchObject({ seq: record.length, rule: 'entry.unexpected', expected: null, found: text });
    }
  });

  test('for a first input that does not open a tree is that the machines cannot take it', () => {
    const text = JSON.stringify({
      body: { input_id: 'i', kind: 'end', run_id: AGENT, time: '2026-01-01T00:00:00.000Z' },
      type: 'input',
    });
    expect(rules([{ text, artifacts: [], input: true }])).toBe('machine.failed');
  });

  test('for a tree under another name is a difference at its first entry', () => {
    expect(foldRecord('run_othertree', record).difference).toMatchObject({ seq: 0 });
  });
});
