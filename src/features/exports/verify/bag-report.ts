// The report of a bag verification, and the registry of its findings.

import { FindingList, type BagFinding, type BagRule, type BagSeverity } from '../bagit/bag-finding.js';
import type { BagReport } from '../bagit/verify-bag.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { PROOF } from '../bag-format.js';

export const PROOF_PATH = `data/${PROOF}`;

/** Who signed the bag. */
export interface BagAuthentication {
  /** `authenticated`: the caller's key has signed the bag, and the log of that key contains everything in it. */
  readonly verdict: 'authenticated' | 'unauthenticated';
  /** The key in the bag as `name+hash`; null if it has none. Attacker-controlled if unauthenticated. */
  readonly key: string | null;
  /** Why it is not authenticated; null if it is. */
  readonly why: string | null;
}

/** Limits of log entries that are read. */
export type LogLimits = { readonly [Name in 'entries_max' | 'untrusted_entries_max']: number };

/** What a bag declares about itself. Attacker-controlled if the report is not valid. */
export interface ExportBagFacts {
  readonly bundle_id: string;
  readonly bundle_kind: ExportBundle['bundle_kind'];
  readonly case_id: string | null;
  readonly created_at_utc: string;
  readonly manifest_hash_sha256: string | null;
  /** Files below `artifacts/`. */
  readonly artifacts: number;
  readonly audit_events: number;
  readonly runs: number;
}

export interface ExportBagReport extends Omit<BagReport, 'findings'> {
  /** Null for a bag that is not of Turnpike, and for one without a readable manifest. */
  readonly bundle: ExportBagFacts | null;
  /** Who signed the bag; null for a bag that is not of Turnpike. A bag can be valid and unauthenticated. */
  readonly authentication: BagAuthentication | null;
  readonly findings: readonly ExportBagFinding[];
}

// The closed registry of findings in a bag that is a valid BagIt bag.

export const EXPORT_BAG_RULES = {
  'bundle.limit': 'error',
  'bundle.info_differs': 'error',
  'bundle.file_missing': 'error',
  'bundle.file_unexpected': 'error',
  'bundle.file_changed': 'error',
  'bundle.json_malformed': 'error',
  'bundle.json_not_canonical': 'error',
  'bundle.schema': 'error',
  'bundle.status': 'error',
  'bundle.manifest_hash': 'error',
  'bundle.other_case': 'error',
  'bundle.artifact_missing': 'error',
  'bundle.artifact_unlisted': 'error',
  'bundle.artifact_differs': 'error',
  'bundle.artifact_order': 'error',
  'bundle.policy_differs': 'error',
  'bundle.policy_missing': 'error',
  'bundle.run_repeated': 'error',
  'bundle.runs_differ': 'error',
  'bundle.run_missing': 'error',
  'bundle.run_differs': 'error',
  'bundle.event_repeated': 'error',
  'bundle.events_differ': 'error',
  'bundle.event_run_unknown': 'error',
  'bundle.event_place': 'error',
  'bundle.event_differs': 'error',
  'bundle.proof_malformed': 'error',
  'bundle.proof_unsigned': 'error',
  'bundle.proof_differs': 'error',
  'bundle.entry_malformed': 'error',
  'bundle.entry_place': 'error',
  'bundle.not_logged': 'error',
  'bundle.request_differs': 'error',
  'bundle.reference_absent': 'warning',
} as const satisfies Record<string, BagSeverity>;
export type ExportBagRule = keyof typeof EXPORT_BAG_RULES;

/** `path` and parts of `message` come from the bag and are attacker-controlled: escape them for display. */
export type ExportBagFinding = Omit<BagFinding, 'rule_id'> & { readonly rule_id: BagRule | ExportBagRule };

const QUOTED_CHARACTERS_MAX = 160;

export class ExportBagFindings extends FindingList<ExportBagFinding> {
  add(rule_id: ExportBagRule, path: string | null, message: string): void {
    this.append({ severity: EXPORT_BAG_RULES[rule_id], rule_id, path, message });
  }
}

/** An excerpt of the bag, quoted for a message. */
export const quoteExcerpt = (text: string): string => JSON.stringify(text.slice(0, QUOTED_CHARACTERS_MAX));
