// The names of the actions of steps by which what a policy says of them is chosen: with the tool or table that the
// arguments name.

import type { Catalogue } from '../contract/policy/catalogue.js';
import type { JsonObject } from '../contract/json.js';

/** Actions whose arguments name what they act on: there is one for each tool or table. */
export const NAMED_ACTIONS: readonly string[] = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'];

/** The name of an action with these arguments, such as `WRITE_FILE` or `CALL_TOOL:payments.refund`. */
export function decidedActionName(name: string, args: JsonObject): string {
  if (!NAMED_ACTIONS.includes(name)) return name;
  const named = args[name === 'CALL_TOOL' ? 'tool' : 'target'];
  return `${name}:${typeof named === 'string' ? named : ''}`;
}

/** All of them for a policy. An action without a run of its own has no effect, so nothing decides it. */
export const decidedActionNames = ({ actions, registrations }: Catalogue): ReadonlySet<string> =>
  new Set([
    ...actions
      .filter(({ run_kind, name }) => run_kind !== null && !NAMED_ACTIONS.includes(name))
      .map(({ name }) => name),
    ...registrations.tools.map(({ name }) => `CALL_TOOL:${name}`),
    ...registrations.targets.flatMap(({ name }) => [`WRITE_RECORD:${name}`, `READ_RECORDS:${name}`]),
  ]);
