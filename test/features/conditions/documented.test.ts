// The examples of docs/conditions.md and docs/counters.md: each is a valid policy file, or a valid table of tests. Each
// recipe also decides requests that are made to get around it.

import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkPolicy } from '../../../src/core/policy/files/check-policy.js';
import { readPolicyTests, type PolicyTest } from '../../../src/features/simulation/policy-test-file.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { runPolicyTest } from '../../../src/features/simulation/policy-test.js';
import { asNamedPerson } from '../../../src/runtime/agents/caller-input.js';
import { refundCatalogue as catalogue } from '../../fixtures/refund-catalogue.js';
import { serviceEdit } from '../../fixtures/service.js';
import { shippedBytes } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';
import '../../fixtures/conditions.js';

const pageOf = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
const blocksOf = (language: string, page = pageOf('conditions.md')): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);

const named = (name: 'lanes' | 'roles' | 'actions') => ({ path: `${name}.yaml`, bytes: shippedBytes(name) });

const GROUPS = 'groups:';
const isGroups = (block: string): boolean => block.startsWith(GROUPS);
const [groups = ''] = blocksOf('yaml').filter(isGroups);

/** Operators act without proposals: `test/host/governed-acts.test.ts` has their attempts. */
const isOfOperators = (block: string): boolean => block.includes('Action::"erasure"');

/** The policy of the shipped files and a block of the page, with a lane for its tools. */
function policyWith(block: string): Policy {
  const edited = (name: 'lanes' | 'roles' | 'actions') => ({
    path: `${name}.yaml`,
    bytes: Buffer.from(
      serviceEdit(name, shippedBytes(name).toString('utf8'))
        .replace('tools: [billing.charge', 'tools: [payments.refund, payments.cancel_refund, billing.charge')
        .replace(
          'requires: [case_id, run_id], prohibits: []',
          `requires: [case_id, run_id, ${isOfOperators(block) ? 'matter_id' : 'customer_domain'}], prohibits: []`,
        )
        .concat(name === 'roles' ? `\n${groups}` : ''),
    ),
  });
  const conditions = { path: 'conditions.cedar', bytes: Buffer.from(block) };
  const files = { lanes: edited('lanes'), roles: edited('roles'), actions: edited('actions'), conditions };
  const { findings, policy } = checkPolicy(files, catalogue);
  expect(findings).toEqual([]);
  if (policy === null) throw new Error('the block is no policy');
  return policy;
}

test.each(blocksOf('cedar').map((block) => [block]))('%s', (block) => {
  expect(policyWith(block).conditions?.all.length).toBeGreaterThan(0);
});

type Request = PolicyTest['request'];
const SERVICE = { role: 'CASE_AGENT', lane: 'CASE_WORK', scope: { customer_domain: 'customer.example' } };
const call = (tool: string, input: object, more: Partial<Request> = {}): Request => ({
  ...{ ...SERVICE, action: 'CALL_TOOL', args: { tool, input } },
  ...more,
});
const file = (action: string, args: object, more: Partial<Request> = {}): Request => ({
  ...{ role: 'SANDBOX_AGENT', lane: 'SANDBOX_FILES', action, args },
  ...more,
});
const refund = (amount: unknown, more: Partial<Request> = {}): Request =>
  call('payments.refund', { amount, order: 'o', currency: 'EUR' }, more);
const mail = (to: unknown, scope: Request['scope'] = SERVICE.scope): Request => call('mail.send', { to }, { scope });
const write = (path: string, more: Partial<Request> = {}): Request => file('WRITE_FILE', { path, content: 'x' }, more);

/** By the `@id` in the recipe: honest requests, and those that must not get through. */
const ATTEMPTS: Readonly<
  Record<string, { readonly honest: readonly Request[]; readonly hostile: readonly Request[] }>
> = {
  refund_limit: {
    honest: [refund(100), refund(1)],
    hostile: [refund(101), refund(5_001), refund(Number.MAX_SAFE_INTEGER), refund('50'), refund(50.5), refund(null)],
  },
  business_hours: {
    honest: [...['08:00:00', '17:59:59'].map((time) => mailAt(`2026-01-05T${time}Z`))],
    hostile: [...['07:59:59', '18:00:00', '23:59:59', '00:00:00'].map((time) => mailAt(`2026-01-05T${time}Z`))],
  },
  secret_files: {
    honest: [write('/sandbox/a.txt'), write('/sandbox/env.txt')],
    hostile: [
      ...['/sandbox/.env.txt', '/sandbox/d/.env.md', '/sandbox/.git/x.txt', '/sandbox/.git/d/x.txt'].map((path) =>
        write(path),
      ),
      ...['/sandbox//.env.txt', '/sandbox/./.env.txt', '/sandbox/d/../.env.txt'].map((path) => write(path)),
      file('RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/.git/a.txt' }),
      file('RENAME_FILE', { source: '/sandbox/.env.txt', destination: '/sandbox/a.txt' }),
      file('READ_FILE', { path: '/sandbox/.env.txt' }),
      file('LIST_FILES', { path: '/sandbox/.git' }),
    ],
  },
  own_domain: {
    honest: [mail('x@customer.example'), mail('X.y+z@CUSTOMER.example')],
    hostile: [
      'x@evil.example, y@customer.example',
      'x@evil.example,y@customer.example',
      'x@evil.example;y@customer.example',
      'x@evil.example y@customer.example',
      'x@evil.example\ny@customer.example',
      'x@evil.example\u0000@customer.example',
      '"x@evil.example"@customer.example',
      '<x@evil.example>y@customer.example',
      'x@evil.example@customer.example',
      'x@customer.example.evil.example',
      'x@evilcustomer.example',
      'x@sub.customer.example',
      'x@customer.example.',
      'x@customer.ex\u0430mple',
      'x@\uff43ustomer.example',
      'x@[127.0.0.1]',
      '@customer.example',
      'customer.example',
      '',
    ]
      .map((to) => mail(to))
      .concat([mail('x@customer.example', { customer_domain: 'other.example' }), mail('x@customer.example', {})])
      .concat([mail('x@a b', { customer_domain: 'a b' }), mail(['x@customer.example']), mail(null)]),
  },
  suspended: {
    honest: [write('/sandbox/a.txt', { actor: 'berta' }), write('/sandbox/a.txt', { actor: 'hanna' })],
    hostile: ['anna', 'Anna', 'ANNA', 'carl', 'Carl', '\u0430nna', '\uff41nna', 'an\u200bna', 'c\u0430rl'].flatMap(
      (name) => [write('/sandbox/a.txt', { actor: name }), write('/sandbox/a.txt', { actor: 'robot-1', person: name })],
    ),
  },
  break_glass: {
    honest: [write('/sandbox/a.txt')],
    hostile: [
      file('DELETE_FILE', { path: '/sandbox/a.txt' }),
      file('RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.txt' }),
    ],
  },
};

function mailAt(time: string): Request {
  return call('mail.send', { to: 'x@customer.example' }, { time });
}

describe.each(
  blocksOf('cedar')
    .filter((block) => !isOfOperators(block))
    .map((block) => [[...block.matchAll(/@id\("(.*?)"\)/g)].at(-1)?.[1] ?? '', block]),
)('the recipe %s', (id, block) => {
  const decide = (request: Request): string =>
    runPolicyTest({ name: 'a', request, expect: { decision: 'allow' } }, policyWith(block), asNamedPerson).decided
      .decision;

  test('S4-31: allows honest requests', () => {
    const { honest = [] } = ATTEMPTS[id] ?? {};
    expect(honest.map((request) => [request, decide(request)])).toEqual(honest.map((request) => [request, 'allow']));
    expect(honest.length).toBeGreaterThan(0);
  });

  test('S4-31: allows none that is made to get around it', () => {
    const { hostile = [] } = ATTEMPTS[id] ?? {};
    expect(hostile.filter((request) => decide(request) === 'allow')).toEqual([]);
    expect(hostile.length).toBeGreaterThan(0);
  });
});

test.each(
  blocksOf('yaml')
    .filter((block) => !isGroups(block))
    .map((block) => [block]),
)('%s', (block) => {
  const { tests, findings } = readPolicyTests({ path: 't.yaml', bytes: Buffer.from(block) });
  expect(findings).toEqual([]);
  expect(tests.length).toBeGreaterThan(0);
});

test('the page has examples', () => {
  expect([blocksOf('cedar').length, blocksOf('yaml').length]).toEqual([7, 2]);
});

test('the counters of docs/counters.md, and the condition that reads them', () => {
  const page = pageOf('counters.md');
  const [[yaml = ''], [cedar = '']] = [blocksOf('yaml', page), blocksOf('cedar', page)];
  const counters = { path: 'counters.yaml', bytes: Buffer.from(yaml) };
  const conditions = { path: 'conditions.cedar', bytes: Buffer.from(cedar) };
  const files = { lanes: named('lanes'), roles: named('roles'), actions: named('actions') };
  const { findings, policy } = checkPolicy({ ...files, conditions, counters }, catalogue);
  expect(findings).toEqual([]);
  expect(policy?.counters?.all).toHaveLength(1);
});
