// The mistakes of decision points that a schema cannot express.

import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { DecisionPoint } from '../../core/contract/policy/decision-points.js';
import { isSafeUrl } from '../../core/contract/safe-url.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { type DecisionPointMistake, decidedActionNames } from '../../core/policy/policy-features.js';

export function* findDecisionPointMistakes(
  points: readonly DecisionPoint[],
  catalogue: Catalogue,
): Generator<DecisionPointMistake> {
  const known = decidedActionNames(catalogue);
  const names = new Set<string>();
  for (const [index, { name, url, actions }] of points.entries()) {
    const pointer = `/decision_points/${index}`;
    if (names.has(name)) {
      const message = `the decision point ${name} is there twice`;
      yield { pointer: `${pointer}/name`, rule: 'decision_point.duplicate_name', message };
    }
    names.add(name);
    if (!isSafeUrl(url)) {
      const message = 'use https, or http to the local machine, without a user, a password or a fragment';
      yield { pointer: `${pointer}/url`, rule: 'decision_point.url', message };
    }
    for (const [at, action] of actions.entries()) {
      if (known.has(action)) continue;
      const message = `no step has the action ${quoteForMessage(action)}: name it as conditions do`;
      yield { pointer: `${pointer}/actions/${at}`, rule: 'decision_point.unknown_action', message };
    }
  }
}
