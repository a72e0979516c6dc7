import type { ActionDefinition } from '../contract/actions.js';
import { pass, refuse, type Checked } from '../contract/fault.js';
import type { Policy } from '../policy/policy.js';

/**
 * VALIDATE_ACTION: the action stands in the policy's allowlist and exists. Names are compared as they are: folding case
 * would let `ﬁnish` or `thınk` in (C16).
 *
 * @returns the definition, or ACTION_NOT_ALLOWED
 */
export function validateAction(action: string, policy: Policy): Checked<ActionDefinition> {
  if (!policy.actions.has(action)) return refuse('ACTION_NOT_ALLOWED', 'action.not_in_allowlist');
  const definition = policy.catalogue.action(action);
  return definition === undefined ? refuse('ACTION_NOT_ALLOWED', 'action.not_in_catalogue') : pass(definition);
}
