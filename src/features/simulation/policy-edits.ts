// Single changes of a policy that could change one decision, the narrowest first. Each change is a complete, valid
// policy.

import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import { LABEL_REFUSALS } from '../../core/contract/policy/labels.js';
import { WRITE_MODES, type Lane } from '../../core/contract/policy/lanes.js';
import type { Role } from '../../core/contract/policy/roles.js';
import type { Conditions } from '../../core/policy/policy-features.js';
import { OPTIONAL_FILES } from '../../core/contract/policy/pins.js';
import { findInconsistencies } from '../../core/policy/files/policy-consistency.js';
import type { Policy } from '../../core/policy/policy.js';
import { PROHIBITION_NAMES } from '../../core/policy/authorize-run.js';
import { AMOUNT_MAX, BUDGET_KINDS } from '../../core/contract/run/budget.js';

export interface PolicyEdit {
  /** Describes the change, for example `action X would have to be listed`. */
  readonly text: string;
  readonly policy: Policy;
}

/** The names that the edits may change rules for. */
export interface EditScope {
  readonly role_id: string;
  readonly lane_ids: readonly string[];
  /** An action, `promotion` or `export`. */
  readonly action: string;
  readonly tools: readonly string[];
  readonly tables: readonly string[];
  /** The extension of each path argument, keyed by argument. */
  readonly endings: Readonly<Record<string, string>>;
}

export function* editsOf(policy: Policy, editScope: EditScope): Generator<PolicyEdit> {
  for (const edit of allEdits(policy, editScope)) if (isValidPolicy(edit.policy)) yield edit;
}

function* allEdits(policy: Policy, editScope: EditScope): Generator<PolicyEdit> {
  yield* actionEdits(policy, editScope);
  for (const lane_id of new Set(editScope.lane_ids)) {
    const lane = policy.lanes.get(lane_id);
    if (lane === undefined) continue;
    const withLane = (text: string, changed: Lane): PolicyEdit => ({
      text: `lane ${lane_id} would have to ${text}`,
      policy: { ...policy, lanes: new Map([...policy.lanes, [lane_id, changed]]) },
    });
    yield* grantEdits(policy, lane, editScope);
    for (const [text, changed] of listEdits(lane, editScope)) yield withLane(text, changed);
    for (const [text, changed] of callEdits(lane, editScope)) yield withLane(text, changed);
    for (const [text, changed] of laneRuleEdits(lane)) yield withLane(text, changed);
  }
  yield* approvalEdits(policy, editScope.action);
  yield* conditionEdits(policy);
  yield* decisionPointEdits(policy);
  yield* knobEdits(policy);
}

type LaneEdit = readonly [text: string, lane: Lane];

function* listEdits(lane: Lane, { tools, tables }: EditScope): Generator<LaneEdit> {
  const { allowed_actions: lists } = lane;
  const listed = (changed: Partial<Lane['allowed_actions']>): Lane => ({
    ...lane,
    allowed_actions: { ...lists, ...changed },
  });
  for (const tool of tools) yield [...toggleListed(lists.tools, tool, `tool ${tool}`, (l) => listed({ tools: l }))];
  for (const table of tables) {
    yield [...toggleListed(lists.reads, table, `table ${table} among its reads`, (l) => listed({ reads: l }))];
    const { writes = [] } = lists;
    for (const mode of WRITE_MODES) {
      const others = writes.filter((write) => write.table !== table || write.mode !== mode);
      const there = others.length < writes.length;
      const what = `table ${table} with mode ${mode} among its writes`;
      yield there
        ? [`no longer list ${what}`, listed({ writes: others })]
        : [`list ${what}`, listed({ writes: [...writes, { table, mode }] })];
    }
  }
}

/** Without a rule that denies, with a rule that allows in place of one that asks, and with one more that allows. */
function* callEdits(lane: Lane, { tools }: EditScope): Generator<LaneEdit> {
  const { calls } = lane;
  if (calls === undefined) return;
  for (const [index, rule] of calls.entries()) {
    if (!rule.tools.some((tool) => tools.includes(tool))) continue;
    if (rule.decision === 'deny' && calls.length > 1)
      yield [`no longer have the call rule ${rule.id}`, { ...lane, calls: calls.toSpliced(index, 1) }];
    if (rule.decision === 'approval')
      yield [
        `allow in the call rule ${rule.id} without an approval`,
        { ...lane, calls: calls.with(index, { ...rule, decision: 'allow' }) },
      ];
  }
  const ids = new Set(calls.map(({ id }) => id));
  const id = ['added', ...calls.map((_, index) => `added_${index}`)].find((free) => !ids.has(free));
  for (const tool of tools) {
    if (id === undefined || lane.allowed_actions.tools?.includes(tool) !== true) continue;
    yield [
      `have a call rule that allows this call of ${tool}`,
      { ...lane, calls: [...calls, { id, tools: [tool], decision: 'allow' }] },
    ];
  }
}

function* laneRuleEdits(lane: Lane): Generator<LaneEdit> {
  const { scope } = lane;
  for (const field of scope.requires) {
    const requires = scope.requires.filter((other) => other !== field);
    yield [`no longer require the scope field ${field}`, { ...lane, scope: { ...scope, requires } }];
  }
  for (const name of PROHIBITION_NAMES)
    yield toggleListed(
      scope.prohibits,
      name,
      `the prohibition ${name}`,
      (prohibits) => ({ ...lane, scope: { ...scope, prohibits } }),
      'have',
    );
  for (const label of LABEL_REFUSALS)
    yield toggleListed(
      lane.refuses_labels ?? [],
      label,
      `${label} (refuses_labels)`,
      (refuses_labels) => ({ ...lane, refuses_labels }),
      'refuse',
    );
  const crosses = lane.cross_case_reads === true;
  yield [`${crosses ? 'no longer ' : ''}allow cross_case_reads`, { ...lane, cross_case_reads: !crosses }];
  const inherits = lane.inherits_case_id !== false;
  yield [
    `${inherits ? 'no longer ' : ''}inherit the case (inherits_case_id)`,
    { ...lane, inherits_case_id: !inherits },
  ];
}

function toggleListed<T>(
  list: readonly T[] = [],
  value: T,
  what: string,
  createLane: (list: T[]) => Lane,
  verb = 'list',
): LaneEdit {
  const others = list.filter((known) => known !== value);
  return others.length < list.length
    ? [`no longer ${verb} ${what}`, createLane(others)]
    : [`${verb} ${what}`, createLane([...list, value])];
}

/** C55: a grant is valid only in both files, so both changes are one edit. */
function* grantEdits(policy: Policy, lane: Lane, { role_id }: EditScope): Generator<PolicyEdit> {
  const role = policy.roles.get(role_id) ?? newRole(role_id);
  const granted = role.privileges.lanes.includes(lane.lane_id);
  const lanes = role.privileges.lanes.filter((other) => other !== lane.lane_id);
  const roles = lane.allowed_callers.roles.filter((other) => other !== role_id);
  const changedRole: Role = { ...role, privileges: { lanes: granted ? lanes : [...lanes, lane.lane_id] } };
  const changedLane: Lane = { ...lane, allowed_callers: { roles: granted ? roles : [...roles, role_id] } };
  const known = policy.roles.has(role_id) ? '' : ' be in roles.yaml, and';
  yield {
    text: `role ${role_id} would have to${known} ${granted ? 'lose' : 'be allowed'} lane ${lane.lane_id} (on both sides)`,
    policy: {
      ...policy,
      roles: new Map([...policy.roles, [role_id, changedRole]]),
      lanes: new Map([...policy.lanes, [lane.lane_id, changedLane]]),
    },
  };
}

const newRole = (role_id: string): Role => ({
  role_id,
  description: 'New.',
  class: 'agent',
  privileges: { lanes: [] },
});

function* actionEdits(policy: Policy, { action, endings, role_id }: EditScope): Generator<PolicyEdit> {
  const { actions, catalogue } = policy;
  if (catalogue.action(action) === undefined) return;
  const known = actions.get(action);
  const withActions = (text: string, changed: Policy['actions']): PolicyEdit => ({
    text: `action ${action} would have to ${text}`,
    policy: { ...policy, actions: changed },
  });
  if (known === undefined) {
    yield withActions('be listed', new Map([...actions, [action, { action }]]));
    return;
  }
  yield withActions('be listed no longer', new Map([...actions].filter(([name]) => name !== action)));
  const changed = (entry: typeof known) => new Map([...actions, [action, entry]]);
  for (const [argument, list] of Object.entries(known.extensions ?? {})) {
    const ending = endings[argument];
    if (ending === undefined) continue;
    const others = list.filter((other) => other !== ending);
    const there = others.length < list.length;
    const extensions = { ...known.extensions, [argument]: there ? others : [...list, ending] };
    yield withActions(`${there ? 'no longer ' : ''}allow the ending ${ending}`, changed({ ...known, extensions }));
  }
  const { lane, ...bare } = known;
  if (lane !== undefined) yield withActions("work in the agent's own lane", changed(bare));
  for (const other of policy.roles.get(role_id)?.privileges.lanes ?? [])
    if (other !== lane) yield withActions(`work in lane ${other}`, changed({ ...bare, lane: other }));
}

function* approvalEdits(policy: Policy, action: string): Generator<PolicyEdit> {
  const { approvals, roles } = policy;
  const others = approvals.filter((rule) => rule.for !== action);
  if (others.length < approvals.length) {
    yield { text: `${action} would have to need no approval`, policy: { ...policy, approvals: others } };
    return;
  }
  const person = [...roles.values()].find((role) => role.class === 'human');
  if (person === undefined) return;
  const rule = { for: action, approver_roles: [person.role_id], quorum: 1, expires_minutes: 60 };
  const text = `${action} would have to need the approval of a person (${person.role_id}, say)`;
  yield { text, policy: { ...policy, approvals: [...approvals, rule] } };
}

/** Without a condition, or with one that no longer asks or asks fewer people. */
function* conditionEdits(policy: Policy): Generator<PolicyEdit> {
  const { conditions } = policy;
  for (const { id, obligation, line } of conditions?.all ?? []) {
    const named = `condition ${id} (${OPTIONAL_FILES.conditions}:${line})`;
    const edit = (text: string, changed: Conditions): PolicyEdit => ({
      text: `${named} would have to ${text}`,
      policy: { ...policy, conditions: changed },
    });
    if (conditions === undefined) return;
    if (obligation !== null && obligation.quorum > 1) {
      const fewer = { ...obligation, quorum: obligation.quorum - 1 };
      yield edit(`ask ${fewer.quorum} of people`, conditions.withObligation(id, fewer, policy));
    }
    yield edit('be removed', conditions.without(id, policy));
  }
}

/** Without a decision point. Another one would have to be asked first. */
function* decisionPointEdits(policy: Policy): Generator<PolicyEdit> {
  for (const { name } of policy.decision_points ?? []) {
    const decision_points = policy.decision_points?.filter((other) => other.name !== name) ?? [];
    const text = `decision point ${name} would have to be removed`;
    yield { text, policy: { ...policy, decision_points } };
  }
}

function* knobEdits(policy: Policy): Generator<PolicyEdit> {
  const { knobs, sandbox } = policy;
  for (const [knob, values] of Object.entries(KNOBS)) {
    for (const value of values) {
      if (knobs[knob as keyof typeof KNOBS] === value) continue;
      yield { text: `${knob} would have to be ${value}`, policy: { ...policy, knobs: { ...knobs, [knob]: value } } };
    }
  }
  const portable_names = !sandbox.portable_names;
  const text = `portable_names would have to be ${String(portable_names)}`;
  yield { text, policy: { ...policy, sandbox: { ...sandbox, portable_names } } };
}

const KNOBS = {
  duplicate_proposal_ids: ['reject', 'replay'],
  dotdot: ['reject', 'defer'],
  extensions_stage: ['authorize', 'validate'],
} as const;

const HEADER = { version: 'v1', contract_version: 'v1', last_updated: '2026-01-01' } as const;

/** Whether `policy check` would find no inconsistency. */
export function isValidPolicy(policy: Policy): boolean {
  const { lanes, roles, actions, limits, sandbox, exposure, budgets, approvals, retries, knobs } = policy;
  const catalogue: Catalogue = policy.catalogue;
  const parts = {
    lanes: { ...HEADER, lanes: [...lanes.values()] },
    roles: { ...HEADER, roles: [...roles.values()] },
    actions: {
      ...HEADER,
      actions: [...actions.values()],
      limits,
      sandbox,
      response: { exposure },
      budgets,
      approvals: [...approvals],
      retries,
      knobs,
    },
  };
  return findInconsistencies(parts, catalogue).length === 0;
}

// Limits: for each, the nearest value that changes a decision.

/** One numeric limit of a policy, with its current value and the range of valid values. */
export interface AdjustableLimit {
  readonly name: string;
  /** Null means unlimited. */
  readonly now: number | null;
  readonly least: number;
  readonly most: number;
  readonly set: (value: number) => Policy;
}

/** Yields the nearest higher and lower value for which `flips` holds. It must then also hold for larger changes. */
export function* limitEdits(
  { name, now, least, most, set }: AdjustableLimit,
  flips: (policy: Policy) => boolean,
): Generator<PolicyEdit> {
  const isFlipped = (value: number): boolean => {
    const changed = set(value);
    return isValidPolicy(changed) && flips(changed);
  };
  const raised = now === null ? null : findNearest(now, most, isFlipped);
  if (raised !== null && now !== null)
    yield { text: `${name} would have to be raised from ${now} to ${raised}`, policy: set(raised) };
  const lowered = findNearest(now ?? most, least, isFlipped);
  if (lowered !== null)
    yield {
      text: `${name} would have to be lowered ${now === null ? '' : `from ${now} `}to ${lowered}`,
      policy: set(lowered),
    };
}

/** Bisects for the value nearest to `from`, towards `end`, for which `isFlipped` holds; null if it fails at `end`. */
function findNearest(from: number, end: number, isFlipped: (value: number) => boolean): number | null {
  if (from === end || !isFlipped(end)) return null;
  let [failing, passing] = [from, end];
  while (Math.abs(passing - failing) > 1) {
    const middle = Math.floor(failing / 2 + passing / 2);
    if (middle === failing || middle === passing) break;
    if (isFlipped(middle)) passing = middle;
    else failing = middle;
  }
  return passing;
}

const LARGEST = {
  payload_bytes_max: 16_777_216,
  payload_depth_max: 64,
  path_bytes_max: 1_024,
  content_bytes_max: 16_777_216,
  steps_per_run_max: 10_000_000,
} as const;
const LARGEST_SANDBOX = { bytes_max: 1e12, files_max: 10_000_000, depth_max: 64 } as const;

export function* adjustableLimitsOf(policy: Policy): Generator<AdjustableLimit> {
  const { limits, sandbox, budgets } = policy;
  for (const name of Object.keys(LARGEST) as (keyof typeof LARGEST)[]) {
    const set = (value: number): Policy => ({ ...policy, limits: { ...limits, [name]: value } });
    yield { name, now: limits[name], least: 1, most: LARGEST[name], set };
  }
  for (const name of Object.keys(LARGEST_SANDBOX) as (keyof typeof LARGEST_SANDBOX)[]) {
    const set = (value: number): Policy => ({ ...policy, sandbox: { ...sandbox, [name]: value } });
    yield { name: `sandbox.${name}`, now: sandbox[name], least: 1, most: LARGEST_SANDBOX[name], set };
  }
  for (const kind of BUDGET_KINDS) {
    const set = (value: number): Policy => ({ ...policy, budgets: { ...budgets, [kind]: value } });
    yield { name: `budgets.${kind}`, now: budgets[kind] ?? null, least: 0, most: AMOUNT_MAX, set };
  }
}
