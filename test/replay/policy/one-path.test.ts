// Random requests under random policies: a decision table, a live tree, its simulation and its explanation agree.

import { expect, test } from '@jest/globals';
import { sized } from '../../fixtures/campaign.js';
import { random } from '../../fixtures/random.js';
import { verdictsOn } from './one-path.js';
import { randomPolicy, randomRequest } from './one-path-policies.js';

const POLICIES = sized(10, 400);
const REQUESTS = sized(30, 500);
/** An explanation decides under many edits of the policy. */
const EXPLAINED_EVERY = sized(10, 50);

test('S4-31: all ways to decide a proposal agree', () => {
  const differences: unknown[] = [];
  const decisions = new Map<string, number>();
  for (let seed = 1; seed <= POLICIES; seed += 1) {
    const chance = random(seed);
    const world = randomPolicy(chance);
    for (let count = 0; count < REQUESTS; count += 1) {
      const request = randomRequest(chance);
      const verdicts = verdictsOn(request, world, count % EXPLAINED_EVERY === 0);
      const { table, live, simulated, explained } = verdicts;
      if (table !== live || simulated !== live || explained !== live)
        differences.push({ seed, count, request, verdicts });
      const rule = live.split(' ').slice(0, 2).join(' ');
      decisions.set(rule, (decisions.get(rule) ?? 0) + 1);
    }
  }
  expect(differences.slice(0, 5)).toEqual([]);
  // Conditions, their errors, decision points, approvals and lanes have all decided.
  const rules = [
    'allow lane.granted',
    'deny condition.error',
    'deny decision_point.denied',
    'approval approval.required',
  ];
  for (const rule of rules) expect([rule, decisions.has(rule)]).toEqual([rule, true]);
  process.stdout.write(`${POLICIES * REQUESTS} requests, ${differences.length} differences\n`);
});
