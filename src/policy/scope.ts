import { TAXONOMY_FIELDS, type TaxonomyField } from '../contract/shapes.js';
import type { Lane } from '../contract/policy/lanes.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { RuleId } from './verdict.js';

/** An audit event holds rule ids of 120 characters, and a denial must always be writable. */
const FIELD_CHARS_MAX = 100;

/**
 * S4-34: every scope field that the lane requires is present, a string, and not blank. `case_id` and `run_id` are the
 * run's own, and so are the versions of taxonomies that it is pinned to (S4-30); a scope that names others is refused
 * rather than overruled, because somebody meant something by it.
 * @returns the rule that is broken first, or null
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

/** The value that counts: the run's own where it has one. */
function fieldOf({ run_id, case_id, taxonomy_versions }: RunContext, field: string, given: unknown): unknown {
  if (field === 'case_id') return case_id;
  if (field === 'run_id') return run_id;
  const taxonomy = Object.hasOwn(TAXONOMY_FIELDS, field) ? TAXONOMY_FIELDS[field as TaxonomyField] : undefined;
  return (taxonomy === undefined ? undefined : taxonomy_versions?.[taxonomy]) ?? given;
}
