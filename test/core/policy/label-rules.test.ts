// Goal: what was read decides what may be written, in any order of reading. Method: the algebra of labels and the
// monotony of the rules as properties over labels around the limit, and literal tables for every rule.

import { RULE_IDS } from '../../../src/core/policy/verdict.js';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { artifactRef, type ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import {
  CONFIDENTIALITY_FLAGS,
  Label,
  LABEL_CASES_MAX,
  LABEL_REFUSALS,
  LabelRefusals,
  type ConfidentialityFlag,
  type LabelRefusal,
} from '../../../src/core/contract/policy/labels.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import {
  findBrokenLabelRule,
  EMPTY_LABEL,
  joinLabels,
  createLabel,
  labelOfRef,
  type LabelledOperation,
} from '../../../src/core/policy/authorize-run.js';

const caseId = (n: number): string => `case_${n}`;
const ofCases = (cases: readonly string[], flags: readonly ConfidentialityFlag[] = []): Label =>
  cases.reduce((label, case_id) => joinLabels(label, createLabel(case_id, [])), createLabel(null, flags));
const numbered = (count: number, from = 0): string[] => Array.from({ length: count }, (_, n) => caseId(from + n));
const MANY: Label = { cases: [], flags: [], many: true };

const flags = fc.subarray([...CONFIDENTIALITY_FLAGS]);
/** Few cases, so that labels overlap; or so many that a join reaches the limit. */
const label: fc.Arbitrary<Label> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(fc.subarray(numbered(4)), flags).map(([cases, own]) => ofCases(cases, own)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: 30, max: 66 }), fc.nat(40), flags)
      .map(([count, from, own]) => ofCases(numbered(count, from), own)),
  },
);

describe('the algebra of labels', () => {
  test('a join is commutative, associative and idempotent, and the empty label adds nothing', () => {
    let [many, named] = [0, 0];
    fc.assert(
      fc.property(label, label, label, (a, b, c) => {
        expect(joinLabels(a, b)).toEqual(joinLabels(b, a));
        const all = joinLabels(joinLabels(a, b), c);
        expect(all).toEqual(joinLabels(a, joinLabels(b, c)));
        expect(joinLabels(a, a)).toBe(a);
        expect(joinLabels(a, EMPTY_LABEL)).toBe(a);
        expect(joinLabels(EMPTY_LABEL, a)).toEqual(a);
        if (all.many) many += 1;
        else named += 1;
      }),
      { numRuns: 500 },
    );
    expect(Math.min(many, named)).toBeGreaterThan(5);
  });

  test('a join contains both: joining a label that adds nothing returns the same object', () => {
    fc.assert(
      fc.property(label, label, (a, b) => {
        const both = joinLabels(a, b);
        expect(joinLabels(both, a)).toBe(both);
        expect(joinLabels(both, b)).toBe(both);
        expect(joinLabels(both, structuredClone(b))).toBe(both);
        if (!both.many) expect(both.cases).toEqual([...new Set([...a.cases, ...b.cases])].sort());
        expect(both.flags).toEqual([...new Set([...a.flags, ...b.flags])].sort());
      }),
      { numRuns: 500 },
    );
  });

  test('a join with a label that is above this one returns that label', () => {
    const small = createLabel('case_1', []);
    const large = createLabel('case_1', ['contains_pii']);
    const many = { cases: [], flags: [], many: true };
    expect(joinLabels(small, large)).toBe(large);
    expect(joinLabels(large, small)).toBe(large);
    expect(joinLabels(small, many)).toBe(many);
    expect(joinLabels(large, many)).toEqual({ cases: [], flags: ['contains_pii'], many: true });
  });

  test('is monotone: content of one side stays in the join', () => {
    fc.assert(
      fc.property(label, label, label, (a, b, more) => {
        const [small, large] = [joinLabels(a, b), joinLabels(joinLabels(a, more), b)];
        expect(joinLabels(large, small)).toBe(large);
      }),
      { numRuns: 500 },
    );
  });

  test('every label conforms to the contract, and survives JSON unchanged', () => {
    fc.assert(
      fc.property(label, label, (a, b) => {
        const both = joinLabels(a, b);
        expect(isConforming(Label, both)).toBe(true);
        expect(Object.keys(both)).toEqual(['cases', 'flags', 'many']);
        expect(JSON.parse(JSON.stringify(both))).toStrictEqual(both);
      }),
    );
  });

  test('up to 64 cases are named; with one more only `many` is known, and the flags stay', () => {
    const full = ofCases(numbered(LABEL_CASES_MAX), ['contains_phi']);
    expect([full.cases.length, full.many]).toEqual([64, false]);
    expect(joinLabels(full, createLabel(caseId(0), []))).toBe(full);
    const past = joinLabels(full, createLabel(caseId(64), ['contains_pii']));
    expect(past).toEqual({ cases: [], flags: ['contains_phi', 'contains_pii'], many: true });
    expect(joinLabels(past, createLabel(caseId(7), []))).toBe(past);
    expect(joinLabels(full, ofCases(numbered(LABEL_CASES_MAX, 64)))).toEqual({ ...MANY, flags: ['contains_phi'] });
  });

  test('the empty label is one frozen object', () => {
    expect(createLabel(null, [])).toBe(EMPTY_LABEL);
    expect(joinLabels(EMPTY_LABEL, EMPTY_LABEL)).toBe(EMPTY_LABEL);
    expect(EMPTY_LABEL).toEqual({ cases: [], flags: [], many: false });
    expect(() => EMPTY_LABEL.cases.push(caseId(1))).toThrow(TypeError);
    expect(() => EMPTY_LABEL.flags.push('contains_pii')).toThrow(TypeError);
    expect(() => (EMPTY_LABEL.many = true)).toThrow(TypeError);
  });
});

describe('the label of one item', () => {
  const inCase = artifactRef({ kind: 'file_content', case_id: 'case_1', bytes: new Uint8Array(1) });
  const system = artifactRef({ kind: 'policy', case_id: null, bytes: new Uint8Array(1) });

  test('has its case and its flags, each once and in order', () => {
    expect(
      createLabel('case_1', ['contains_privileged', 'contains_pii', 'contains_privileged', 'contains_phi']),
    ).toEqual({
      cases: ['case_1'],
      flags: ['contains_phi', 'contains_pii', 'contains_privileged'],
      many: false,
    });
    expect(createLabel(null, ['contains_pii'])).toEqual({ cases: [], flags: ['contains_pii'], many: false });
  });

  test('sorts by code units, in every locale', () => {
    expect(ofCases(['case_b', 'Case_c', 'case_A', 'case-z']).cases).toEqual(['Case_c', 'case-z', 'case_A', 'case_b']);
  });

  test.each<[string, ArtifactRef, Label]>([
    ['an artifact of a case', inCase, createLabel('case_1', [])],
    ['one of the platform', system, EMPTY_LABEL],
    ['shared knowledge', { ...system, scope: 'shared' }, EMPTY_LABEL],
    ['shared knowledge that names a case', { ...inCase, scope: 'shared' }, createLabel('case_1', [])],
    [
      'a marked one',
      { ...inCase, confidentiality: { contains_pii: true, contains_phi: false, notes: 'true' } },
      createLabel('case_1', ['contains_pii']),
    ],
    [
      'a marked one of the platform',
      { ...system, confidentiality: { contains_privileged: true } },
      createLabel(null, ['contains_privileged']),
    ],
    [
      'one of a case that it does not name',
      { ...system, scope: 'case', confidentiality: { contains_phi: true } },
      { ...MANY, flags: ['contains_phi'] },
    ],
  ])('%s', (_what, ref, expected) => {
    expect(labelOfRef(ref)).toEqual(expected);
  });

  test('the flags are those of artifact references', () => {
    for (const flag of CONFIDENTIALITY_FLAGS) {
      expect(labelOfRef({ ...system, confidentiality: { [flag]: true } })).toEqual(createLabel(null, [flag]));
    }
  });
});

const READ: LabelledOperation = { write: false, shared: false, outside: false };
const SHARED_READ: LabelledOperation = { ...READ, shared: true };
const WRITE: LabelledOperation = { ...READ, write: true };
const SHARED_WRITE: LabelledOperation = { ...WRITE, shared: true };
const EXPORT: LabelledOperation = { ...READ, outside: true };

describe('S4-84 S4-85: reading in case A, then acting in case B', () => {
  const readInA = createLabel('case_a', []);
  const readInB = createLabel('case_b', []);
  const ACTS = { read: READ, sharedRead: SHARED_READ, write: WRITE, sharedWrite: SHARED_WRITE, export: EXPORT };
  const verdicts = (read: Label, run_case_id: string | null, refuses: readonly LabelRefusal[] = []) =>
    Object.fromEntries(
      Object.entries(ACTS).map(([name, act]) => [name, findBrokenLabelRule(read, run_case_id, refuses, act)]),
    );
  const NOTHING_BROKEN = { read: null, sharedRead: null, write: null, sharedWrite: null, export: null };
  const PLATFORM = { sharedWrite: 'platform.label_other_case', export: 'platform.label_other_case' };

  test('each step alone is allowed, and both together are denied, in any lane', () => {
    expect(verdicts(readInA, 'case_a')).toEqual(NOTHING_BROKEN);
    expect(verdicts(EMPTY_LABEL, 'case_b')).toEqual(NOTHING_BROKEN);
    expect(verdicts(readInA, 'case_b')).toEqual({ ...NOTHING_BROKEN, ...PLATFORM });
    expect(verdicts(joinLabels(readInB, readInA), 'case_b')).toEqual({ ...NOTHING_BROKEN, ...PLATFORM });
  });

  test('a run without a case has no case of its own', () => {
    expect(verdicts(readInA, null)).toEqual({ ...NOTHING_BROKEN, ...PLATFORM });
    expect(verdicts(EMPTY_LABEL, null)).toEqual(NOTHING_BROKEN);
  });

  test('too many cases to name count as other cases', () => {
    expect(verdicts(MANY, 'case_a')).toEqual({ ...NOTHING_BROKEN, ...PLATFORM });
    expect(verdicts(MANY, 'case_a', ['other_case'])).toMatchObject({ read: null, write: 'label.other_case' });
    expect(verdicts(MANY, 'case_a', ['any_case'])).toMatchObject({ read: null, write: 'label.any_case' });
  });

  test('a lane that refuses other cases denies every write, and names its own rule', () => {
    const refused = { write: 'label.other_case', sharedWrite: 'label.other_case', export: 'label.other_case' };
    expect(verdicts(readInA, 'case_b', ['other_case'])).toEqual({ ...NOTHING_BROKEN, ...refused });
    expect(verdicts(readInB, 'case_b', ['other_case'])).toEqual(NOTHING_BROKEN);
    expect(verdicts(EMPTY_LABEL, 'case_b', ['other_case'])).toEqual(NOTHING_BROKEN);
  });

  test('a lane that refuses any case denies its own one too', () => {
    const refused = { write: 'label.any_case', sharedWrite: 'label.any_case', export: 'label.any_case' };
    expect(verdicts(readInB, 'case_b', ['any_case'])).toEqual({ ...NOTHING_BROKEN, ...refused });
    expect(verdicts(createLabel(null, [...CONFIDENTIALITY_FLAGS]), 'case_b', ['any_case'])).toEqual(NOTHING_BROKEN);
  });

  test('a lane that refuses only flags does not allow what the platform forbids', () => {
    expect(verdicts(readInA, 'case_b', [...CONFIDENTIALITY_FLAGS])).toEqual({ ...NOTHING_BROKEN, ...PLATFORM });
  });

  test.each(CONFIDENTIALITY_FLAGS)('a lane that refuses %s refuses only that flag', (flag) => {
    const others = CONFIDENTIALITY_FLAGS.filter((other) => other !== flag);
    const rule = `label.${flag}`;
    const refused = { write: rule, sharedWrite: rule, export: rule };
    expect(verdicts(createLabel('case_b', [flag]), 'case_b', [flag])).toEqual({ ...NOTHING_BROKEN, ...refused });
    expect(verdicts(createLabel('case_b', others), 'case_b', [flag])).toEqual(NOTHING_BROKEN);
    expect(verdicts(createLabel('case_b', [flag]), 'case_b', others)).toEqual(NOTHING_BROKEN);
  });

  test('names the first rule in the order of the lane', () => {
    const all = joinLabels(readInA, createLabel(null, ['contains_pii']));
    expect(findBrokenLabelRule(all, 'case_b', ['contains_pii', 'any_case'], WRITE)).toBe('label.contains_pii');
    expect(findBrokenLabelRule(all, 'case_b', ['any_case', 'contains_pii'], WRITE)).toBe('label.any_case');
  });
});

describe('over all labels, lanes and actions', () => {
  const refusals = fc.subarray([...LABEL_REFUSALS]);
  const act = fc.record({ write: fc.boolean(), shared: fc.boolean(), outside: fc.boolean() });
  const ownCase = fc.constantFrom(null, caseId(0), caseId(1), caseId(99));

  test('S4-84 S4-85: more reading never turns a denial into an allowance', () => {
    let [refused, turned] = [0, 0];
    fc.assert(
      fc.property(label, label, ownCase, refusals, act, (read, more, own, refuses, what) => {
        const [before, after] = [read, joinLabels(read, more)].map((each) =>
          findBrokenLabelRule(each, own, refuses, what),
        );
        if (before === null) turned += after === null ? 0 : 1;
        else {
          refused += 1;
          expect(after).not.toBeNull();
        }
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(refused, turned)).toBeGreaterThan(50);
  });

  test('nor does a lane that refuses more, nor an action that does more', () => {
    fc.assert(
      fc.property(label, ownCase, refusals, refusals, act, act, (read, own, some, others, one, other) => {
        if (findBrokenLabelRule(read, own, some, one) === null) return;
        const both = {
          write: one.write || other.write,
          shared: one.shared || other.shared,
          outside: one.outside || other.outside,
        };
        expect(findBrokenLabelRule(read, own, [...some, ...others], one)).not.toBeNull();
        expect(findBrokenLabelRule(read, own, some, both)).not.toBeNull();
      }),
      { numRuns: 2_000 },
    );
  });

  test('in any lane, nothing of another case is shared or exported', () => {
    fc.assert(
      fc.property(label, ownCase, refusals, act, (read, own, refuses, what) => {
        const other = read.many || read.cases.some((case_id) => case_id !== own);
        if (!other || !(what.outside || (what.write && what.shared))) return;
        expect(findBrokenLabelRule(read, own, refuses, what)).not.toBeNull();
      }),
      { numRuns: 2_000 },
    );
  });

  test('every named rule is in the registry, and each one is named somewhere', () => {
    const named = new Set<string>();
    for (const refuses of [[], ...LABEL_REFUSALS.map((refusal) => [refusal])]) {
      const broken = findBrokenLabelRule(
        joinLabels(MANY, createLabel(null, [...CONFIDENTIALITY_FLAGS])),
        'case_1',
        refuses,
        EXPORT,
      );
      if (broken !== null) named.add(broken);
    }
    expect([...named].sort()).toEqual(RULE_IDS.filter((rule) => rule.includes('label')).sort());
  });
});

test('the field of a lane', () => {
  expect(LABEL_REFUSALS).toEqual(['other_case', 'any_case', 'contains_pii', 'contains_phi', 'contains_privileged']);
  expect([[], LABEL_REFUSALS, ['other_case']].every((value) => isConforming(LabelRefusals, value))).toBe(true);
  expect(
    [['own_case'], 'other_case', [null], [...LABEL_REFUSALS, 'any_case']].some((v) => isConforming(LabelRefusals, v)),
  ).toBe(false);
});
