// The reference evaluator on examples of Cedar's specification (docs.cedarpolicy.com). Cedar's own engine has to give
// the same results, so that a wrong example is noticed too.

import { describe, expect, test } from '@jest/globals';
import { prepareCedar } from '../cedar-engine.js';
import { isAllowed, parseConditions } from '../differential.js';
import { ERRING_CLAUSES, PLANTED, policyOf } from '../erring-policies.js';
import { evaluatePolicies } from './evaluate.js';
import { ReferenceSyntaxError } from './lexer.js';
import { type RequestJson, requestOf } from './request.js';

const ALICE = { type: 'User', id: 'alice' };
const REQUEST: RequestJson = {
  principal: ALICE,
  action: { type: 'Action', id: 'read' },
  resource: { type: 'Shop::File', id: 'a.txt' },
  context: { role: ['admin', 'user'], addr: { city: 'DC' }, 'owner info': { name: 'Alice' }, n: 3, if: 1 },
  entities: [
    {
      uid: ALICE,
      parents: [{ type: 'Group', id: 'friends' }],
      attrs: { age: 21, manager: { __entity: { type: 'User', id: 'kirk' } } },
      tags: { kind: 'x' },
    },
    { uid: { type: 'Group', id: 'friends' }, parents: [{ type: 'Group', id: 'all' }], attrs: {} },
    { uid: { type: 'Action', id: 'read' }, parents: [{ type: 'Action', id: 'reads' }], attrs: {} },
  ],
};

type Result = 'true' | 'false' | 'error' | 'not parsed';

/** The result of a policy: its condition is true or false, its evaluation fails, or it is not parsed. */
function resultsOf(text: string): readonly [reference: Result, cedar: Result] {
  const conditions = [{ id: PLANTED, text }];
  const reference = () => evaluatePolicies(parseConditions(conditions), requestOf(REQUEST));
  const results = [reference, () => prepareCedar(conditions)(REQUEST)].map((evaluate): Result => {
    try {
      const { satisfied, erring } = evaluate();
      return erring.length > 0 ? 'error' : satisfied.length > 0 ? 'true' : 'false';
    } catch (error) {
      if (error instanceof ReferenceSyntaxError || /does not parse/.test(String(error))) return 'not parsed';
      throw error;
    }
  });
  return results as [Result, Result];
}

const condition = (expression: string): string => `forbid (principal, action, resource) when { ${expression} };`;

/** The examples, a line each, that have another result in the reference or in Cedar. */
const wrong = (result: Result, examples: string, write = condition): readonly string[] =>
  examples
    .trim()
    .split('\n')
    .map((line) => line.trim())
    .flatMap((line) => {
      const [reference, cedar] = resultsOf(write(line));
      return reference === result && cedar === result ? [] : [`${line}  reference: ${reference}, Cedar: ${cedar}`];
    });

const TRUE: Readonly<Record<string, string>> = {
  'logic is short-circuited': String.raw`
    true && true
    !(false && 3)
    (false && 3) == false
    true || 3
    (3 == 3) || 3
    !!true
    (if true then "hello" else (1 && "hello")) == "hello"
    if false then (1 && "hello") else true
    true || false && false
    !false && true
    (if false then true else "foo") == "foo"`,
  'equality needs the same type and value': String.raw`
    [1, 2, 40] == [1, 40, 2]
    [1, 1, 1, 2, 40] == [40, 1, 2]
    [1, -33, 707] != [1, -33]
    5 != "5"
    "alice" != User::"alice"
    User::"alice" != Admin::"alice"
    {a: 1, "b": [2]} == {b: [2, 2], a: 1}
    {a: 1} != {a: 1, b: 2}
    {} == {}
    [] == []
    context.addr == {"city": "DC"}
    decimal("1.0") == decimal("1.0000")
    ip("192.168.0.1/24") != ip("192.168.0.8/24")
    ip("127.0.0.1") != ip("127.0.0.1/24")
    ip("127.0.0.1") == ip("127.0.0.1/32")
    datetime("2024-10-15") == datetime("2024-10-15T01:00:00+0100")
    duration("36h") == duration("1d12h")
    datetime("1970-01-01") != duration("0ms")`,
  'longs, datetimes and durations are compared': String.raw`
    3 < 303
    3 <= 3
    303 > 3
    principal.age >= 21
    -9223372036854775808 < 9223372036854775807
    datetime("1970-01-01") < datetime("1970-01-02")
    datetime("1969-12-31T23:59:59.999Z") < datetime("1970-01-01")
    duration("3h30m") < duration("15000s")
    duration("-1d12h") < duration("-1d")
    decimal("1.23").lessThan(decimal("1.24"))
    decimal("-1.23").lessThan(decimal("1.23"))
    decimal("1.23").lessThanOrEqual(decimal("1.23"))
    decimal("123.45").greaterThan(decimal("1.23"))
    decimal("-1.23").greaterThanOrEqual(decimal("-1.24"))`,
  'calculations have the precedence of the grammar': String.raw`
    11 + 0 == 11
    44 - 31 - 3 == 10
    2 + 3 * 4 == 14
    (2 + 3) * 4 == 20
    5 - (-3) == 8
    1 --1 == 2
    2 * -3 == -6
    ----5 == 5
    - - 5 == 5
    -(5) == -5
    -9223372036854775807 - 1 == -9223372036854775808`,
  'like matches wildcards': String.raw`
    "ham and eggs" like "*h*a*m*"
    "ham" like "ham*"
    "Gotham" like "*ham"
    !("eggs and ham" like "ham*")
    !("eggs, ham, and spinach" like "*ham")
    !("ham" like "*ham and eggs*")
    !("ham" like "ha")
    !("ha" like "ha*a")
    "" like "*"
    "string*with*stars" like "string\*with\*stars"
    !("string-with-stars" like "string\*with\*stars")
    "ham and eggs" like "ham\u{2a}"
    !("string-with-stars" like "string\*with\u{2a}")
    "\\afterslash" like "\\*"
    "😀é" like "\u{1F600}*"
    "a\n\x41\0\"" like "a\n*A\0\""`,
  'entities are in their ancestors and in themselves': String.raw`
    principal in User::"alice"
    principal in Group::"friends"
    Group::"friends" in Group::"all"
    principal in Group::"all"
    !(Group::"all" in User::"alice")
    Stranger::"jimmy" in Stranger::"jimmy"
    !(Stranger::"jimmy" in Group::"all")
    principal in [Group::"none", Group::"all"]
    !(principal in [])
    principal in Group::"all" || principal in 1
    action in Action::"reads"
    User::"alice" is User
    principal is User in Group::"friends"
    resource is Shop::File
    !(resource is File)
    !(principal is Group in 1)
    principal is User in [Group::"all"]`,
  'has and tags test what is present': String.raw`
    context has role && context.role.contains("admin")
    context has "owner info" && context["owner info"].name == "Alice"
    !(context has tag)
    !(context.addr has country && context.addr.country == "US")
    principal has manager
    !(principal has manager.age)
    context has addr.city
    !(context has addr.zip)
    !(context has absent.city)
    !(Stranger::"jimmy" has age)
    context["if"] == 1
    principal.hasTag("kind") && principal.getTag("kind") == "x"
    !principal.hasTag("age")
    !Stranger::"jimmy".hasTag("kind")
    principal.hasTag(if true then "kind" else "none")`,
  'sets contain members': String.raw`
    [1, "something", 2].contains(1)
    ![1, "something"].contains("Something")
    ![].contains(100)
    [User::"alice"].contains(principal)
    [[1], [2]].contains([2])
    [false, 3, [47, 0], {"2": "ham"}].containsAll([3, {"2": "ham"}])
    [2, 43].containsAll([])
    ![].containsAll([2, 43])
    [1, 101].containsAny([1, -22, 34])
    ![].containsAny(["bob"])
    !["bob"].containsAny([])
    [].isEmpty()
    ![1].isEmpty()`,
  'times have parts': String.raw`
    datetime("2024-10-15").offset(duration("1h")) == datetime("2024-10-15T01:00:00Z")
    datetime("2024-10-16T01:00:00Z").offset(duration("-1d")) == datetime("2024-10-15T01:00:00Z")
    datetime("2024-10-16T00:00:00-0500").durationSince(datetime("2024-10-15")) == duration("1d5h")
    datetime("2024-10-14T23:18:00Z").durationSince(datetime("2024-10-15")) == duration("-42m")
    datetime("2025-02-20T22:00:00-0500").toDate() == datetime("2025-02-21")
    datetime("1969-12-31T23:59:59.999Z").toDate() == datetime("1969-12-31")
    datetime("2025-02-20T22:00:00-0500").toTime() == duration("3h")
    datetime("1969-12-31T23:00:00Z").toTime() == duration("23h")
    duration("4s100ms").toMilliseconds() == 4100
    duration("100ms").toSeconds() == 0
    duration("-1500ms").toSeconds() == -1
    duration("4m70s").toMinutes() == 5
    duration("4h70m").toHours() == 5
    duration("4d30h").toDays() == 5
    datetime("2024-02-29") > datetime("2024-02-28T23:59:59Z")
    datetime("0000-02-29").toDate() < datetime("0000-03-01")
    datetime("2000-03-01").durationSince(datetime("1900-03-01")).toDays() == 36525`,
  'addresses are in ranges': String.raw`
    ip("127.0.0.1/24").isIpv4()
    ip("ffee::/64").isIpv6()
    ip("127.0.0.2").isLoopback()
    ip("::1").isLoopback()
    !ip("::2").isLoopback()
    !ip("127.0.0.0/7").isLoopback()
    ip("ff00::2").isMulticast()
    !ip("127.0.0.1").isMulticast()
    ip("192.168.0.75").isInRange(ip("192.168.0.1/24"))
    !ip("192.168.0.75").isInRange(ip("192.168.0.1/28"))
    !ip("192.168.0.0/16").isInRange(ip("192.168.0.1/24"))
    ip("1:2:3:4::").isInRange(ip("1:2:3:4::/48"))
    !ip("192.168.0.1").isInRange(ip("1:2:3:4::"))
    ip("::") == ip("0:0:0:0:0:0:0:0")`,
};

const ERRORS: Readonly<Record<string, string>> = {
  'operands of another type fail': String.raw`
    3 && false
    true && 3
    3 || true
    false || 3
    !8
    if 1 then true else true
    if true then (1 && "hello") else true
    3 < "3"
    false < true
    [1, 2] < [47, 0]
    datetime("1970-01-01T01:00:00Z") < 3600000
    duration("1h") < datetime("1970-01-01")
    decimal("1.1").lessThan(2)
    decimal("1.0") < decimal("2.0")
    7 + "3" == 10
    "lamp" + "la" == "lampla"
    -"a" == 1
    1 in Group::"friends"
    1 in []
    User::"alice" in [Group::"friends", 1]
    User::"alice" in [User::"alice", 1]
    "alice" is String
    context.role has admin
    principal has age.years
    context.n has n
    "ham".contains("ham")
    [1].containsAll("thing")
    {"2": "ham"}.containsAny({"2": "ham"})
    "".isEmpty()
    1 like "*"
    context.hasTag("kind")
    principal.hasTag(1)
    ip("192.168.0.1").isInRange(1)
    context.n.isIpv4()
    datetime("2024-10-15").offset(42) == 1
    duration("5h").toDate() == 1
    "4s100ms".toMilliseconds() == 1
    ip([127, 0, 0, 1]) == 1
    "kirk"`,
  'missing attributes, tags and entities fail': String.raw`
    context.tag == 1
    context.addr.zip == 1
    context.absent has city
    principal.manager.age == 1
    Stranger::"jimmy".age == 1
    principal.getTag("none") == 1
    {a: 1}.b == 1
    [1, context.tag].isEmpty()
    {a: context.tag} == {}`,
  'numbers outside of 64 bits fail': String.raw`
    9223372036854775807 + 1 == 0
    -9223372036854775807 - 2 + 3 == 0
    9223372036854775807 * 2 == 0
    -(-9223372036854775808) == 0
    datetime("9999-12-31").offset(duration("9223372036854775807ms")) == 1
    datetime("1970-01-01").offset(duration("-9223372036854775808ms")).toDate() == 1
    datetime("1970-01-01").durationSince(datetime("1970-01-01").offset(duration("-9223372036854775808ms"))) == 1`,
  'malformed texts fail': String.raw`
    decimal("1234") == 1
    decimal("1.0.") == 1
    decimal("1.") == 1
    decimal(".1") == 1
    decimal("-.") == 1
    decimal("+1.0") == 1
    decimal("922337203685477.5808") == 1
    decimal("0.12345") == 1
    datetime("2022-10-10 ") == 1
    datetime("2024-10-15Z") == 1
    datetime("2024-01-01T01:02") == 1
    datetime("2024-01-01T00:00:00") == 1
    datetime("2016-12-31T23:59:60.000Z") == 1
    datetime("2024-01-01T00:00:00.00Z") == 1
    datetime("2024-01-01T00:00:00+2400") == 1
    datetime("2024-01-01T00:00:00+0060") == 1
    datetime("2023-02-29") == 1
    datetime("2024-00-01") == 1
    duration("") == 1
    duration("-") == 1
    duration("1d2h3m4s5ms ") == 1
    duration("1d2h3m4s5ms6") == 1
    duration("d") == 1
    duration("1s1d") == 1
    duration("1d-1s") == 1
    duration("1d9223372036854775807ms") == 1
    ip("380.0.0.1") == 1
    ip("127.0.0.1/8/24") == 1
    ip("127.0.0.1/33") == 1
    ip("127.0.0.1/08") == 1
    ip("fee::/64::1") == 1
    ip("fzz::1") == 1
    ip("1::2::3") == 1
    ip("1:2:3:4:5:6:7:8:9") == 1
    ip("::ffff:1.2.3.4") == 1`,
};

describe('the reference evaluator and Cedar', () => {
  for (const [title, examples] of Object.entries(TRUE)) {
    test(title, () => expect(wrong('true', examples)).toEqual([]));
  }

  for (const [title, examples] of Object.entries(ERRORS)) {
    test(title, () => expect(wrong('error', examples)).toEqual([]));
  }

  test('reject what the grammar does not have', () => {
    const examples = String.raw`
      1 < 2 < 3
      !!!!!true
      -----1 == 1
      !-1 == 2
      true && if true then true else false
      context has if
      context.if == 1
      context has "a"."b"
      {a: 1, "a": 2} == {}
      9223372036854775808 == 1
      -(9223372036854775808) == 1
      "a\*b" == "a"
      "\q" == "q"
      foo(1)
      [1].foo()
      [1].contains()
      lessThan(decimal("1.0"), decimal("2.0"))
      "127.0.0.1".ip()
      1 = 1
      a == 1`;
    expect(wrong('not parsed', examples)).toEqual([]);
  });

  test('a scope limits principal, action and resource', () => {
    const scope = (text: string): string => `forbid (${text});`;
    const satisfied = String.raw`
      principal, action, resource
      principal == User::"alice", action == Action::"read", resource == Shop::File::"a.txt"
      principal in Group::"all", action in Action::"reads", resource in Shop::File::"a.txt"
      principal is User, action in [Action::"write", Action::"reads"], resource is Shop::File
      principal is User in Group::"all", action, resource is Shop::File in Shop::File::"a.txt"`;
    const unsatisfied = String.raw`
      principal == User::"bob", action, resource
      principal is Group in Group::"all", action, resource
      principal is User in Group::"none", action, resource
      principal, action == Action::"reads", resource
      principal, action in [], resource
      principal, action, resource is File`;
    expect(wrong('true', satisfied, scope)).toEqual([]);
    expect(wrong('false', unsatisfied, scope)).toEqual([]);
  });

  test('the clauses of a policy are evaluated in order, until one is not met', () => {
    const clauses = (text: string): string => `@id("x") @note forbid (principal, action, resource) ${text};`;
    const satisfied = String.raw`
      when { true } unless { false } when { 1 == 1 }
      unless { context has absent } // the rest of a line is a comment`;
    expect(wrong('true', satisfied, (text) => clauses(text).replace(/( \/\/.*);$/, ';$1'))).toEqual([]);
    expect(wrong('false', 'when { false } when { 1 }\nunless { true } unless { 1 }', clauses)).toEqual([]);
    expect(wrong('error', 'when { 1 } when { false }\nwhen { true } unless { 1 }', clauses)).toEqual([]);
  });
});

test('a policy whose evaluation fails denies the request, for each cause', () => {
  for (const { text } of ERRING_CLAUSES.map(policyOf)) {
    const conditions = [{ id: PLANTED, text }];
    const evaluations = [
      prepareCedar(conditions)(REQUEST),
      evaluatePolicies(parseConditions(conditions), requestOf(REQUEST)),
    ];
    for (const evaluation of evaluations) {
      expect({ text, ...evaluation }).toEqual({ text, satisfied: [], erring: [PLANTED] });
      expect(isAllowed(evaluation)).toBe(false);
    }
  }
});
