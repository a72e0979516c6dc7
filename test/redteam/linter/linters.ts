// The attacked linter of policies, and linters with a fault, which the campaign must find.

import type { LintMessage } from '../../../src/home/policy/policy-linter.js';
import { LINT_RULE_IDS } from '../../../src/features/policy-lint/lint-rules.js';
import { lint, type Texts } from '../../features/policy-lint/edited-policy.js';

export interface Linter {
  readonly name: string;
  /** How it changes the findings of the real one. */
  readonly change: (cautions: readonly LintMessage[], texts: Texts) => readonly LintMessage[];
}

export const REAL: Linter = { name: 'as it is', change: (cautions) => cautions };

export const cautionsOf = (texts: Texts): readonly LintMessage[] => lint(texts);

const ALARM: LintMessage = {
  file: 'lanes.yaml',
  line: 1,
  rule: 'lane.audit_not_required',
  severity: 'error',
  message: 'false',
  remedy: 'none',
};

/** The rules for identities.yaml and conditions.cedar have tests of their own: these policies have no such files. */
const RULE_IDS = LINT_RULE_IDS.filter((rule) => !/^(?:identity|condition)\./u.test(rule));

/** One without each of the rules, and others. */
export const PLANTED: readonly Linter[] = [
  ...RULE_IDS.map((off) => ({
    name: `without ${off}`,
    change: (cautions: readonly LintMessage[]) => cautions.filter(({ rule }) => rule !== off),
  })),
  { name: 'the first caution alone', change: (cautions) => cautions.slice(0, 1) },
  { name: 'the line after', change: (cautions) => cautions.map((one) => ({ ...one, line: one.line + 1 })) },
  { name: 'warnings alone', change: (cautions) => cautions.map((one) => ({ ...one, severity: 'warning' })) },
  { name: 'no remedies', change: (cautions) => cautions.map((one) => ({ ...one, remedy: '' })) },
  {
    name: 'lanes by the names of the shipped policy',
    change: (cautions, { lanes }) => (lanes.includes('lane_id: EXPORT_CASE_DATA') ? cautions : []),
  },
  { name: 'the alarm for every policy', change: (cautions) => [...cautions, ALARM] },
];
