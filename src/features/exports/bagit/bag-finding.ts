// The closed registry of findings of a bag. docs/errors.md lists the same rules; a test compares them.

/** An error makes the bag invalid; a warning does not. */
export type BagSeverity = 'error' | 'warning';

export const BAG_RULES = {
  'tree.refused': 'error',
  'tree.unreadable': 'error',
  'tree.name_unfit': 'error',
  'tree.limit': 'error',
  'declaration.missing': 'error',
  'declaration.malformed': 'error',
  'declaration.version_unknown': 'error',
  'declaration.encoding_unknown': 'error',
  'declaration.loose_whitespace': 'warning',
  'text.encoding': 'error',
  'text.byte_order_mark': 'warning',
  'manifest.missing': 'error',
  'manifest.algorithm_unknown': 'error',
  'manifest.algorithm_weak': 'warning',
  'manifest.line_malformed': 'error',
  'manifest.line_blank': 'warning',
  'manifest.path_unfit': 'error',
  'manifest.path_misplaced': 'error',
  'manifest.path_relative': 'warning',
  'manifest.path_asterisk': 'warning',
  'manifest.path_percent': 'warning',
  'manifest.path_twin': 'warning',
  'manifest.repeated': 'error',
  'manifest.repeated_before_1_0': 'warning',
  'manifest.contradictory': 'error',
  'payload.directory_missing': 'error',
  'payload.file_missing': 'error',
  'payload.file_not_fetched': 'error',
  'payload.file_unlisted': 'error',
  'payload.digest_mismatch': 'error',
  'tag.file_missing': 'error',
  'tag.file_unlisted': 'warning',
  'tag.digest_mismatch': 'error',
  'tag.manifest_missing': 'warning',
  'tag.manifest_unlisted': 'error',
  'fetch.line_malformed': 'error',
  'fetch.path_unfit': 'error',
  'fetch.path_unlisted': 'error',
  'info.line_malformed': 'error',
  'info.oxum_malformed': 'error',
  'info.oxum_mismatch': 'error',
  'info.oxum_repeated': 'warning',
  'path.twin': 'warning',
  'path.not_portable': 'warning',
  'path.system_file': 'warning',
} as const satisfies Record<string, BagSeverity>;
export type BagRule = keyof typeof BAG_RULES;

/** `path` and parts of `message` come from the bag and are attacker-controlled: escape them for display. */
export interface BagFinding {
  readonly severity: BagSeverity;
  readonly rule_id: BagRule;
  readonly path: string | null;
  readonly message: string;
}

/** Collects findings up to a limit and counts the rest. */
export class FindingList<Finding extends { readonly severity: BagSeverity }> {
  readonly #max: number;
  readonly #findings = new Map<string | number, Finding>();
  #errors = 0;
  #dropped = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** @param key of several findings with one key, only the first counts. Default: each counts */
  protected append(finding: Finding, key: string | number = this.#findings.size): void {
    if (this.#findings.has(key)) return;
    if (finding.severity === 'error') this.#errors += 1;
    if (this.#findings.size >= this.#max) this.#dropped += 1;
    else this.#findings.set(key, finding);
  }

  get errors(): number {
    return this.#errors;
  }
  get dropped(): number {
    return this.#dropped;
  }
  list(): readonly Finding[] {
    return [...this.#findings.values()];
  }
}

export class BagFindings extends FindingList<BagFinding> {
  /** A rule counts once per path, however many manifests show the problem. */
  add(rule_id: BagRule, path: string | null, message: string): void {
    this.append({ severity: BAG_RULES[rule_id], rule_id, path, message }, `${rule_id}\0${path ?? ''}`);
  }
}
