// The closed registry of what can be wrong with a spec that could be read.

import type { SchemaRule } from '../../contract/validators.js';

/** An error keeps a spec from being worked through; a warning does not. */
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

/** Something wrong with a spec. The message is one line of printable ASCII, whatever the spec holds. */
export interface SpecFinding {
  readonly severity: SpecSeverity;
  readonly rule: SpecRule;
  /** JSON pointer of where it is; empty for the whole spec. */
  readonly path: string;
  readonly message: string;
}

/** Errors told at once, and warnings; a spec that has more is broken as a whole. */
export const SPEC_FINDINGS_MAX = 200;

/** Collects findings, as many as are of use. */
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
  /** Whether there are so many errors that no more will be told. */
  isFull(): boolean {
    return this.#errors.length >= SPEC_FINDINGS_MAX;
  }
  /** Errors first. */
  list(): readonly SpecFinding[] {
    return [...this.#errors, ...this.#warnings];
  }
}
