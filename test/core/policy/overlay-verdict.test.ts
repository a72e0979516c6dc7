// Goal: the overlay only denies and never grants (D1). Method: properties over overlays and subjects drawn from few
// words, so that they match often, and one row for each matcher.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  Overlay,
  OVERLAY_MATCHERS,
  OVERLAY_PROBLEMS,
  OVERLAY_RULES_MAX,
  OverlayFact,
  OverlayRule,
  SignedOverlay,
  type ComparedRule,
  type OverlayMatcher,
  type OverlayRule as Rule,
  type OverlaySubject,
} from '../../../src/core/contract/policy/overlay.js';
import type { Person } from '../../../src/core/contract/person.js';
import { isConforming } from '../../../src/core/contract/validators.js';
import { personOf } from '../../../src/names/person-name.js';
import { OVERLAY_UNUSABLE, overlayVerdict, withOverlay } from '../../../src/core/policy/authorize-run.js';
import { deny, type RuleId, type Verdict } from '../../../src/core/policy/verdict.js';

const WORDS: Readonly<Record<OverlayMatcher, readonly [string, string, ...string[]]>> = {
  role_id: ['ROLE_A', 'ROLE_B'],
  lane_id: ['LANE_A', 'LANE_B'],
  action: ['READ_FILE', 'WRITE_FILE'],
  tool: ['sandbox.read_file', 'mail.send'],
  table: ['sandbox_files', 'notes'],
  case_id: ['case-1', 'case-2'],
  run_id: ['run_abcd', 'run_efgh', 'run_abcd.1', 'run_abcd.1.2', 'run_abcd.11'],
  actor_id: ['agent-1', 'agent-2'],
};

const NOBODY: OverlaySubject = {
  role_id: null,
  lane_id: null,
  action: null,
  tool: null,
  table: null,
  case_id: null,
  run_id: null,
  actor_id: null,
};

// Mostly few matchers: a rule with eight of them matches almost nothing.
const someMatchers: fc.Arbitrary<Partial<Record<OverlayMatcher, string>>> = fc
  .uniqueArray(fc.constantFrom(...OVERLAY_MATCHERS), { minLength: 1, maxLength: 8, size: 'xsmall' })
  .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, fc.constantFrom(...WORDS[name])]))));
const rule: fc.Arbitrary<Rule> = fc
  .record({ n: fc.integer({ min: 1, max: 999_999_999 }), given: someMatchers })
  .map(({ n, given }) => ({ rule_id: `deny-${n}`, reason: 'a reason', ...given }));
const rules = fc.array(rule, { maxLength: 6 });
const subject = fc.record(
  Object.fromEntries(OVERLAY_MATCHERS.map((name) => [name, fc.option(fc.constantFrom(...WORDS[name]))])),
) as fc.Arbitrary<OverlaySubject>;
const problem = fc.constantFrom(...OVERLAY_PROBLEMS).map((each): OverlayFact => ({ epoch: null, problem: each }));
const fact = (of: fc.Arbitrary<readonly Rule[]>): fc.Arbitrary<OverlayFact> =>
  fc
    .record({ epoch: fc.integer({ min: 1, max: 999_999_999 }), rules: of })
    .map(({ epoch, rules: list }) => ({ epoch, rules: [...list] }));
const overlay: fc.Arbitrary<OverlayFact | null> = fc.oneof(
  { weight: 6, arbitrary: fact(rules) },
  { weight: 1, arbitrary: problem },
  { weight: 1, arbitrary: fc.constant(null) },
);
const denied: fc.Arbitrary<Verdict> = fc.constantFrom(
  deny('lane.unknown'),
  deny('platform.cross_case'),
  { decision: 'deny', rule_id: 'quota.bytes', cause: 'QUOTA' },
  { decision: 'deny', rule_id: 'overlay.deny-1', cause: 'LANE' },
);
const allowed: fc.Arbitrary<Verdict> = fc
  .constantFrom<RuleId>('lane.granted', 'agent.lane_granted')
  .map((rule_id) => ({ decision: 'allow', rule_id, cause: null }));

const one = (given: Partial<ComparedRule>): OverlayFact => ({
  epoch: 1,
  rules: [{ rule_id: 'deny-1', reason: 'a reason', ...given }],
});

describe('D1: the overlay only ever denies', () => {
  test('it never changes a denial, not even into another denial', () => {
    fc.assert(
      fc.property(denied, overlay, subject, (verdict, over, of) => {
        const before = { ...verdict };
        expect(withOverlay(verdict, over, of)).toBe(verdict);
        expect(verdict).toEqual(before);
      }),
      { numRuns: 2_000 },
    );
  });

  test('its own verdict is a denial or null, with its own cause and rule', () => {
    let denials = 0;
    fc.assert(
      fc.property(overlay, subject, (over, of) => {
        const overlaid = overlayVerdict(over, of);
        if (overlaid === null) return;
        if (overlaid.rule_id !== OVERLAY_UNUSABLE) denials += 1;
        expect(overlaid).toEqual({
          decision: 'deny',
          rule_id: expect.stringMatching(/^overlay\.(?:deny-[1-9]\d*|unusable)$/),
          cause: 'OVERLAY',
        });
      }),
      { numRuns: 2_000 },
    );
    // Otherwise the words match too rarely, and this proves nothing.
    expect(denials).toBeGreaterThan(300);
  });

  test("an allowance stays the same, or becomes the overlay's denial", () => {
    fc.assert(
      fc.property(allowed, overlay, subject, (verdict, over, of) => {
        const overlaid = overlayVerdict(over, of);
        const after = withOverlay(verdict, over, of);
        if (overlaid === null) expect(after).toBe(verdict);
        else expect(after).toEqual(overlaid);
      }),
      { numRuns: 2_000 },
    );
  });

  test('with more rules, in any order, it denies at least as much', () => {
    fc.assert(
      fc.property(rules, rules, fc.nat(), subject, (some, more, at, of) => {
        const cut = at % (some.length + 1);
        const all = [...some.slice(0, cut), ...more, ...some.slice(cut)];
        const before = overlayVerdict({ epoch: 1, rules: some }, of);
        const after = overlayVerdict({ epoch: 2, rules: all }, of);
        if (before !== null) expect(after?.decision).toBe('deny');
      }),
      { numRuns: 2_000 },
    );
  });

  test('without an overlay, and with an empty one, nothing changes', () => {
    fc.assert(
      fc.property(fc.oneof(allowed, denied), subject, fc.integer({ min: 1 }), (verdict, of, epoch) => {
        expect(withOverlay(verdict, null, of)).toBe(verdict);
        expect(withOverlay(verdict, { epoch, rules: [] }, of)).toBe(verdict);
      }),
    );
  });

  test.each(OVERLAY_PROBLEMS)('an overlay that is %s denies everything', (each) => {
    fc.assert(
      fc.property(allowed, subject, (verdict, of) => {
        expect(withOverlay(verdict, { epoch: null, problem: each }, of)).toEqual({
          decision: 'deny',
          rule_id: OVERLAY_UNUSABLE,
          cause: 'OVERLAY',
        });
      }),
    );
  });

  test('it is a pure function of its input, and changes none of it', () => {
    fc.assert(
      fc.property(overlay, subject, (over, of) => {
        const before = structuredClone({ over, of });
        expect(overlayVerdict(over, of)).toEqual(overlayVerdict(over, of));
        expect({ over, of }).toEqual(before);
      }),
    );
  });
});

describe('D1: what a rule matches', () => {
  test.each(OVERLAY_MATCHERS)('%s: only its own value, and not a missing one', (name) => {
    const [word, other] = WORDS[name];
    expect(overlayVerdict(one({ [name]: word }), { ...NOBODY, [name]: word })).toMatchObject({
      rule_id: 'overlay.deny-1',
    });
    expect(overlayVerdict(one({ [name]: word }), { ...NOBODY, [name]: other })).toBeNull();
    expect(overlayVerdict(one({ [name]: word }), NOBODY)).toBeNull();
    expect(overlayVerdict(one({ [name]: word }), { ...NOBODY, [name]: word.toLowerCase() + 'x' })).toBeNull();
  });

  test('all of its matchers must match', () => {
    const both = one({ lane_id: 'LANE_A', action: 'WRITE_FILE' });
    expect(overlayVerdict(both, { ...NOBODY, lane_id: 'LANE_A', action: 'WRITE_FILE' })).not.toBeNull();
    expect(overlayVerdict(both, { ...NOBODY, lane_id: 'LANE_A', action: 'READ_FILE' })).toBeNull();
    expect(overlayVerdict(both, { ...NOBODY, lane_id: 'LANE_B', action: 'WRITE_FILE' })).toBeNull();
    expect(overlayVerdict(both, { ...NOBODY, action: 'WRITE_FILE' })).toBeNull();
  });

  test.each([
    ['run_abcd', true],
    ['run_abcd.1', true],
    ['run_abcd.1.2.3', true],
    ['run_abcde', false],
    ['run_abcd_1', false],
    ['run_abc', false],
    ['x.run_abcd', false],
    ['run_abcd'.toUpperCase(), false],
  ])('D11: a rule for run_abcd and the run %s: %s', (run_id, hit) => {
    expect(overlayVerdict(one({ run_id: 'run_abcd' }), { ...NOBODY, run_id }) !== null).toBe(hit);
  });

  test('D11: a rule for a child does not affect its parent and its siblings', () => {
    const child = one({ run_id: 'run_abcd.1' });
    for (const run_id of ['run_abcd', 'run_abcd.2', 'run_abcd.11', 'run_abcd.10.1']) {
      expect(overlayVerdict(child, { ...NOBODY, run_id })).toBeNull();
    }
    expect(overlayVerdict(child, { ...NOBODY, run_id: 'run_abcd.1.7' })).not.toBeNull();
  });

  test('only the run matcher includes descendants', () => {
    expect(overlayVerdict(one({ tool: 'mail' }), { ...NOBODY, tool: 'mail.send' })).toBeNull();
  });

  test('the first matching rule provides the rule id', () => {
    const two: OverlayFact = {
      epoch: 3,
      rules: [
        { rule_id: 'deny-1', reason: 'r', lane_id: 'LANE_B' },
        { rule_id: 'deny-2', reason: 'r', lane_id: 'LANE_A' },
        { rule_id: 'deny-3', reason: 'r', action: 'READ_FILE' },
      ],
    };
    expect(overlayVerdict(two, { ...NOBODY, lane_id: 'LANE_A', action: 'READ_FILE' })?.rule_id).toBe('overlay.deny-2');
  });

  const person = (name: string): Person => {
    const found = personOf(name);
    if (typeof found === 'string') throw new Error(`${name}: ${found}`);
    return found;
  };
  const PAUL = one({ actor_id: 'paul ida', person: person('paul ida') });
  const denies = (actor_id: string, of: Person | undefined): boolean =>
    overlayVerdict(PAUL, { ...NOBODY, actor_id, person: of }) !== null;

  test.each(['paul ida', 'Paul Ida', 'pa\u200bul ida', 'p\u0430ul ida', 'PAUL lDA'])(
    'C87: a rule for an actor denies the person under another name: %s',
    (name) => {
      expect(denies(name, person(name))).toBe(true);
      expect(
        overlayVerdict(one({ actor_id: 'paul ida' }), { ...NOBODY, actor_id: name, person: person(name) }),
      ).toEqual(name === 'paul ida' ? { decision: 'deny', rule_id: 'overlay.deny-1', cause: 'OVERLAY' } : null);
    },
  );

  test('C87: it denies no other person, except one of other tables; without a person it denies only the exact name', () => {
    expect(denies('berta', person('berta'))).toBe(false);
    expect(denies('berta', { ...person('berta'), tables: 'unicode-17.0.0' })).toBe(true);
    expect(denies('PAUL lDA', undefined)).toBe(false);
    expect(denies('paul ida', undefined)).toBe(true);
    const inLane = one({ actor_id: 'paul ida', lane_id: 'LANE_A', person: person('paul ida') });
    const subject = { ...NOBODY, actor_id: 'PAUL lDA', person: person('PAUL lDA') };
    expect(overlayVerdict(inLane, { ...subject, lane_id: 'LANE_B' })).toBeNull();
    expect(overlayVerdict(inLane, { ...subject, lane_id: 'LANE_A' })).not.toBeNull();
  });

  test('a rule without a matcher, which no schema accepts, denies: fail closed', () => {
    expect(overlayVerdict(one({}), NOBODY)).not.toBeNull();
  });
});

describe('the schemas', () => {
  const right: Rule = { rule_id: 'deny-1', reason: 'why', lane_id: 'LANE_A' };

  test('accept the generated rules, overlays and facts', () => {
    fc.assert(
      fc.property(rules, fc.integer({ min: 1, max: 999_999_999 }), (list, epoch) => {
        for (const each of list) expect(isConforming(OverlayRule, each)).toBe(true);
        expect(isConforming(Overlay, { epoch, issued_at_utc: '2026-01-01T00:00:00.000Z', rules: list })).toBe(true);
        expect(isConforming(OverlayFact, { epoch, rules: list })).toBe(true);
      }),
    );
    for (const each of OVERLAY_PROBLEMS) expect(isConforming(OverlayFact, { epoch: null, problem: each })).toBe(true);
  });

  test.each<[string, object]>([
    ['no matcher', { rule_id: 'deny-1', reason: 'why' }],
    ['no reason', { rule_id: 'deny-1', lane_id: 'LANE_A' }],
    ['an empty reason', { ...right, reason: '' }],
    ['a reason of 201 characters', { ...right, reason: 'x'.repeat(201) }],
    ['a reason of two lines', { ...right, reason: 'a\nb' }],
    ['a reason that looks like one character', { ...right, reason: `a${'\u0301'.repeat(300)}` }],
    ['an id of another kind', { ...right, rule_id: 'unusable' }],
    ['deny-0', { ...right, rule_id: 'deny-0' }],
    ['an additional member', { ...right, allow: true }],
    ['a matcher that is null', { ...right, lane_id: null }],
    ['an invalid lane', { ...right, lane_id: 'LANE A' }],
    ['an action in lower case', { ...right, action: 'write_file' }],
    ['a run id with an ordinal 0', { ...right, run_id: 'run_abcd.0' }],
  ])('reject a rule with %s', (_what, wrong) => {
    expect(isConforming(OverlayRule, right)).toBe(true);
    expect(isConforming(OverlayRule, wrong)).toBe(false);
  });

  test('limit an overlay', () => {
    const of = (count: number, epoch: number) => ({
      epoch,
      issued_at_utc: '2026-01-01T00:00:00.000Z',
      rules: Array.from({ length: count }, (_, n) => ({ ...right, rule_id: `deny-${n + 1}` })),
    });
    expect(isConforming(Overlay, of(OVERLAY_RULES_MAX, 1))).toBe(true);
    expect(isConforming(Overlay, of(OVERLAY_RULES_MAX + 1, 1))).toBe(false);
    for (const epoch of [0, -1, 1.5, 1e9]) expect(isConforming(Overlay, of(1, epoch))).toBe(false);
    expect(isConforming(SignedOverlay, { overlay: of(1, 1), key_id: '0'.repeat(16), signature: 'AA==' })).toBe(false);
  });

  test('reject a fact with neither rules nor a problem', () => {
    for (const wrong of [{ epoch: 1 }, { epoch: null }, { epoch: null, rules: [] }, { epoch: 1, problem: 'invalid' }]) {
      expect(isConforming(OverlayFact, wrong)).toBe(false);
    }
  });
});
