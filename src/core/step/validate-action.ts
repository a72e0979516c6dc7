import type { ActionDefinition } from '../contract/policy/actions.js';
import { passWith, rejectWith, type CheckedValue } from '../contract/fault.js';
import type { Policy } from '../policy/policy.js';

/**
 * VALIDATE_ACTION: checks that the policy's allowlist contains the action and that it exists. Names are compared
 * exactly: case folding would accept `ﬁnish` or `thınk` (C16).
 *
 * @returns the definition, or ACTION_NOT_ALLOWED
 */
export function validateAction(action: string, policy: Policy): CheckedValue<ActionDefinition> {
  if (!policy.actions.has(action)) return rejectWith('ACTION_NOT_ALLOWED', 'action.not_in_allowlist');
  const definition = policy.catalogue.action(action);
  return definition === undefined ? rejectWith('ACTION_NOT_ALLOWED', 'action.not_in_catalogue') : passWith(definition);
}
