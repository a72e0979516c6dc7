// Lint rules for lanes: what they permit, to which roles, what they lack in prohibitions or required fields, their call
// rules, and the names in their lists.

import { type Catalogue, ACTIONS } from '../../core/contract/policy/catalogue.js';
import { NATIVE_TOOL_NAMES, partKindOf } from '../../core/contract/policy/native-tool-names.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import type { LintSeverity } from '../../home/policy/policy-linter.js';
import type { LintFinding, LintRule } from './lint-rules.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';
import type { CallRule } from '../../core/contract/policy/call-rules.js';
import { isNear } from '../../core/contract/policy/near-names.js';
import { OPERATOR_TOOLS } from '../../core/contract/run/operator-act.js';

/** What a lane is for, by what it lists: the operator chooses its name, which shows nothing. */
export interface LaneKind {
  /** Its runs can create a bundle for export. */
  readonly exports: boolean;
  /** It is meant to write data that all cases share. */
  readonly promotes: boolean;
  /** It verifies or reviews the work of a session. */
  readonly checks: boolean;
  /** It uses files of a sandbox. */
  readonly files: boolean;
  /** It calls a tool that sends its input out of the platform. */
  readonly sends: boolean;
  readonly calls: boolean;
  readonly writes: boolean;
}

const PROMOTION_FIELD = 'promotion_ticket_id';
/** Prohibitions that only promotions need. */
export const PROMOTION_PROHIBITS = ['raw_case_text', 'client_identity', 'privileged_notes'] as const;

export function laneKindOf({ allowed_actions, scope }: Lane, catalogue: Catalogue): LaneKind {
  const { tools = [], writes = [] } = allowed_actions;
  const hasToolPrefix = (prefix: string): boolean => tools.some((tool) => tool.startsWith(prefix));
  const shared = writes.some(({ table }) => table.startsWith('shared_') || catalogue.target(table)?.plane === 'shared');
  const isMeantForPromotion =
    scope.requires.includes(PROMOTION_FIELD) || PROMOTION_PROHIBITS.some((name) => scope.prohibits.includes(name));
  // A work lane that lists a shared table besides tools is denied that write, so it is not a promotion lane.
  const isWorkLane = tools.length > 0 || writes.some(({ table }) => catalogue.target(table)?.plane === 'case');
  return {
    exports: hasToolPrefix('export_bundle.'),
    promotes: isMeantForPromotion || (shared && !isWorkLane),
    checks: hasToolPrefix('session.'),
    files: hasToolPrefix('sandbox.'),
    sends: tools.some((tool) => catalogue.tool(tool)?.outside === true || isOutsideNatively(tool)),
    calls: tools.length > 0,
    writes: writes.length > 0,
  };
}

/** The tools of coding agents reach beyond the machine, except those that only touch files. */
const isOutsideNatively = (tool: string): boolean => NATIVE_TOOL_NAMES.includes(tool) && partKindOf(tool) !== 'path';

/** A lane, and the JSON pointer to it. */
interface PlacedLane {
  readonly lane: Lane;
  readonly at: string;
}

/** A lane with the derived values that the rules use. */
interface LintedLane extends PlacedLane {
  readonly kind: LaneKind;
}

export function* lintLanes(parts: PolicyParts, catalogue: Catalogue): Generator<LintFinding> {
  const classes = new Map(parts.roles.roles.map((role) => [role.role_id, role.class]));
  const approved = new Set(parts.actions.approvals?.map((rule) => rule.for));
  for (const [index, lane] of parts.lanes.lanes.entries()) {
    const linted = { lane, kind: laneKindOf(lane, catalogue), at: `/lanes/${index}` };
    yield* lintCallers(linted, classes, approved);
    yield* lintApproval(linted, approved);
    yield* lintProhibitions(linted);
    yield* lintScope(linted);
    yield* lintKeys(linted);
  }
}

const laneFinding = (
  { lane, at }: PlacedLane,
  rule: LintRule,
  [pointer, problem, severity = 'error']: readonly [pointer: string, what: string, severity?: LintSeverity],
): LintFinding => ({
  name: 'lanes',
  pointer: `${at}${pointer}`,
  rule,
  severity,
  message: `lane ${quoteForMessage(lane.lane_id)} ${problem}`,
});

function* lintCallers(
  linted: LintedLane,
  classes: ReadonlyMap<string, string>,
  approved: ReadonlySet<string>,
): Generator<LintFinding> {
  const { lane, kind } = linted;
  for (const [entry, role_id] of lane.allowed_callers.roles.entries()) {
    const at = `/allowed_callers/roles/${entry}`;
    const agent = classes.get(role_id) === 'agent';
    const role = `role ${quoteForMessage(role_id)}`;
    if (agent && kind.exports) {
      const severity = approved.has('export') ? 'warning' : 'error';
      yield laneFinding(linted, 'export.by_agent', [at, `lets ${role}, an agent, start exports`, severity]);
    }
    if (agent && kind.promotes) {
      yield laneFinding(linted, 'promotion.by_agent', [at, `lets ${role}, an agent, start promotions`]);
    }
    if (kind.checks && classes.get(role_id) !== 'system') {
      yield laneFinding(linted, 'lane.session_checks', [at, `lets ${role} verify and review the work of sessions`]);
    }
  }
}

function* lintApproval(linted: LintedLane, approved: ReadonlySet<string>): Generator<LintFinding> {
  const { kind, lane } = linted;
  if (lane.allowed_callers.roles.length === 0) return;
  if (kind.exports && !approved.has('export')) {
    yield laneFinding(linted, 'export.no_approval', ['/lane_id', 'exports data without an approval']);
  }
  if (kind.promotes && !approved.has('promotion')) {
    const problem = 'writes shared knowledge without an approval of promotions';
    yield laneFinding(linted, 'promotion.no_approval', ['/lane_id', problem]);
  }
  if (kind.checks && (kind.files || kind.exports)) {
    const problem = 'mixes verifications and reviews with other tools';
    yield laneFinding(linted, 'lane.session_checks', ['/allowed_actions/tools', problem]);
  }
}

function* lintProhibitions(linted: LintedLane): Generator<LintFinding> {
  const { kind, lane } = linted;
  const missing = (names: readonly string[]) => names.filter((name) => !lane.scope.prohibits.includes(name));
  const needed: readonly (readonly [LintRule, readonly string[]])[] = [
    ['promotion.prohibition_missing', kind.promotes ? PROMOTION_PROHIBITS : []],
    ['export.prohibition_missing', kind.exports ? ['raw_external_destination', 'unaudited_delivery'] : []],
    ['lane.prohibition_missing', kind.calls && !kind.exports ? ['cross_case_lookup'] : []],
    ['lane.prohibition_missing', kind.calls && !kind.exports && !kind.sends ? ['external_export'] : []],
    ['lane.prohibition_missing', kind.writes && !kind.promotes && !kind.exports ? ['shared_knowledge_write'] : []],
  ];
  for (const [rule, names] of needed) {
    for (const name of missing(names)) {
      yield laneFinding(linted, rule, ['/scope/prohibits', `does not prohibit ${name}`]);
    }
  }
}

/** Scope fields that identify the runs of a lane, by what the lane lists (S4 §5, C46). */
const SCOPE_FIELD_BY_NAME: Readonly<Record<string, string>> = {
  'dictation.start': 'client_session_id',
  'dictation.stop': 'client_session_id',
  'transcription.run': 'client_session_id',
  'transcription.status': 'client_session_id',
  'interview.prompt.next': 'client_session_id',
  coa_map: 'coa_version',
};

function* lintScope(linted: LintedLane): Generator<LintFinding> {
  const { kind, lane } = linted;
  const { tools = [], writes = [] } = lane.allowed_actions;
  const named = [...tools, ...writes.map(({ table }) => table)].flatMap((name) => SCOPE_FIELD_BY_NAME[name] ?? []);
  const needed = new Set([
    'run_id',
    ...(kind.promotes ? ['promotion_ticket_id'] : ['case_id']),
    ...(kind.exports ? ['export_reason'] : []),
    ...named,
  ]);
  for (const field of needed) {
    if (lane.scope.requires.includes(field)) continue;
    yield laneFinding(linted, 'lane.scope_missing', ['/scope/requires', `does not require ${field}`]);
  }
}

function* lintKeys(linted: LintedLane): Generator<LintFinding> {
  const { lane, kind } = linted;
  if (!lane.audit.required) {
    yield laneFinding(linted, 'lane.audit_not_required', ['/audit/required', 'does not require an audit']);
  }
  if (lane.cross_case_reads === true && (kind.writes || kind.calls)) {
    yield laneFinding(linted, 'lane.cross_case_reads', [
      '/cross_case_reads',
      'reads other cases, and writes or calls tools',
    ]);
  }
  if (lane.allow_embedded_text === true) {
    yield laneFinding(linted, 'lane.embedded_text', ['/allow_embedded_text', 'lets records hold the text of a case']);
  }
  if (lane.inherits_case_id === false && lane.scope.requires.includes('case_id')) {
    const problem = 'requires case_id and takes it from its runs: all of them are denied';
    yield laneFinding(linted, 'lane.drops_case', ['/inherits_case_id', problem]);
  }
  if (lane.partial_outputs === true) {
    const problem = 'leaves behind what failed runs have made';
    yield laneFinding(linted, 'lane.partial_outputs', ['/partial_outputs', problem, 'warning']);
  }
}

// Call rules (0061).

/** It runs any program, so a lane that lists it needs rules about commands. */
const SHELL = 'native.shell';

export function* lintCalls({ lanes: { lanes } }: PolicyParts): Generator<LintFinding> {
  for (const [index, lane] of lanes.entries()) {
    const linted = { lane, at: `/lanes/${index}` };
    const shell = lane.allowed_actions.tools?.indexOf(SHELL) ?? -1;
    if (shell >= 0 && lane.calls === undefined) {
      const problem = `lists ${SHELL}, and has no rules about its commands`;
      yield laneFinding(linted, 'call.unrestricted', [`/allowed_actions/tools/${shell}`, problem, 'warning']);
    }
    for (const [entry, rule] of (lane.calls ?? []).entries()) yield* lintCallRule(linted, rule, `/calls/${entry}`);
  }
}

function* lintCallRule(linted: PlacedLane, rule: CallRule, at: string): Generator<LintFinding> {
  const label = `has the call rule ${quoteForMessage(rule.id)}, which`;
  if (rule.decision === 'allow' && rule.tools.includes(SHELL) && conditionsOf(rule).length === 0) {
    yield laneFinding(linted, 'call.any_command', [at, `${label} allows all commands`, 'warning']);
  }
  if (rule.decision === 'allow' && rule.commands !== undefined && rule.options === undefined) {
    const problem = `${label} allows all options of its commands, also those that execute programs or write files`;
    yield laneFinding(linted, 'call.any_option', [at, problem, 'warning']);
  }
  if (rule.decision === 'deny' && rule.options !== undefined) {
    const problem = `${label} denies whatever its options are: only a rule that allows or asks has options`;
    yield laneFinding(linted, 'call.never_matches', [`${at}/options`, problem]);
  }
  if (!rule.tools.some((tool) => canMatch(rule, tool))) {
    yield laneFinding(linted, 'call.never_matches', [at, `${label} matches no part of any call`]);
  }
}

const CONDITIONS = { commands: 'command', options: 'command', paths: 'path', hosts: 'host', names: 'name' } as const;
type Condition = keyof typeof CONDITIONS;

const conditionsOf = (rule: CallRule): readonly Condition[] =>
  (Object.keys(CONDITIONS) as Condition[]).filter((name) => rule[name] !== undefined);

/** Whether some part of a call of the tool can have all conditions of the rule. */
function canMatch(rule: CallRule, tool: string): boolean {
  const kind = partKindOf(tool);
  return conditionsOf(rule).every(
    (name) => CONDITIONS[name] === kind || (name === 'paths' && kind === 'command' && rule.decision === 'deny'),
  );
}

// Unknown names. A listed tool or table that is not registered is never allowed; a name that is similar to a registered
// one is probably a typing mistake.

/** Tools of the platform, those of coding agents, and tools of the shipped lanes, which services register. */
const TOOLS: readonly string[] = [
  ...Object.values(ACTIONS)
    .map(({ tool }) => tool)
    .filter((tool) => tool !== null),
  ...NATIVE_TOOL_NAMES,
  ...['session.verify', 'session.review'],
  ...OPERATOR_TOOLS,
  ...['export_bundle.create', 'export_bundle.validate', 'export_bundle.signoff', 'export_bundle.download'],
  ...['dictation.start', 'dictation.stop', 'transcription.run', 'transcription.status', 'interview.prompt.next'],
];
const TABLES: readonly string[] = [
  ...['sandbox_files', 'export_bundles', 'audit_ledger', 'transcripts', 'interview_notes', 'entities'],
  ...['facts', 'evidence_map', 'coa_map', 'shared_playbooks', 'shared_heuristics'],
];

export function* lintNames({ lanes: { lanes } }: PolicyParts, catalogue: Catalogue): Generator<LintFinding> {
  const { tools: registered, targets } = catalogue.registrations;
  const tools = [
    ...TOOLS,
    ...registered.map(({ name }) => name),
    ...catalogue.actions.map(({ tool }) => tool).filter((tool) => tool !== null),
  ];
  const tables = [...TABLES, ...targets.map(({ name }) => name)];
  for (const [index, lane] of lanes.entries()) {
    const linted = { lane, at: `/lanes/${index}` };
    const { tools: listed = [], writes = [], reads = [] } = lane.allowed_actions;
    for (const [entry, tool] of listed.entries()) {
      if (tools.includes(tool)) continue;
      const near = tools.find((name) => isNear(name, tool));
      const at = `/allowed_actions/tools/${entry}`;
      const problem = `lists the tool ${quoteForMessage(tool)}, which is not registered`;
      yield near === undefined
        ? laneFinding(linted, 'tool.unknown', [at, problem, 'warning'])
        : laneFinding(linted, 'tool.misspelt', [at, `${problem}; there is ${quoteForMessage(near)}`]);
    }
    const named = [
      ...writes.map(({ table }, entry) => [table, `writes/${entry}`] as const),
      ...reads.map((table, entry) => [table, `reads/${entry}`] as const),
    ];
    for (const [table, place] of named) {
      const near = tables.includes(table) ? undefined : tables.find((name) => isNear(name, table));
      if (near === undefined) continue;
      const problem = `lists the table ${quoteForMessage(table)}, which is not registered; there is ${quoteForMessage(near)}`;
      yield laneFinding(linted, 'table.misspelt', [`/allowed_actions/${place}`, problem]);
    }
  }
}
