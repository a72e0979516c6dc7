// Random requests under random policies: how often two ways to decide one proposal differ.

import { random } from '../../fixtures/random.js';
import { type Verdicts, verdictsOn } from './one-path.js';
import { randomPolicy, randomRequest } from './one-path-policies.js';

export interface Comparison {
  /** The first policy is made from this seed, each next one from the next. */
  readonly seed: number;
  readonly policies: number;
  /** Requests under each policy. */
  readonly requests: number;
  /** Every nth request is explained too: an explanation decides under many edits of the policy. */
  readonly explainedEvery: number;
  /** After each policy. */
  readonly onPolicy?: (differences: number) => void;
}

export interface Difference {
  readonly seed: number;
  /** The index of the request under the policy of this seed. */
  readonly index: number;
  readonly verdicts: Verdicts;
}

export interface Compared {
  readonly differences: readonly Difference[];
  /** How often each decision and rule was reached live. */
  readonly decisions: ReadonlyMap<string, number>;
}

export function compareWays({ seed: first, policies, requests, explainedEvery, onPolicy }: Comparison): Compared {
  const differences: Difference[] = [];
  const decisions = new Map<string, number>();
  for (let seed = first; seed < first + policies; seed += 1) {
    const chance = random(seed);
    const world = randomPolicy(chance);
    for (let index = 0; index < requests; index += 1) {
      const verdicts = verdictsOn(randomRequest(chance), world, index % explainedEvery === 0);
      const { table, live, simulated, explained } = verdicts;
      if (table !== live || simulated !== live || explained !== live) differences.push({ seed, index, verdicts });
      const rule = live.split(' ').slice(0, 2).join(' ');
      decisions.set(rule, (decisions.get(rule) ?? 0) + 1);
    }
    onPolicy?.(differences.length);
  }
  return { differences, decisions };
}
