// Careless lanes: what they let through, to whom, and what they forget to prohibit or to require.

import { inQuotes } from '../contract/finding-text.js';
import type { Catalogue } from '../contract/catalogue.js';
import type { Lane } from '../contract/lanes.js';
import type { Carelessness, LintRule, Severity } from './caution.js';
import { kindOf, PROMOTION_PROHIBITS, type LaneKind } from './lane-kind.js';
import type { PolicyParts } from './policy-consistency.js';

/** A lane with all that is asked of it. */
interface Judged {
  readonly lane: Lane;
  readonly kind: LaneKind;
  readonly at: string;
}

export function* lintLanes(parts: PolicyParts, catalogue: Catalogue): Generator<Carelessness> {
  const classes = new Map(parts.roles.roles.map((role) => [role.role_id, role.class]));
  const approved = new Set((parts.actions.approvals ?? []).map((rule) => rule.for));
  for (const [index, lane] of parts.lanes.lanes.entries()) {
    const judged = { lane, kind: kindOf(lane, catalogue), at: `/lanes/${index}` };
    yield* lintCallers(judged, classes, approved);
    yield* lintApproval(judged, approved);
    yield* lintProhibitions(judged);
    yield* lintScope(judged);
    yield* lintKeys(judged);
  }
}

const found = (
  { lane, at }: Judged,
  rule: LintRule,
  [pointer, what, severity = 'error']: readonly [pointer: string, what: string, severity?: Severity],
): Carelessness => ({
  name: 'lanes',
  pointer: `${at}${pointer}`,
  rule,
  severity,
  message: `lane ${inQuotes(lane.lane_id)} ${what}`,
});

function* lintCallers(
  judged: Judged,
  classes: ReadonlyMap<string, string>,
  approved: ReadonlySet<string>,
): Generator<Carelessness> {
  const { lane, kind } = judged;
  for (const [entry, role_id] of lane.allowed_callers.roles.entries()) {
    const at = `/allowed_callers/roles/${entry}`;
    const agent = classes.get(role_id) === 'agent';
    const role = `role ${inQuotes(role_id)}`;
    if (agent && kind.exports) {
      const severity = approved.has('export') ? 'warning' : 'error';
      yield found(judged, 'export.by_agent', [at, `lets ${role}, an agent, start exports`, severity]);
    }
    if (agent && kind.promotes) {
      yield found(judged, 'promotion.by_agent', [at, `lets ${role}, an agent, start promotions`]);
    }
    if (kind.checks && classes.get(role_id) !== 'system') {
      yield found(judged, 'lane.session_checks', [at, `lets ${role} verify and review the work of sessions`]);
    }
  }
}

function* lintApproval(judged: Judged, approved: ReadonlySet<string>): Generator<Carelessness> {
  const { kind, lane } = judged;
  if (lane.allowed_callers.roles.length === 0) return;
  if (kind.exports && !approved.has('export')) {
    yield found(judged, 'export.no_approval', ['/lane_id', 'exports data without an approval']);
  }
  if (kind.promotes && !approved.has('promotion')) {
    const what = 'writes shared knowledge without an approval of promotions';
    yield found(judged, 'promotion.no_approval', ['/lane_id', what]);
  }
  if (kind.checks && (kind.files || kind.exports)) {
    const what = 'mixes verifications and reviews with other tools';
    yield found(judged, 'lane.session_checks', ['/allowed_actions/tools', what]);
  }
}

function* lintProhibitions(judged: Judged): Generator<Carelessness> {
  const { kind, lane } = judged;
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
      yield found(judged, rule, ['/scope/prohibits', `does not prohibit ${name}`]);
    }
  }
}

/** Scope fields that identify the runs of a lane by what it lists (S4 §5, C46). */
const FIELDS_OF_NAMES: Readonly<Record<string, string>> = {
  'dictation.start': 'client_session_id',
  'dictation.stop': 'client_session_id',
  'transcription.run': 'client_session_id',
  'transcription.status': 'client_session_id',
  'interview.prompt.next': 'client_session_id',
  coa_map: 'coa_version',
};

function* lintScope(judged: Judged): Generator<Carelessness> {
  const { kind, lane } = judged;
  const { tools = [], writes = [] } = lane.allowed_actions;
  const named = [...tools, ...writes.map(({ table }) => table)].flatMap((name) => FIELDS_OF_NAMES[name] ?? []);
  const needed = new Set([
    'run_id',
    ...(kind.promotes ? ['promotion_ticket_id'] : ['case_id']),
    ...(kind.exports ? ['export_reason'] : []),
    ...named,
  ]);
  for (const field of needed) {
    if (lane.scope.requires.includes(field)) continue;
    yield found(judged, 'lane.scope_missing', ['/scope/requires', `does not require ${field}`]);
  }
}

function* lintKeys(judged: Judged): Generator<Carelessness> {
  const { lane, kind } = judged;
  if (!lane.audit.required) {
    yield found(judged, 'lane.audit_not_required', ['/audit/required', 'does not require an audit']);
  }
  if (lane.cross_case_reads === true && (kind.writes || kind.calls)) {
    yield found(judged, 'lane.cross_case_reads', ['/cross_case_reads', 'reads other cases, and writes or calls tools']);
  }
  if (lane.allow_embedded_text === true) {
    yield found(judged, 'lane.embedded_text', ['/allow_embedded_text', 'lets records hold the text of a case']);
  }
  if (lane.inherits_case_id === false && lane.scope.requires.includes('case_id')) {
    const what = 'requires case_id and takes it from its runs: all of them are denied';
    yield found(judged, 'lane.drops_case', ['/inherits_case_id', what]);
  }
  if (lane.partial_outputs === true) {
    const what = 'leaves behind what failed runs have made';
    yield found(judged, 'lane.partial_outputs', ['/partial_outputs', what, 'warning']);
  }
}
