import type { Lane } from '../contract/lanes.js';
import type { RunContext } from '../contract/run-context.js';
import type { RuleId } from './verdict.js';

/** An audit event holds rule ids of 120 characters, and a denial must always be writable. */
const FIELD_CHARS_MAX = 100;

/**
 * S4-34: every scope field that the lane requires is present, a string, and not blank. `case_id` and `run_id` are the
 * run's own; a scope that names others is refused rather than overruled, because somebody meant something by it.
 * @returns the rule that is broken first, or null
 */
export function brokenScopeRule(run: RunContext, lane: Lane): RuleId | null {
  for (const field of lane.scope.requires) {
    const given: unknown = Object.hasOwn(run.scope, field) ? run.scope[field] : undefined;
    const own = field === 'case_id' ? run.case_id : field === 'run_id' ? run.run_id : given;
    const name = field.slice(0, FIELD_CHARS_MAX);
    if (typeof own !== 'string' || own.trim() === '') return `scope.missing.${name}`;
    if (given !== undefined && given !== own) return `scope.mismatch.${name}`;
  }
  return null;
}
