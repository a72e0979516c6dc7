// Which parts of a request conditions read: what is left out must not change the engine's answer.

import { describe, expect, test } from '@jest/globals';
import { parsePolicy } from '../../../src/features/conditions/cedar.js';
import { readPartsOf, type ReadParts } from '../../../src/features/conditions/read-parts.js';
import { sized } from '../../fixtures/campaign.js';
import { prepareCedar } from './cedar-engine.js';
import { Chance } from './chance.js';
import { randomConditions } from './generate-conditions.js';
import { randomEntities, randomRequest } from './generate-requests.js';

function readBy(...texts: readonly string[]): ReadParts {
  const policies = texts.map((text) => {
    const read = parsePolicy(text);
    if ('problems' in read) throw new Error(JSON.stringify(read.problems));
    return read.policy;
  });
  return readPartsOf(policies);
}

const when = (body: string): string => `forbid (principal, action, resource) when { ${body} };`;
const NOTHING = { context: [], args: [], scope: [], principal: false, action: false, resource: false };
const plain = ({ context, args, scope, ...entities }: ReadParts) => ({
  context: context === null ? null : [...context].sort(),
  args: args === null ? null : [...args].sort(),
  scope: scope === null ? null : [...scope].sort(),
  ...entities,
});

describe('what a condition reads', () => {
  test.each<[string, object]>([
    ['true', {}],
    ['context.args.amount > 5', { context: ['args'], args: ['amount'] }],
    ['context.args has note && context.args.note like "a*"', { context: ['args'], args: ['note'] }],
    ['context.args.order.lines.contains("x")', { context: ['args'], args: ['order'] }],
    ['context["args"]["amount"] > 5', { context: ['args'], args: ['amount'] }],
    ['context has args', { context: ['args'] }],
    ['context.args == {amount: 5}', { context: ['args'], args: null }],
    ['context.scope has matter && context.scope.matter == "a"', { context: ['scope'], scope: ['matter'] }],
    ['context.scope == {matter: "a"}', { context: ['scope'], scope: null }],
    ['context == {args: 5}', { context: null, args: null, scope: null }],
    ['[context].contains(context)', { context: null, args: null, scope: null }],
    ['(if true then context else context).lane == "a"', { context: null, args: null, scope: null }],
    ['principal.person == "anna"', { principal: true }],
    ['{context: context.lane, Var: context.case}.Var == "x"', { context: ['case', 'lane'] }],
    ['{Value: context.lane} == {Value: "x"}', { context: ['lane'] }],
    ['context.now < datetime("2030-01-01")', { context: ['now'] }],
    ['principal in Role::"a"', { principal: true }],
    ['principal in [Role::"a", Role::"b"]', { principal: true }],
    ['resource.name like "x*"', { resource: true }],
    ['resource is Path in Path::"/a"', { resource: true }],
    ['action in Action::"a"', { action: true }],
    ['Path::"/a" in Path::"/b"', { principal: true, action: true, resource: true }],
    ['Path::"/a".name == "a"', { principal: true, action: true, resource: true }],
    ['(if true then Path::"/a" else Path::"/b") in Path::"/"', { principal: true, action: true, resource: true }],
    ['context.lane == "principal"', { context: ['lane'] }],
  ])('%s', (body, expected) => {
    expect(plain(readBy(when(body)))).toEqual({ ...NOTHING, ...expected });
  });

  test.each<[string, object]>([
    ['principal == Actor::"a", action == Action::"a", resource == Tool::"a"', {}],
    ['principal in Role::"a", action, resource', { principal: true }],
    ['principal is Actor in Role::"a", action, resource', { principal: true }],
    ['principal, action in [Action::"a", Action::"b"], resource', { action: true }],
    ['principal, action, resource is Path', {}],
    ['principal, action, resource in Path::"/a"', { resource: true }],
    ['principal, action, resource is Path in Path::"/a"', { resource: true }],
  ])('the scope %s', (scope, expected) => {
    expect(plain(readBy(`forbid (${scope});`))).toEqual({ ...NOTHING, ...expected });
  });

  test('several conditions read what each of them does', () => {
    const read = readBy(
      when('context.args.a == 1'),
      when('context.args.b == 1 && context has lane'),
      when('resource.x'),
    );
    expect(plain(read)).toEqual({ ...NOTHING, context: ['args', 'lane'], args: ['a', 'b'], resource: true });
  });
});

test('attributes of the context that no condition reads do not change the answer, on random conditions', () => {
  const [sets, requests] = [sized(40, 400), sized(25, 100)];
  let left = 0;
  for (let seed = 1; seed <= sets; seed += 1) {
    const conditions = randomConditions(seed);
    const { context: names } = readBy(...conditions.map(({ text }) => text));
    const decide = prepareCedar(conditions);
    const chance = new Chance(seed);
    const entities = randomEntities(chance);
    for (let count = 0; count < requests; count += 1) {
      const request = randomRequest(chance, entities);
      const context = Object.fromEntries(
        Object.entries(request.context as Record<string, never>).filter(([name]) => names?.has(name) !== false),
      );
      left += Object.keys(request.context).length - Object.keys(context).length;
      expect(decide({ ...request, context })).toEqual(decide(request));
    }
  }
  expect(left).toBeGreaterThan(sets);
});
