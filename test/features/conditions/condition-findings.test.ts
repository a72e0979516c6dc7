// Every mistake that a condition file or a counter file can have is a finding with its file and place.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { checkPolicy, formatFinding } from '../../../src/core/policy/files/check-policy.js';
import { CONDITION_RULES, COUNTER_RULES } from '../../../src/core/policy/files/policy-finding.js';
import { refundCatalogue } from '../../fixtures/refund-catalogue.js';
import { shippedBytes } from '../../fixtures/tree.js';
import '../../fixtures/conditions.js';

const named = (name: 'lanes' | 'roles' | 'actions') => ({ path: `${name}.yaml`, bytes: shippedBytes(name) });
const SHIPPED = { lanes: named('lanes'), roles: named('roles'), actions: named('actions') };
const ANY = '@id("any")\nforbid (principal, action, resource);\n';

const check = (conditions: string | Uint8Array | null, counters?: string) =>
  checkPolicy(
    {
      ...SHIPPED,
      ...(conditions === null ? {} : { conditions: { path: 'conditions.cedar', bytes: Buffer.from(conditions) } }),
      ...(counters === undefined ? {} : { counters: { path: 'counters.yaml', bytes: Buffer.from(counters) } }),
    },
    refundCatalogue,
  );

/** File, place and rule of each finding. */
const findingsOf = (...files: Parameters<typeof check>): readonly string[] =>
  check(...files).findings.map((finding) => formatFinding(finding).split(': ', 1)[0] ?? '');

const REFUND = 'action == Action::"CALL_TOOL:payments.refund", resource';

const CONDITION_MISTAKES: readonly (readonly [string, string, readonly string[]])[] = [
  ['no policy', '// only\nforbid (', ['2:9 condition.syntax']],
  ['no semicolon', '@id("a") forbid (principal, action, resource)', ['1:46 condition.syntax']],
  ['a permit', `${ANY}@id("b")\npermit (principal, action, resource);`, ['3:1 condition.permit']],
  ['no id', 'forbid (principal, action, resource);', ['1:1 condition.id']],
  ['an id in capitals', '@id("All") forbid (principal, action, resource);', ['1:1 condition.id']],
  ['an id that is used twice', `${ANY}  ${ANY}`, ['3:3 condition.duplicate_id']],
  [
    'an unknown annotation',
    `@id("a") @aproval("2") forbid (principal, action, resource);`,
    ['1:1 condition.annotation'],
  ],
  ['a quorum of 0', `@id("a") @approvals("0") forbid (principal, action, resource);`, ['1:1 condition.annotation']],
  ['a quorum of 9', `@id("a") @approvals("9") forbid (principal, action, resource);`, ['1:1 condition.annotation']],
  [
    'roles without approvals',
    `@id("a") @approver_role("X") forbid (principal, action, resource);`,
    ['1:1 condition.annotation'],
  ],
  [
    'an expiry in weeks',
    `@id("a") @approvals("1") @expires("1w") forbid (principal, action, resource);`,
    ['1:1 condition.annotation'],
  ],
  [
    'an expiry of two years',
    `@id("a") @approvals("1") @expires("730d") forbid (principal, action, resource);`,
    ['1:1 condition.annotation'],
  ],
  ['an empty message', `@id("a") @message("") forbid (principal, action, resource);`, ['1:1 condition.annotation']],
  [
    'a role that does not exist',
    `@id("a") @approvals("1") @approver_role("ATTORNEY") forbid (principal, action, resource);`,
    ['1:1 condition.unknown_role'],
  ],
  [
    'a role that no person has',
    `@id("a") @approvals("1") @approver_role("SANDBOX_AGENT") forbid (principal, action, resource);`,
    ['1:1 condition.no_approver'],
  ],
  [
    'an attribute that does not exist',
    `@id("a")\nforbid (principal, ${REFUND})\nwhen { context.args.amout > 5 };`,
    ['3:8 condition.type'],
  ],
  [
    'a comparison of text with a number',
    `@id("a")\nforbid (principal, ${REFUND})\nwhen { context.args.order > 5 };`,
    ['3:8 condition.type'],
  ],
  [
    'an optional attribute that is not tested',
    `@id("a")\nforbid (principal, ${REFUND})\nwhen { context.args.to like "*" };`,
    ['3:8 condition.type'],
  ],
  [
    'an action that does not exist',
    '@id("a")\nforbid (principal, action == Action::"REFUND", resource);',
    ['1:1 condition.type', '1:1 condition.unreachable', '2:30 condition.type'],
  ],
  [
    'a condition that is never true',
    `@id("a")\nforbid (principal, ${REFUND})\nwhen { resource is Path };`,
    ['1:1 condition.unreachable'],
  ],
  [
    'a resource that the action does not have',
    '@id("a")\nforbid (principal, action == Action::"WRITE_FILE", resource is Table);',
    ['1:1 condition.type', '1:1 condition.unreachable'],
  ],
  [
    'a counter that does not exist',
    `@id("a")\nforbid (principal, ${REFUND})\nwhen { context.counters.x > 5 };`,
    ['3:8 condition.type'],
  ],
];

describe('a mistake in conditions.cedar', () => {
  test.each(CONDITION_MISTAKES)('%s', (_what, text, expected) => {
    expect(findingsOf(text)).toEqual(expected.map((place) => `conditions.cedar:${place}`));
  });

  test('more than 256 KiB, more than 256 conditions, and text that is not UTF-8', () => {
    const many = Array.from({ length: 257 }, (_, i) => ANY.replace('any', `a${i}`)).join('');
    const found = [findingsOf(' '.repeat(262_145)), findingsOf(many), findingsOf(Uint8Array.of(0xff))];
    expect(found.flat()).toEqual(
      ['too_large', 'too_many', 'encoding'].map((rule) => `conditions.cedar:1 condition.${rule}`),
    );
  });

  test('findings are one line of printable ASCII, and say what to do', () => {
    const [finding] = check(`@id("a")\nforbid (principal, ${REFUND})\nwhen { context.args.amout > 5 };`).findings;
    expect(finding?.message).toMatch(/^[ -~]+$/);
    expect(finding?.message).toContain('amount');
  });

  test('any text is read without an exception, and every finding has a place in it', () => {
    const part = fc.constantFrom(
      '@id("a")',
      'forbid',
      '(principal, action, resource)',
      ';',
      '"',
      '//',
      '\n',
      'when {',
      '}',
      'é',
      '\ud800',
      '__proto__',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(part, { maxLength: 12 }).map((parts) => parts.join(' ')),
          fc.string({ unit: 'binary' }),
        ),
        (text) => {
          const lines = text.split('\n').length;
          for (const { line, column = 1 } of check(text).findings) {
            expect(line).toBeGreaterThanOrEqual(1);
            expect(line).toBeLessThanOrEqual(lines);
            expect(column).toBeGreaterThanOrEqual(1);
          }
        },
      ),
      { numRuns: 60, seed: 1 },
    );
  });
});

const counters = (...lines: readonly string[]): string =>
  `version: v1\ncontract_version: v1\nlast_updated: 2026-01-05\ncounters:\n${lines.map((line) => `  ${line}\n`).join('')}`;
const COUNTED = "counts: [{ action: 'CALL_TOOL:payments.refund', sum: amount }]";

const COUNTER_MISTAKES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a calendar window without a time zone',
    counters(`- name: a`, `  over: case`, `  window: { calendar: day }`, `  ${COUNTED}`),
    ['7 counter.no_time_zone'],
  ],
  [
    'a time zone that does not exist',
    counters('- name: a', '  over: case', '  window: { calendar: day, time_zone: Europe/Atlantis }', `  ${COUNTED}`),
    ['7 counter.unknown_time_zone'],
  ],
  [
    'a name that is used twice',
    counters(`- { name: a, over: case, ${COUNTED} }`, `- { name: a, over: run, ${COUNTED} }`),
    ['6 counter.duplicate_name'],
  ],
  [
    'an action that does not exist, and one that no step has',
    counters(`- { name: a, over: case, counts: [{ action: REFUND }, { action: export }] }`),
    ['5 counter.unknown_action', '5 counter.unknown_action'],
  ],
  [
    'an action that is counted twice',
    counters(
      `- { name: a, over: run, ${COUNTED} }`,
      `- { name: b, over: run, ${COUNTED.replace('[', "[{ action: 'CALL_TOOL:payments.refund' }, ")} }`,
    ),
    ['6 counter.duplicate_action'],
  ],
  [
    'a sum of text',
    counters(`- { name: a, over: run, ${COUNTED.replace('amount', 'order')} }`),
    ['5 counter.argument'],
  ],
  [
    'a sum of an optional argument',
    counters(`- { name: a, over: run, counts: [{ action: 'CALL_TOOL:mail.send', sum: amount }] }`),
    ['5 counter.argument'],
  ],
  [
    'a currency without one to compare it with',
    counters(`- { name: a, over: run, ${COUNTED.replace('}', ', currency: currency }')} }`),
    ['5 counter.argument'],
  ],
  [
    'a window of 32 days',
    counters(`- { name: a, over: run, window: { sliding: 32d }, ${COUNTED} }`),
    ['5 schema.', '5 schema.', '5 schema.', '5 schema.'],
  ],
];

describe('a mistake in counters.yaml', () => {
  test.each(COUNTER_MISTAKES)('%s', (_what, text, expected) => {
    expect(findingsOf(ANY, text)).toEqual(expected.map((place) => expect.stringContaining(`counters.yaml:${place}`)));
  });

  test('nothing reads them', () => {
    expect(findingsOf(null, counters(`- { name: a, over: run, ${COUNTED} }`))).toEqual([
      'counters.yaml:4 counter.no_conditions',
    ]);
  });
});

test('each rule has a mistake here', () => {
  const rules = [...CONDITION_MISTAKES, ...COUNTER_MISTAKES].flatMap(([, , places]) =>
    places.map((place) => place.split(' ')[1]),
  );
  const elsewhere = [
    'condition.too_large',
    'condition.encoding',
    'condition.too_many',
    'counter.no_conditions',
    'schema.',
  ];
  expect(new Set([...rules, ...elsewhere])).toEqual(new Set([...CONDITION_RULES, ...COUNTER_RULES, 'schema.']));
});
