import type { ActionDefinition } from '../contract/policy/actions.js';
import type { Effect } from '../contract/run/effect.js';
import type { JsonObject } from '../contract/json.js';
import { InvariantError } from '../errors.js';
import type { Policy } from '../policy/policy.js';

/**
 * EXECUTE of an action without an effect: THINK and FINISH succeed once they are allowed (C09).
 * @returns the result, or null for an action that an executor must run
 */
export function unprivilegedResult({ name }: ActionDefinition, args: JsonObject): JsonObject | null {
  if (name === 'THINK') return {};
  if (name !== 'FINISH') return null;
  const { response } = args;
  if (response === undefined) throw new InvariantError('FINISH was executed with arguments that are not valid');
  return { response };
}

/** Read limits for an executor. They are part of the effect, so the executor needs no policy. */
export const effectLimits = ({ limits }: Policy): Effect['limits'] => ({
  read_bytes_max: limits.read_bytes_max,
  list_entries_max: limits.list_entries_max,
});
