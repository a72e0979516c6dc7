// Parses and validates the bytes of a spec, for `turnpike session check`, the start of a session and a rebase.

import type { SessionSpec } from '../contract/session-spec.js';
import { checkSpec } from '../rules/spec/check-spec.js';
import type { SpecSeverity, SpecRule } from '../rules/spec/spec-finding.js';
import { parseSpec, type SpecParseRule } from './parse-spec.js';

/** A problem of a spec file. The message is one line of printable ASCII, whatever the file contains. */
export interface SpecFileFinding {
  /** From 1. */
  readonly line: number;
  readonly severity: SpecSeverity;
  readonly rule: SpecRule | SpecParseRule;
  /** JSON pointer of the place; empty for the whole spec, or if it could not be parsed. */
  readonly path: string;
  readonly message: string;
}

/** `spec` is set exactly if no finding is an error. */
export interface SpecFileCheck {
  /** Errors first, then by line. */
  readonly findings: readonly SpecFileFinding[];
  readonly spec: SessionSpec | null;
}

/**
 * Takes any bytes: every problem is a finding.
 * @param lanes those of the contract; null if the caller checks them elsewhere
 */
export function readSpec(bytes: Uint8Array, lanes: ReadonlySet<string> | null): SpecFileCheck {
  const reading = parseSpec(bytes);
  if (reading.value === null) {
    return { findings: reading.problems.map((problem) => ({ ...problem, severity: 'error', path: '' })), spec: null };
  }
  const { findings, spec } = checkSpec(reading.value, lanes);
  const lines = findings.length === 0 ? [] : reading.linesOf(findings.map(({ path }) => path));
  const located = findings.map((finding, index) => ({ line: lines[index] ?? 1, ...finding }));
  return { findings: located.toSorted((a, b) => rankOf(a) - rankOf(b) || a.line - b.line), spec };
}

const rankOf = ({ severity }: SpecFileFinding): number => (severity === 'error' ? 0 : 1);
