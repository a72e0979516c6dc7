// Lint rules for lanes: what they permit, to which roles, and what they lack in prohibitions or required fields.

import { quoteForMessage } from '../../core/contract/finding-text.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import type { LintSeverity } from '../../home/policy/policy-linter.js';
import type { LintFinding, LintRule } from './lint-rules.js';
import { laneKindOf, PROMOTION_PROHIBITS, type LaneKind } from './lane-kind.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';

/** A lane with the derived values that the rules use. */
interface LintedLane {
  readonly lane: Lane;
  readonly kind: LaneKind;
  readonly at: string;
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
  { lane, at }: LintedLane,
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
