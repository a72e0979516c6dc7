// Core does not lint: a careless policy is valid. These are the terms in which a linter reports what it finds.

import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { ForPolicyFiles } from '../../core/contract/policy/pins.js';
import type { Policy } from '../../core/policy/policy.js';
import type { NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';

/** An error must be corrected or accepted before a policy is pinned; a warning is for review. */
export type LintSeverity = 'error' | 'warning';

/** A careless place of a policy with its line, for people. */
export interface LintMessage {
  readonly file: string;
  /** Line number, from 1. */
  readonly line: number;
  readonly rule: string;
  readonly severity: LintSeverity;
  readonly message: string;
  /** How to correct it. */
  readonly remedy: string;
}

export interface PolicyLinter {
  /** Reports nothing for a policy with findings of `checkPolicy`, which must be corrected first. */
  lintPolicy(files: ForPolicyFiles<NamedPolicyFile>, catalogue: Catalogue): readonly LintMessage[];
  /** @param policy the policy next to identities.yaml; null if it is not valid */
  lintIdentities(file: NamedPolicyFile, policy: Policy | null): readonly LintMessage[];
}
