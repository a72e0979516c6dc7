import type { ActionDefinition } from '../contract/policy/actions.js';
import type { Effect } from '../contract/run/effect.js';
import type { JsonObject } from '../contract/json.js';
import { InvariantError } from '../errors.js';
import type { Policy } from '../policy/policy.js';

/**
 * EXECUTE of an action that has no effect: THINK and FINISH are done when they are allowed (C09).
 * @returns the result, or null for an action that somebody else has to perform
 */
export function unprivilegedResult({ name }: ActionDefinition, args: JsonObject): JsonObject | null {
  if (name === 'THINK') return {};
  if (name !== 'FINISH') return null;
  const { response } = args;
  if (response === undefined) throw new InvariantError('FINISH was executed with arguments that are not valid');
  return { response };
}

/** What an executor may read at most: part of the effect, so that it needs no policy of its own. */
export const effectLimits = ({ limits }: Policy): Effect['limits'] => ({
  read_bytes_max: limits.read_bytes_max,
  list_entries_max: limits.list_entries_max,
});
