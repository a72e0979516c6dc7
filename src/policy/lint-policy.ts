// Looks for carelessness in a policy that can be loaded. `checkPolicy` looks for contradictions, and comes first. The
// linter decides nothing: a running tree, a recovery and a replay load what was pinned, careless or not.

import { catalogueOf, NOTHING_REGISTERED, type Catalogue } from '../contract/catalogue.js';
import type { ActionsPolicy } from '../contract/actions-policy.js';
import type { LanesPolicy } from '../contract/lanes.js';
import type { PolicyFile } from '../contract/pins.js';
import type { RolesPolicy } from '../contract/roles.js';
import { LINT_RULES, type Carelessness, type Caution } from './caution.js';
import { checkPolicy, type NamedPolicyFile } from './check-policy.js';
import { lintActions } from './lint-actions.js';
import { lintLanes } from './lint-lanes.js';
import { lintNames } from './lint-names.js';
import { lintRoles } from './lint-roles.js';
import type { PolicyParts } from './policy-consistency.js';
import { readPolicyYaml } from './policy-yaml.js';

/** One part of the linter: finds every careless place of its kinds. */
type Lint = (parts: PolicyParts, catalogue: Catalogue) => Iterable<Carelessness>;
const LINTS: readonly Lint[] = [lintLanes, lintRoles, lintActions, lintNames];

/**
 * Everything careless in a policy, in the order of files and lines.
 * @returns nothing for a policy that `checkPolicy` has findings for: those come first
 */
export function lintPolicy(
  files: Readonly<Record<PolicyFile, NamedPolicyFile>>,
  catalogue: Catalogue = catalogueOf(NOTHING_REGISTERED),
): readonly Caution[] {
  if (checkPolicy(files, catalogue).policy === null) return [];
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
  const cautions = LINTS.flatMap((lint) => [...lint(parts, catalogue)]).map((found) => ({
    file: files[found.name].path,
    line: documents[found.name]?.lineOf(found.pointer) ?? 1,
    rule: found.rule,
    severity: found.severity,
    message: found.message,
    remedy: LINT_RULES[found.rule],
  }));
  const order = Object.values(files).map(({ path }) => path);
  return cautions.sort((a, b) => order.indexOf(a.file) - order.indexOf(b.file) || a.line - b.line);
}
