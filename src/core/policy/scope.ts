import { TAXONOMY_FIELDS, type TaxonomyField } from '../contract/shapes.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { RuleId } from './verdict.js';

/** A rule id has at most 120 characters in an audit event, and the ledger must be able to record every denial. */
const FIELD_CHARS_MAX = 100;

/**
 * S4-34: checks that every scope field that the lane requires is present, a string, and not blank. For `case_id`,
 * `run_id` and pinned taxonomy versions the run's own value counts (S4-30). A scope with another value is denied, not
 * overridden, because its author expects an effect of it.
 * @returns the first broken rule, or null
 */
export function findBrokenScopeRule(run: RunContext, lane: Lane): RuleId | null {
  for (const field of lane.scope.requires) {
    const given: unknown = Object.hasOwn(run.scope, field) ? run.scope[field] : undefined;
    const own = fieldOf(run, field, given);
    const name = field.slice(0, FIELD_CHARS_MAX);
    if (typeof own !== 'string' || own.trim() === '') return `scope.missing.${name}`;
    if (given !== undefined && given !== own) return `scope.mismatch.${name}`;
  }
  return null;
}

/** Whether the lane requires that its runs have a case. */
export const isCaseRequired = (lane: Lane | undefined): boolean => lane?.scope.requires.includes('case_id') === true;

/** The value of the field: the run's own if it has one, otherwise the given one. */
function fieldOf({ run_id, case_id, taxonomy_versions }: RunContext, field: string, given: unknown): unknown {
  if (field === 'case_id') return case_id;
  if (field === 'run_id') return run_id;
  const taxonomy = Object.hasOwn(TAXONOMY_FIELDS, field) ? TAXONOMY_FIELDS[field as TaxonomyField] : undefined;
  return (taxonomy === undefined ? undefined : taxonomy_versions?.[taxonomy]) ?? given;
}
