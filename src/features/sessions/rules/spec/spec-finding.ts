// The closed registry of rules for a parsed spec.

import type { SchemaRule } from '../../../../core/contract/validators.js';

/** A session cannot be started from a spec with an error; a warning does not prevent it. */
export type SpecSeverity = 'error' | 'warning';

export const SPEC_RULES = {
  'version.mismatch': 'error',
  'schema.unknown_key': 'error',
  'schema.missing_key': 'error',
  'schema.type': 'error',
  'schema.value': 'error',
  'spec.too_many_tasks': 'error',
  'text.malformed': 'error',
  'phase.duplicate_id': 'error',
  'task.duplicate_id': 'error',
  'task.no_command': 'error',
  'task.unknown_dependency': 'error',
  'task.later_dependency': 'error',
  'task.waits_for_verification': 'error',
  'task.cycle': 'error',
  'command.empty': 'error',
  'command.nul_byte': 'error',
  'folder.outside_sandbox': 'error',
  'gate.no_command': 'error',
  'gate.command_unused': 'error',
  'lane.unknown': 'error',
  'phase.unchecked': 'warning',
} as const satisfies Record<SchemaRule, SpecSeverity> & Record<string, SpecSeverity>;
export type SpecRule = keyof typeof SPEC_RULES;

/** One problem of a spec. The message is one line of printable ASCII, whatever the spec contains. */
export interface SpecFinding {
  readonly severity: SpecSeverity;
  readonly rule: SpecRule;
  /** JSON pointer of the problem; empty for the whole spec. */
  readonly path: string;
  readonly message: string;
}

/** Maximum number of errors, and of warnings, that are reported. */
export const SPEC_FINDINGS_MAX = 200;

/** Collects findings up to the limit. */
export class SpecFindings {
  readonly #errors: SpecFinding[] = [];
  readonly #warnings: SpecFinding[] = [];

  add(rule: SpecRule, path: string, message: string): void {
    const severity = SPEC_RULES[rule];
    const findings = severity === 'error' ? this.#errors : this.#warnings;
    if (findings.length < SPEC_FINDINGS_MAX) findings.push({ severity, rule, path, message });
  }

  get hasErrors(): boolean {
    return this.#errors.length > 0;
  }
  /** Whether so many errors are collected that further ones would be dropped. */
  isFull(): boolean {
    return this.#errors.length >= SPEC_FINDINGS_MAX;
  }
  /** Errors first. */
  list(): readonly SpecFinding[] {
    return [...this.#errors, ...this.#warnings];
  }
}
