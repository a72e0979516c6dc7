// Finds careless rules in a valid policy; `checkPolicy` finds contradictions and runs first. The linter affects no run:
// a running tree, a recovery and a replay load the pinned policy, careless or not.

import { createCatalogue, NO_REGISTRATIONS, type Catalogue } from '../../core/contract/policy/catalogue.js';
import type { ActionsPolicy } from '../../core/contract/policy/actions-policy.js';
import type { LanesPolicy } from '../../core/contract/policy/lanes.js';
import { valuesOf, type ForPolicyFiles } from '../../core/contract/policy/pins.js';
import type { RolesPolicy } from '../../core/contract/policy/roles.js';
import { LINT_RULES, type LintFinding } from './lint-rules.js';
import type { LintMessage, PolicyLinter } from '../../home/policy/policy-linter.js';
import { checkPolicy } from '../../core/policy/files/check-policy.js';
import { readPolicyYaml, type NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import { lintActions } from './lint-actions.js';
import { lintCalls, lintLanes, lintNames } from './lint-lanes.js';
import { lintConditions } from './lint-conditions.js';
import { lintIdentities } from './lint-identities.js';
import { lintRoles } from './lint-roles.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';

/** One part of the linter, with the rules for one subject. */
type Linter = (parts: PolicyParts, catalogue: Catalogue) => Iterable<LintFinding>;
const LINTERS: readonly Linter[] = [lintLanes, lintCalls, lintRoles, lintActions, lintNames];

/**
 * Reports every careless place of a policy, in the order of files and lines.
 * @returns nothing for a policy with findings of `checkPolicy`, which must be corrected first
 */
export function lintPolicy(
  files: ForPolicyFiles<NamedPolicyFile>,
  catalogue: Catalogue = createCatalogue(NO_REGISTRATIONS),
): readonly LintMessage[] {
  const { policy } = checkPolicy(files, catalogue);
  if (policy === null) return [];
  const documents = {
    lanes: readPolicyYaml(files.lanes.bytes).document,
    roles: readPolicyYaml(files.roles.bytes).document,
    actions: readPolicyYaml(files.actions.bytes).document,
  };
  const parts = {
    lanes: documents.lanes?.data as unknown as LanesPolicy,
    roles: documents.roles?.data as unknown as RolesPolicy,
    actions: documents.actions?.data as unknown as ActionsPolicy,
  };
  const messages: LintMessage[] = LINTERS.flatMap((linter) => [...linter(parts, catalogue)]).map((finding) => ({
    file: files[finding.name].path,
    line: documents[finding.name]?.lineOf(finding.pointer) ?? 1,
    rule: finding.rule,
    severity: finding.severity,
    message: finding.message,
    remedy: LINT_RULES[finding.rule],
  }));
  if (files.conditions !== undefined) {
    messages.push(...lintConditions(files.conditions.path, policy, parts.lanes.last_updated));
  }
  const order = valuesOf(files).map(({ path }) => path);
  return messages.sort((a, b) => order.indexOf(a.file) - order.indexOf(b.file) || a.line - b.line);
}

export const POLICY_LINTER: PolicyLinter = { lintPolicy, lintIdentities };
