/** Who replaces the key of a case, and when. */
export interface CaseKeyReplacer {
  /** Timestamp (ISO 8601), person and role; the signed note of the replacement has all three. */
  readonly at: string;
  readonly by: string;
  readonly role: string;
}

/** The replacement of a key of a case, as its signed note states it. */
export interface CaseKeyReplacement extends CaseKeyReplacer {
  readonly case_id: string;
  /** The number of the replaced key. The next number replaces it. */
  readonly key_no: number;
  /** The contents that the case had then. */
  readonly contents: number;
}

/** One part of the work of encrypting contents again. */
export interface ResealedPart {
  /** How many contents it has encrypted. */
  readonly contents: number;
  /** Where the next part begins; null after the last one. */
  readonly next: number | null;
}

/**
 * The keys of cases, which the writer may replace (decision 0022). A replacement counts when `begin` returns. From then
 * on new content is encrypted with the next key, which also opens what the replaced one has encrypted. Every step may
 * be repeated; `finish` comes last.
 */
export interface CaseKeyTable {
  /** The cases that have a key, by name. @throws LedgerError LEDGER_TAMPERED for an invalid note */
  cases(): readonly string[];
  /** The replacements that have begun and are not finished. @throws LedgerError LEDGER_TAMPERED for an invalid note */
  unfinished(): readonly CaseKeyReplacement[];
  /**
   * Replaces the key of a case.
   * @throws UsageError if the case has no key, or has had too many; LedgerError
   */
  begin(case_id: string, by: CaseKeyReplacer): Promise<CaseKeyReplacement>;
  /**
   * Encrypts contents of these cases, which have a key, with their current keys.
   * @param from 0, then what the part before has returned
   * @throws LedgerError LEDGER_TAMPERED for a content that the replaced key does not open; nothing of the part is done
   */
  reseal(case_ids: readonly string[], from: number): Promise<ResealedPart>;
  /**
   * Destroys the replaced keys of these cases.
   * @throws LedgerError LEDGER_UNAVAILABLE if contents under them remain, or a reader keeps old pages: then repeat it
   */
  finish(case_ids: readonly string[]): Promise<void>;
}
