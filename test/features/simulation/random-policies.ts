// Random policies: a policy of the random trees with some of its words changed, each valid by `policy check`.

import { parse } from 'yaml';
import type { ActionsPolicy } from '../../../src/core/contract/policy/actions-policy.js';
import type { LanesPolicy } from '../../../src/core/contract/policy/lanes.js';
import type { RolesPolicy } from '../../../src/core/contract/policy/roles.js';
import { PolicyError } from '../../../src/core/errors.js';
import { PROHIBITION_NAMES } from '../../../src/core/policy/authorize-run.js';
import { below, pick, seeded } from '../../crash/seeded.js';
import { pinTexts, POLICY_NAMES, textsOf, type Pinned } from '../../trees/policies.js';

type Loose = Record<string, unknown>;
type Deep<T> = T extends readonly (infer E)[]
  ? Deep<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Deep<T[K]> }
    : T;
interface Parts {
  lanes: Deep<LanesPolicy>;
  roles: Deep<RolesPolicy>;
  actions: Deep<ActionsPolicy>;
}
type Random = () => number;
type Edit = (parts: Parts, random: Random) => void;

const TOOLS = ['billing.charge', 'mail.send', 'news.fetch', 'sandbox.read_file', 'sandbox.write_file'];
const TABLES = ['facts', 'entities', 'shared_playbooks', 'sandbox_files'];
const FLAGS = ['other_case', 'any_case', 'contains_pii', 'contains_phi', 'contains_privileged'] as const;
const LANES = ['CASE_WORK', 'CROSS_READ', 'STRICT', 'NO_CASE', 'SANDBOX_FILES', 'EXPORT_CASE_DATA'];
const SUBJECTS = ['promotion', 'export', 'CALL_TOOL', 'WRITE_FILE', 'WRITE_RECORD', 'READ_RECORDS', 'STAMP', 'TELL'];

/** Adds the value to the list, or removes it. */
function toggle<T>(list: T[], value: T): void {
  const at = list.findIndex((known) => JSON.stringify(known) === JSON.stringify(value));
  if (at < 0) list.push(value);
  else list.splice(at, 1);
}

function laneOf({ lanes }: Parts, random: Random): Parts['lanes']['lanes'][number] {
  const lane_id = below(random, 4) === 0 ? 'PROMOTE_SHARED_KNOWLEDGE' : pick(random, LANES);
  return lanes.lanes.find((lane) => lane.lane_id === lane_id) ?? pick(random, lanes.lanes);
}

const EDITS: readonly Edit[] = [
  (parts, random) => {
    toggle((laneOf(parts, random).allowed_actions.tools ??= []), pick(random, TOOLS));
  },
  (parts, random) => {
    const mode = pick(random, ['append', 'upsert'] as const);
    toggle((laneOf(parts, random).allowed_actions.writes ??= []), { table: pick(random, TABLES), mode });
  },
  (parts, random) => {
    toggle((laneOf(parts, random).allowed_actions.reads ??= []), pick(random, TABLES));
  },
  (parts, random) => {
    toggle(laneOf(parts, random).scope.requires, pick(random, ['case_id', 'run_id', 'coa_version', 'export_reason']));
  },
  (parts, random) => {
    toggle(laneOf(parts, random).scope.prohibits, pick(random, PROHIBITION_NAMES));
  },
  (parts, random) => {
    toggle((laneOf(parts, random).refuses_labels ??= []), pick(random, FLAGS));
  },
  (parts, random) => {
    const lane = laneOf(parts, random);
    lane.cross_case_reads = lane.cross_case_reads !== true;
  },
  (parts, random) => {
    const lane = laneOf(parts, random);
    lane.inherits_case_id = lane.inherits_case_id === false;
  },
  (parts, random) => {
    const lane = laneOf(parts, random);
    const role = pick(random, parts.roles.roles);
    toggle(lane.allowed_callers.roles, role.role_id);
    toggle(role.privileges.lanes, lane.lane_id);
  },
  ({ actions }, random) => {
    actions.actions.splice(below(random, actions.actions.length), 1);
  },
  ({ actions }, random) => {
    const action = pick(random, actions.actions);
    if (action.lane === undefined) action.lane = pick(random, LANES);
    else delete action.lane;
  },
  ({ actions }, random) => {
    for (const action of actions.actions) {
      if (action.extensions === undefined || below(random, 2) === 0) continue;
      for (const endings of Object.values(action.extensions)) endings.splice(0, endings.length, '.md');
    }
  },
  ({ actions: { limits } }, random) => {
    limits.payload_bytes_max = pick(random, [200, 240, 65_536]);
    limits.content_bytes_max = pick(random, [10, 100]);
    limits.path_bytes_max = pick(random, [12, 16, 20, 100]);
  },
  ({ actions: { limits } }, random) => {
    limits.payload_depth_max = pick(random, [1, 2, 3, 32]);
  },
  ({ actions: { limits } }, random) => {
    limits.steps_per_run_max = pick(random, [1, 2, 3, 5, 40]);
  },
  ({ actions: { sandbox } }, random) => {
    sandbox.bytes_max = pick(random, [9, 11, 15, 1_000]);
    sandbox.files_max = pick(random, [1, 2, 10]);
  },
  ({ actions: { sandbox } }, random) => {
    sandbox.depth_max = pick(random, [1, 2, 16]);
    sandbox.portable_names = below(random, 4) === 0;
  },
  ({ actions }, random) => {
    const kind = pick(random, ['steps', 'tool_calls', 'bytes', 'tokens', 'wall_ms'] as const);
    actions.budgets = { ...actions.budgets, [kind]: pick(random, [0, 1, 3, 6, 400, 9_000, 100_000]) };
  },
  ({ actions }) => {
    delete actions.budgets;
  },
  ({ actions }, random) => {
    const subject = pick(random, SUBJECTS);
    const known = (actions.approvals ??= []).findIndex((rule) => rule.for === subject);
    if (known >= 0) actions.approvals.splice(known, 1);
    else {
      const approver_roles = pick(random, [['ATTORNEY_ADMIN'], ['ATTORNEY_ADMIN', 'REVIEWER']]);
      actions.approvals.push({ for: subject, approver_roles, quorum: 1 + below(random, 2), expires_minutes: 5 });
    }
  },
  ({ actions }, random) => {
    for (const rule of actions.approvals ?? []) rule.quorum = 1 + below(random, 2);
  },
  ({ actions: { knobs } }, random) => {
    knobs.duplicate_proposal_ids = pick(random, ['reject', 'replay'] as const);
  },
  ({ actions: { knobs } }, random) => {
    knobs.dotdot = pick(random, ['reject', 'defer'] as const);
    knobs.extensions_stage = pick(random, ['authorize', 'validate'] as const);
  },
];

/** The same seed gives the same policy. */
export function randomPolicy(seed: number): Pinned {
  const random = seeded(seed);
  for (;;) {
    const [lanes, roles, actions] = textsOf(pick(random, POLICY_NAMES)).map((text): Loose => parse(text) as Loose);
    const parts = { lanes, roles, actions } as unknown as Parts;
    for (let edits = below(random, 5); edits >= 0; edits -= 1) pick(random, EDITS)(parts, random);
    try {
      return pinTexts([parts.lanes, parts.roles, parts.actions].map((part) => JSON.stringify(part)));
    } catch (error) {
      // Some changes contradict others: try another policy then.
      if (!(error instanceof PolicyError)) throw error;
    }
  }
}

/** Policies that are generated once. */
export const policyPool = (seed: number, count: number): readonly Pinned[] =>
  Array.from({ length: count }, (_, i) => randomPolicy(seed * 1_000 + i));
