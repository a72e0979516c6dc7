// The checks of a decision as data. Live decisions, `policy simulate` and `policy explain` share each list, so all of
// them check in the same order.

/** A check as `policy explain` prints it. */
export interface CheckDescription {
  /** What is true once the check has passed. */
  readonly claim: string;
  /** The rules by which the check denies. A rule that ends with `*` stands for every rule id with this beginning. */
  readonly rules: readonly string[];
}

/** One check of a decision about a `Subject`. */
export interface OrderedCheck<Subject, Denial> extends CheckDescription {
  /** Returns the denial if the check does not hold, otherwise null. */
  readonly findDenial: (subject: Subject) => Denial | null;
}

/** Runs the checks in order. Returns the first denial, or null if every check holds. */
export function findFirstDenial<Subject, Denial>(
  checks: readonly OrderedCheck<Subject, Denial>[],
  subject: Subject,
): Denial | null {
  for (const { findDenial } of checks) {
    const denial = findDenial(subject);
    if (denial !== null) return denial;
  }
  return null;
}

/** The position of the check that denies by `rule_id`, or -1. A check that names the rule precedes one with `*`. */
export function indexOfCheck(checks: readonly CheckDescription[], rule_id: string): number {
  const exact = checks.findIndex(({ rules }) => rules.includes(rule_id));
  if (exact >= 0) return exact;
  return checks.findIndex(({ rules }) =>
    rules.some((rule) => rule.endsWith('*') && rule_id.startsWith(rule.slice(0, -1))),
  );
}
