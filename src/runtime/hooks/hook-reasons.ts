// What the model of a coding agent gets to know of a call that it must not make: the rule, the run, the step, and what
// its lane allows. The model may see its policy, but never the content of other runs.

import type { StepTrace } from '../../contract/run/step-trace.js';
import type { Policy } from '../../policy/policy.js';

const REASON_CHARS_MAX = 1_000;

/** A call that policy has denied. */
export function denialReason(
  { rule_id, run_id, step_index, error_code }: StepTrace,
  tool: string,
  policy: Policy,
  lane_id: string,
): string {
  const rule = rule_id ?? error_code ?? 'unknown';
  return bounded(
    `Turnpike denied this call: rule ${rule}, run ${run_id}, step ${step_index}. ${allowedBy(policy, lane_id, tool)}`,
  );
}

/** A call that waits for its approval. */
export const pendingReason = ({ run_id, step_index }: StepTrace): string =>
  bounded(
    `Turnpike: approval pending (run ${run_id}, step ${step_index}). A person has to approve this call. ` +
      'Go on with other work, and make the same call again later.',
  );

/** What the call rules of the lane allow of a tool without an approval. */
function allowedBy(policy: Policy, lane_id: string, tool: string): string {
  const lane = policy.lanes.get(lane_id);
  const rules = (lane?.calls ?? []).filter(({ tools, decision }) => decision === 'allow' && tools.includes(tool));
  if (rules.length === 0) return `Lane ${lane_id} allows no call of ${tool} without an approval.`;
  const allowed = rules.flatMap(({ commands = [], paths = [], hosts = [], names = [] }) => [
    ...commands,
    ...paths,
    ...hosts,
    ...names,
  ]);
  return allowed.length === 0
    ? `Lane ${lane_id} allows ${tool} within other limits.`
    : `Lane ${lane_id} allows ${tool} for: ${allowed.join(', ')}, unless another rule denies a part.`;
}

/** A client that could act without asking. */
export const unsafeReason = (client: string): string =>
  'Turnpike: this client could act without asking, so every call is denied. ' +
  `The user must run \`turnpike agents doctor ${client}\`, follow it, and start a new session.`;

/** A session that policy has ended. */
export const closedReason = (run_id: string): string =>
  `Turnpike: policy has ended this session (run ${run_id}), so every call is denied. ` +
  `A person may reopen it: \`turnpike agents reopen ${run_id}\`.`;

export const NO_SUBAGENT_REASON =
  'Turnpike: policy allows no further subagent while the others have its budgets, so the call is denied. ' +
  'Wait until one of them has ended.';

export const OTHER_PROJECT_REASON =
  'Turnpike: this session belongs to another project folder, so the call is denied. Start a new session here.';

/** A session that began without a check of its client, as one that uses HTTP alone. */
export const UNCHECKED_REASON =
  'Turnpike: the client of this session was not checked, so the call is denied. ' +
  'Its hook for the start of a session must be the command `turnpike hook`.';

/** A call of which nothing can be recorded, so that nothing can be decided. */
export const SECRET_REASON =
  'Turnpike: the command, the path or the name of this call has text that looks like a secret, so the call is denied. ' +
  'Name the secret by a file or a variable that the program reads itself.';

/** Nothing more than that: the cause is in the log. */
export const FAILURE_REASON =
  'Turnpike could not decide this call, so it is denied. The log of the service has the cause.';

const bounded = (text: string): string =>
  text.length <= REASON_CHARS_MAX ? text : `${text.slice(0, REASON_CHARS_MAX - 4)} ...`;
