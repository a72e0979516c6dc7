// The unmet check evaluates what it can as Cedar does, and leaves the rest to Cedar. Random conditions are compared in
// `differential.nightly.test.ts`; here each operator has its borders.

import { describe, expect, test } from '@jest/globals';
import { type CedarRequest, parsePolicy, PreparedPolicies } from '../../../src/features/conditions/cedar.js';
import { compileUnmetCheck } from '../../../src/features/conditions/unmet-check.js';

const REQUEST: CedarRequest = {
  principal: { type: 'Actor', id: 'a' },
  action: { type: 'Action', id: 'read' },
  resource: { type: 'Path', id: '/s/a/b.txt' },
  context: {
    amount: 5,
    name: 'ab*c',
    on: true,
    tags: ['x', 'y', 'x'],
    none: [],
    at: { __extn: { fn: 'datetime', arg: '2026-02-28T23:59:59.999Z' } },
    old: { __extn: { fn: 'datetime', arg: '1969-12-31T23:00:00Z' } },
    rate: { __extn: { fn: 'decimal', arg: '-0.5' } },
    time: { __extn: { fn: 'duration', arg: '-1h30m0s' } },
    inner: { a: 1, b: ['x'] },
  },
  entities: [
    { uid: { type: 'Actor', id: 'a' }, attrs: { level: 2 }, parents: [{ type: 'Role', id: 'r' }] },
    { uid: { type: 'Role', id: 'r' }, attrs: {}, parents: [{ type: 'Role', id: 'top' }] },
  ],
};

const forbid = (clause: string): string => `@id("c") forbid (principal, action, resource) ${clause};`;

function unmetCheckOf(text: string): ReturnType<typeof compileUnmetCheck> {
  const read = parsePolicy(text);
  if ('problems' in read) throw new Error(JSON.stringify(read.problems));
  return compileUnmetCheck([read.policy]);
}

/** What the check knows of an expression: whether it is true, or nothing. */
function known(expression: string, request = REQUEST): boolean | null {
  const [isFalse, isTrue] = ['when', 'unless'].map((kind) =>
    unmetCheckOf(forbid(`${kind} { ${expression} }`))(request),
  );
  if (isFalse && isTrue) throw new Error(`both are certain: ${expression}`);
  return isFalse === isTrue ? null : isTrue === true;
}

function cedarSays(expression: string, request = REQUEST): boolean | null {
  const { satisfied, failed } = new PreparedPolicies({ c: forbid(`when { ${expression} }`) }).decide(request);
  return failed.length > 0 ? null : satisfied.length > 0;
}

const TRUE = [
  'context.amount == 5',
  'context.amount != 6',
  'context.amount != "5"',
  'context.amount <= 5',
  'context.amount >= 5',
  'context.amount < 6',
  'context.amount > 4',
  'context.amount + 2 == 7 && context.amount - 7 == -2 && context.amount * -3 == -15',
  '-context.amount == -5',
  '!(context.amount < 5) && !(context.amount > 5)',
  'true || context.missing',
  '!(false && context.missing)',
  'if context.on then true else context.missing',
  'if !context.on then context.missing else true',
  'context has amount && !(context has missing)',
  'context has inner.a && !(context has inner.c) && !(context has missing.a)',
  'context["inner"]["a"] == 1',
  '{a: 1, b: ["x", "x"]} == context.inner',
  '{a: 1} != context.inner && {a: 1, c: ["x"]} != context.inner && {a: 1, b: ["x"], c: 1} != context.inner',
  'context.inner != {a: 1} && context.inner != {a: 2, b: ["x"]}',
  'context.name like "ab\\*c" && context.name like "a*c" && context.name like "*" && context.name like "ab*\\*c"',
  '!(context.name like "abc") && !(context.name like "ab*b*c") && !(context.name like "*d")',
  '!(context.name like "ab*ab*") && !("aba" like "ab*ba") && "abba" like "ab*ba" && "xaxbx" like "*a*b*"',
  '!("xa" like "*a*a") && !("aab" like "*ab*ab")',
  'context.tags == ["y", "x"] && context.tags != ["x"] && ["x"] != context.tags && context.tags != "x"',
  'context.tags.contains("x") && !context.tags.contains("z")',
  'context.tags.containsAll(["x", "y"]) && !context.tags.containsAll(["x", "z"])',
  'context.tags.containsAny(["z", "y"]) && !context.tags.containsAny(["z"]) && !context.tags.containsAny([])',
  'context.none.isEmpty() && !context.tags.isEmpty()',
  '[1, principal, {a: [2]}].contains({a: [2, 2]})',
  'principal in Role::"r" && principal in Role::"top" && principal in principal && !(principal in Role::"x")',
  'principal in [Role::"x", Role::"top"] && !(principal in [])',
  'principal is Actor && !(principal is Role) && principal is Actor in Role::"top"',
  '!(principal is Actor in Role::"x") && !(principal is Role in Role::"top") && resource is Path in Path::"/s/a/b.txt"',
  'principal.level == 2 && principal has level && !(principal has other) && !(resource has level)',
  'principal == Actor::"a" && principal != Role::"a" && principal != "a"',
  'context.at == datetime("2026-02-28T23:59:59.999Z") && context.at < datetime("2026-03-01")',
  'context.at > datetime("2026-02-28") && context.at != duration("1ms")',
  'datetime("2024-02-29") > datetime("2024-02-28T23:59:59Z")',
  'context.at.toDate() == datetime("2026-02-28") && context.at.toTime() == duration("23h59m59s999ms")',
  'context.old.toDate() == datetime("1969-12-31") && context.old.toTime() == duration("23h")',
  'context.at.offset(duration("1ms")) == datetime("2026-03-01")',
  'context.at.durationSince(datetime("2026-03-01")) == duration("-1ms")',
  'context.rate.lessThan(decimal("0.0")) && context.rate.lessThanOrEqual(decimal("-0.5000"))',
  'context.rate.greaterThan(decimal("-0.5001")) && context.rate.greaterThanOrEqual(decimal("-0.5"))',
  '!context.rate.lessThan(decimal("-0.5")) && !context.rate.greaterThan(decimal("-0.5"))',
  'decimal("1.05") != decimal("1.5") && decimal("0.01") == decimal("0.0100")',
  'decimal("0.0") != duration("0ms") && duration("0ms") != datetime("1970-01-01")',
  'context.time.toHours() == -1 && context.time.toMinutes() == -90 && context.time.toSeconds() == -5400',
  'context.time.toMilliseconds() == -5400000 && context.time.toDays() == 0 && duration("49h").toDays() == 2',
  'duration("1d2h3m4s5ms") == duration("93784005ms") && context.time < duration("0ms")',
  'datetime(if context.on then "2026-01-01" else "x") < context.at',
];

/** Evaluated by Cedar alone: mistakes, and what the check does not hold exactly. */
const UNCERTAIN = [
  'context.missing == 1',
  'resource.level == 1',
  'context.amount',
  'context.amount && true',
  'true && context.amount',
  'false || context.amount',
  '!context.amount',
  'if context.amount then true else false',
  'context.amount < "6"',
  'context.name < "b"',
  'context.rate < decimal("1.0")',
  'context.at < duration("1ms")',
  'context.at.lessThan(decimal("1.0"))',
  'context.amount like "5"',
  'context.amount has x',
  'context.amount.x == 1',
  'context.amount in principal',
  'principal in [principal, 5]',
  'principal in context.amount',
  'context.amount is Actor',
  'context.amount.contains(5)',
  'context.tags.containsAll("x")',
  'context.amount.isEmpty()',
  'context.at.toHours() == 1',
  'context.time.toDate() == context.at',
  'context.rate.offset(duration("1ms")) == context.at',
  'context.name + 1 == 2',
  '-context.name == 2',
  'decimal("1") == context.rate',
  'decimal(context.name) == context.rate',
  'datetime("2026-02-29") < context.at',
  'datetime("2026-02-28T24:00:00Z") < context.at',
  'duration("-") == context.time',
  'duration("1s1m") == context.time',
  'datetime("2026-03-01T10:00:00+0100") > context.at',
  'datetime("0999-03-01") < context.at',
  'context.amount * 9007199254740991 > 0',
  'context.amount < 9007199254740992',
  'duration("9223372036854775807ms") > context.time',
  'duration("999999999d") > context.time',
  'principal.hasTag("x")',
  'principal.getTag("x") == "y"',
  'ip("10.0.0.1").isIpv4()',
];

describe('the unmet check', () => {
  test.each(TRUE)('knows that %s, and Cedar says the same', (expression) => {
    expect([known(expression), cedarSays(expression)]).toEqual([true, true]);
    expect([known(`!(${expression})`), cedarSays(`!(${expression})`)]).toEqual([false, false]);
  });

  test.each(UNCERTAIN)('leaves to Cedar: %s', (expression) => {
    expect(known(expression)).toBeNull();
    expect(known(`false && (${expression})`)).toBe(false);
  });

  test('evaluates a scope before the clauses, and the clauses in their order', () => {
    const isUnmet = (text: string): boolean => unmetCheckOf(text)(REQUEST);
    const scopes = [
      'principal == Actor::"a", action == Action::"read", resource == Path::"/s/a/b.txt"',
      'principal in Role::"top", action in [Action::"x", Action::"read"], resource is Path',
      'principal is Actor in Role::"r", action in Action::"read", resource in Path::"/s/a/b.txt"',
    ];
    const others = [
      'principal == Actor::"b", action, resource',
      'principal in Role::"x", action, resource',
      'principal is Role, action, resource',
      'principal is Actor in Role::"x", action, resource',
      'principal, action == Action::"x", resource',
      'principal, action in [Action::"x"], resource',
      'principal, action, resource == Path::"/s"',
    ];
    for (const scope of scopes) expect([scope, isUnmet(`forbid (${scope});`)]).toEqual([scope, false]);
    for (const scope of others) {
      expect([scope, isUnmet(`forbid (${scope}) when { context.missing };`)]).toEqual([scope, true]);
    }
    expect(isUnmet(forbid('when { false } when { context.missing }'))).toBe(true);
    expect(isUnmet(forbid('when { context.missing } when { false }'))).toBe(false);
    expect(isUnmet(forbid('unless { true } when { context.missing }'))).toBe(true);
    expect(isUnmet(forbid('when { true } unless { false }'))).toBe(false);
  });

  test.each([
    ['half of a pair', { ...REQUEST.context, name: '\ud800' }],
    ['a number that is not exact', { ...REQUEST.context, amount: 2 ** 53 }],
    ['a number with a fraction', { ...REQUEST.context, amount: 1.5 }],
    ['null', { ...REQUEST.context, amount: null }],
    ['an extension value with another argument', { ...REQUEST.context, amount: { __extn: { fn: 'decimal', arg: 1 } } }],
    ['an extension value that is not one', { ...REQUEST.context, rate: { __extn: { fn: 'decimal', arg: '1' } } }],
    ['an address', { ...REQUEST.context, rate: { __extn: { fn: 'ip', arg: '10.0.0.1' } } }],
    ['a reserved name', { ...REQUEST.context, inner: { __expr: 'x' } }],
    ['half of a pair in a name', { ...REQUEST.context, inner: { '\udc00': 1 } }],
    ['more values than are compared', { ...REQUEST.context, tags: Array.from({ length: 256 }, () => 'x') }],
  ])('a request with %s is for Cedar', (_what, context) => {
    expect(known('context.on', { ...REQUEST, context })).toBeNull();
  });

  test('an entity whose id has half of a pair is for Cedar', () => {
    expect(known('context.on', { ...REQUEST, resource: { type: 'Path', id: '\ud800' } })).toBeNull();
  });

  test('one condition in doubt leaves all to Cedar', () => {
    const read = ['context.amount > 5', 'context.missing'].map((body) => parsePolicy(forbid(`when { ${body} }`)));
    const policies = read.flatMap((each) => ('policy' in each ? [each.policy] : []));
    expect(compileUnmetCheck(policies.slice(0, 1))(REQUEST)).toBe(true);
    expect(compileUnmetCheck(policies)(REQUEST)).toBe(false);
  });
});
