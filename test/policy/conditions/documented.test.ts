// The examples of docs/conditions.md: each is a valid policy file, or a valid table of tests.

import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCatalogue, type ToolDefinition } from '../../../src/contract/policy/catalogue.js';
import { checkPolicy } from '../../../src/policy/files/check-policy.js';
import { readPolicyTests } from '../../../src/policy/files/policy-test-file.js';
import { shippedBytes } from '../../fixtures/tree.js';
import { ROOT } from '../../root.js';

const page = readFileSync(join(ROOT, 'docs/conditions.md'), 'utf8');
const blocksOf = (language: string): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);

const properties = { amount: { type: 'integer' }, order: { type: 'string' }, to: { type: 'string' } };
const tool = (name: string, required: readonly string[]): ToolDefinition => ({
  name,
  summary: 'A tool.',
  input: { type: 'object', properties, required: [...required], additionalProperties: false },
  output: { type: 'object', properties: {}, additionalProperties: false },
  idempotent: false,
  timeout_ms: 1_000,
  result_bytes_max: 1_000,
  outside: name === 'mail.send',
  confidentiality: [],
});
const tools = [tool('payments.refund', ['amount', 'order']), tool('mail.send', ['to'])];
const catalogue = createCatalogue({ actions: [], tools, targets: [] });
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
