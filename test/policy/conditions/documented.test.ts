// The examples of docs/conditions.md and docs/counters.md: each is a valid policy file, or a valid table of tests.

import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkPolicy } from '../../../src/policy/files/check-policy.js';
import { readPolicyTests } from '../../../src/policy/files/policy-test-file.js';
import { refundCatalogue as catalogue } from '../../fixtures/refund-catalogue.js';
import { shippedBytes } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';

const pageOf = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
const blocksOf = (language: string, page = pageOf('conditions.md')): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);

const named = (name: 'lanes' | 'roles' | 'actions') => ({ path: `${name}.yaml`, bytes: shippedBytes(name) });

test.each(blocksOf('cedar').map((block) => [block]))('%s', (block) => {
  const conditions = { path: 'conditions.cedar', bytes: Buffer.from(block) };
  const files = { lanes: named('lanes'), roles: named('roles'), actions: named('actions'), conditions };
  expect(checkPolicy(files, catalogue).findings).toEqual([]);
});

test.each(blocksOf('yaml').map((block) => [block]))('%s', (block) => {
  const { tests, findings } = readPolicyTests({ path: 't.yaml', bytes: Buffer.from(block) });
  expect(findings).toEqual([]);
  expect(tests.length).toBeGreaterThan(0);
});

test('the page has examples', () => {
  expect([blocksOf('cedar').length, blocksOf('yaml').length]).toEqual([5, 1]);
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
