import { describe, expect, test } from '@jest/globals';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { lintPolicy } from '../../../src/features/policy-lint/lint-policy.js';
import { refundCatalogue as catalogue } from '../../fixtures/refund-catalogue.js';
import { shippedBytes } from '../../fixtures/tree.js';
import '../../fixtures/conditions.js';

const named = (name: 'lanes' | 'roles' | 'actions', more = '') => ({
  path: `${name}.yaml`,
  bytes: Buffer.from(`${shippedBytes(name).toString('utf8')}${more}`),
});
const GROUPS = '\ngroups:\n  - { group: finance, persons: [anna] }\n';
const filesWith = (text: string) => ({
  ...{ lanes: named('lanes'), roles: named('roles', GROUPS), actions: named('actions') },
  conditions: { path: 'conditions.cedar', bytes: Buffer.from(text) },
});
const when = (body: string): string =>
  `@id("a")\nforbid (principal, action == Action::"CALL_TOOL:payments.refund", resource) when { ${body} };`;
const rulesOf = (text: string): readonly string[] =>
  lintPolicy(filesWith(text), catalogue)
    .filter(({ file }) => file === 'conditions.cedar')
    .map(({ rule, message }) => `${rule}: ${message}`);

describe('a condition that nothing can satisfy', () => {
  test.each([
    ['context.args.currency == "a" && context.args.currency == "b"'],
    ['"a" == context.args.currency && context.lane == "x" && context.args.currency == "b"'],
    ['context.args.amount == 5 && context.args.amount > 5'],
    ['context.args.amount > 5 && context.args.amount < 6'],
    ['context.args.amount >= 6 && 5 >= context.args.amount'],
    ['context.lane == "a" && context.lane != "a"'],
    ['principal == Actor::"anna" && principal == Actor::"berta"'],
  ])('%s', (body) => {
    expect(rulesOf(when(body))).toEqual([expect.stringMatching(/^condition\.unreachable: a can never be satisfied/)]);
  });

  test.each([
    ['context.args.currency == "a" || context.args.currency == "b"'],
    ['context.args.currency == "a" && context.args.order == "b"'],
    ['context.args.amount > 5 && context.args.amount < 7'],
    ['context.args.amount >= 5 && context.args.amount <= 5'],
    ['context.lane != "a" && context.lane != "b"'],
  ])('and not %s', (body) => {
    expect(rulesOf(when(body))).toEqual([]);
  });
});

test('a condition that applies only before a past day', () => {
  expect(rulesOf(when('context.now < datetime("2020-01-01")'))).toEqual([
    'condition.past: a applies only before 2020-01-01, which is in the past',
  ]);
  expect(rulesOf(when('context.now < datetime("2999-01-01")'))).toEqual([]);
});

test.each([
  ['principal in Role::"ATTORNEY_ADMN"', 'condition.unknown_name', '; there is "ATTORNEY_ADMIN"'],
  ['principal in Group::"finanse"', 'condition.unknown_name', '; there is "finance"'],
  ['principal in Group::"nothing_near"', 'condition.unknown_name', 'which is not in the roles'],
  ['principal == Actor::"ana"', 'condition.unknown_actor', '; there is "anna"'],
  ['principal == Actor::"ATTORNEY_ADMIN"', 'condition.unknown_actor', 'principal in Role::"ATTORNEY_ADMIN"'],
])('an unknown name: %s', (body, rule, words) => {
  const [found = ''] = rulesOf(when(body));
  expect([found.split(':')[0], found.includes(words)]).toEqual([rule, true]);
});

describe('a mistake names what is meant', () => {
  const messageOf = (text: string): string => checkPolicy(filesWith(text), catalogue).findings[0]?.message ?? '';

  test('a missing semicolon', () => {
    const two = `${when('true').slice(0, -1)}\n\n@id("b")\nforbid (principal, action, resource);\n`;
    expect(messageOf(two)).toContain('which is missing before line 5');
    expect(messageOf(when('true').slice(0, -1))).toContain('the last condition of a file ends with ";" too');
  });

  test('a number with a point', () => {
    expect(messageOf(when('context.args.amount > 0.5'))).toContain('decimal("0.5")');
  });

  test('the remedy of Cedar, whole', () => {
    const message = messageOf(when(`context.args.${'x'.repeat(300)} == "a"`));
    expect(message).toMatch(/\)$/);
    expect(messageOf(when('context.args.curency == "a"'))).toMatch(/did you mean `currency`/);
  });

  test('an unknown key, and an unknown prohibition', () => {
    const edited = (name: 'lanes' | 'actions', from: string, to: string) => ({
      ...{ lanes: named('lanes'), roles: named('roles'), actions: named('actions') },
      [name]: { path: `${name}.yaml`, bytes: Buffer.from(shippedBytes(name).toString('utf8').replace(from, to)) },
    });
    const messages = (files: ReturnType<typeof edited>) => checkPolicy(files).findings.map(({ message }) => message);
    expect(messages(edited('lanes', 'prohibits:', 'prohibit:')).join()).toContain('; there is "prohibits"');
    expect(messages(edited('lanes', 'prohibits: [', 'prohibits: [client_identty, ')).join()).toMatch(/; there is "/);
  });
});
