import { SCHEMA_RULES } from '../../contract/validators.js';
import { YAML_RULES } from './strict-yaml.js';

/** Rules for decision points in actions.yaml. */
export const DECISION_POINT_RULES = [
  'decision_point.duplicate_name',
  'decision_point.url',
  'decision_point.unknown_action',
] as const;

/** Rules for files that are valid by schema, but contradict themselves or one another (C55). */
export const CONSISTENCY_RULES = [
  'lane.duplicate_id',
  'lane.unknown_role',
  'role.duplicate_id',
  'role.unknown_lane',
  'pair.one_sided',
  'prohibition.unknown',
  'lane.exports_content',
  'call.duplicate_id',
  'call.tool_not_listed',
  'call.approval_missing',
  'action.duplicate',
  'action.unknown',
  'action.unknown_lane',
  'extensions.unknown_argument',
  'approval.unknown_subject',
  'approval.unknown_role',
  'approval.duplicate',
  ...DECISION_POINT_RULES,
  'limits.content_exceeds_payload',
  'limits.path_exceeds_payload',
] as const;

/** The same for conditions.cedar. */
export const CONDITION_RULES = [
  'condition.too_large',
  'condition.encoding',
  'condition.too_many',
  'condition.syntax',
  'condition.permit',
  'condition.id',
  'condition.duplicate_id',
  'condition.annotation',
  'condition.type',
  'condition.unreachable',
  'condition.unknown_role',
  'condition.no_approver',
] as const;

/** The same for counters.yaml. */
export const COUNTER_RULES = [
  'counter.duplicate_name',
  'counter.unknown_action',
  'counter.duplicate_action',
  'counter.argument',
  'counter.no_time_zone',
  'counter.unknown_time_zone',
  'counter.no_conditions',
] as const;

/** The same for identities.yaml. */
export const IDENTITY_RULES = [
  'identity.duplicate_issuer',
  'identity.duplicate_mapping',
  'identity.duplicate_token',
  'identity.unknown_role',
  'identity.cross_case_right',
  'identity.person_missing',
] as const;

/** Every rule for the three policy files, in the order of the checks. */
export const FINDING_RULES = [...YAML_RULES, 'version.mismatch', ...SCHEMA_RULES, ...CONSISTENCY_RULES] as const;
export type FindingRule =
  | (typeof FINDING_RULES)[number]
  | (typeof CONDITION_RULES)[number]
  | (typeof COUNTER_RULES)[number]
  | (typeof IDENTITY_RULES)[number];

/** One mistake in a policy file. The message is one line of printable ASCII, whatever the file contains. */
export interface PolicyFinding {
  /** The file name as the caller gave it. */
  readonly file: string;
  /** Line number, from 1. */
  readonly line: number;
  /** Column number, from 1; only conditions have one. */
  readonly column?: number;
  readonly rule: FindingRule;
  readonly message: string;
}
