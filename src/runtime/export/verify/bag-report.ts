// What the verification of a bag takes and returns.

import type { InfoElement } from '../../../bagit/bag-info.js';
import type { BagReport } from '../../../bagit/verify-bag.js';
import type { ExportBundle } from '../../../contract/evidence/export-bundle.js';
import type { NoteVerifier } from '../../../ledger/proof/signed-note.js';
import type { ExportBagFinding } from './bag-findings.js';
import { PROOF } from '../bag-file-names.js';
import type { ExportBagReading } from './read-bag-text.js';

export const PROOF_PATH = `data/${PROOF}`;

/** What is known of who vouches for a bag. */
export interface BagAuthentication {
  /** `authenticated`: the key that the caller has named has signed it, and all that it holds is in that key's log. */
  readonly verdict: 'authenticated' | 'unauthenticated';
  /** The key in the bag, as `name+hash`; null where it has none. Attacker-controlled where unauthenticated. */
  readonly key: string | null;
  /** Why it is not authenticated; null where it is. */
  readonly why: string | null;
}

/** How many entries of a log are read. */
export type LogLimits = { readonly [Name in 'entries_max' | 'untrusted_entries_max']: number };

export interface BagUnderCheck {
  readonly reading: ExportBagReading;
  readonly manifest: ExportBundle;
  readonly info: readonly InfoElement[];
  /** Which the signature must be of; null where the caller has named none. */
  readonly key: NoteVerifier | null;
  readonly limits: LogLimits;
}

/** What a bundle says of itself. Attacker-controlled where the report is not valid. */
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
  /** Null for a bag that is no bundle of Turnpike, and for a bundle without a manifest that can be read. */
  readonly bundle: ExportBagFacts | null;
  /** Who vouches for the bundle; null for a bag that is none. A bundle can be valid and unauthenticated. */
  readonly authentication: BagAuthentication | null;
  readonly findings: readonly ExportBagFinding[];
}
