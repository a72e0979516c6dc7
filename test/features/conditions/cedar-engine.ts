// Evaluates a set of policies that forbid with Cedar's own engine, completely: which are satisfied, and which fail.

import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import type { PolicyText } from './generate-conditions.js';
import type { Evaluation } from './reference/evaluate.js';
import type { RequestJson } from './reference/request.js';

/** The engine never removes a set from its cache. A later set replaces an earlier one of the same name. */
const CACHED_SETS = 8;
const PERMIT = 'permit-all';

let sets = 0;

/** Parses a set. The evaluator that it returns is valid until eight more sets are parsed. */
export function prepareCedar(conditions: readonly PolicyText[]): (request: RequestJson) => Evaluation {
  const preparsedPolicySetId = `set-${(sets += 1) % CACHED_SETS}`;
  const texts = Object.fromEntries(conditions.map(({ id, text }) => [id, text]));
  const staticPolicies = { ...texts, [PERMIT]: 'permit (principal, action, resource);' };
  const parsed = preparsePolicySet(preparsedPolicySetId, { staticPolicies });
  if (parsed.type === 'failure') {
    throw new Error(`Cedar does not parse: ${parsed.errors.map(({ message }) => message).join('; ')}`);
  }
  return (request) => {
    const answer = statefulIsAuthorized({ ...request, preparsedPolicySetId, validateRequest: false });
    if (answer.type === 'failure') {
      throw new Error(`Cedar does not evaluate: ${answer.errors.map(({ message }) => message).join('; ')}`);
    }
    const { reason, errors } = answer.response.diagnostics;
    // Cedar reports them in changing order. Without a satisfied policy the reason is the permit.
    return {
      satisfied: reason.filter((id) => id !== PERMIT).sort(),
      erring: errors.map(({ policyId }) => policyId).sort(),
    };
  };
}
