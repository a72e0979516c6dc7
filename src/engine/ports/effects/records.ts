import type { TargetDefinition } from '../../../core/contract/policy/catalogue.js';
import type { EffectResult } from '../../../core/contract/run/effect.js';
import type { Json, JsonObject } from '../../../core/contract/json.js';
import type { WriteMode } from '../../../core/contract/policy/lanes.js';

/** One complete record to write. It conforms to the target's schema, and policy has allowed it. */
export interface RecordWrite {
  readonly target: TargetDefinition;
  readonly mode: WriteMode;
  readonly record: JsonObject;
  /** The case that the row belongs to; null exactly if the target is shared. */
  readonly case_id: string | null;
  /** The same effect has the same key in every attempt. */
  readonly idempotency_key: string;
  /** SHA-256 of the canonical request. One key never belongs to two different requests. */
  readonly request_hash: string;
}

/** Which records to read. Rows of other cases are not visible. */
export interface RecordRead {
  readonly target: TargetDefinition;
  /** Columns and their required values. */
  readonly where: Readonly<Record<string, Json>>;
  /** Returns only records after this key, in key order; null starts at the first record. */
  readonly after: Readonly<Record<string, Json>> | null;
  readonly limit: number;
  /** Null exactly if the target is shared. */
  readonly case_id: string | null;
}

/**
 * Stores the records of targets outside the ledger's own database. Nothing throws because of database content: a row
 * that the database rejects is `failed`; a missing response is `unknown`.
 *
 * One transaction of that database contains a write and its row in the table of effects, by idempotency key. A write
 * can therefore be settled later: done, certainly not done and never to be done, or unknown.
 */
export interface RecordDatabase {
  /** Creates the table of effects, and checks that the targets' tables exist. @throws RecordsError */
  open(targets: readonly TargetDefinition[]): Promise<void>;
  /** Writes a record. For a key that was written before, returns the earlier result and writes nothing. */
  write(write: RecordWrite): Promise<EffectResult>;
  /** Returns `{records, next}`: `next` is the key of the last record if there are more, else null. */
  read(read: RecordRead): Promise<EffectResult>;
  /**
   * Returns the recorded result if the write was done. Otherwise makes sure that the write can never happen, and
   * returns `failed`/INTERRUPTED.
   */
  settle(write: RecordWrite): Promise<EffectResult>;
  /** Closes the connections to the database. */
  close(): Promise<void>;
}

/** Prefix of target tables in the ledger's own database. No table of the ledger itself starts with it. */
export const OWN_PREFIX = 'records_';

/**
 * Stores the records of targets in the ledger's own database. Writes become durable with the next `commit` of the
 * ledger, or not at all: the write, its outcome and its audit event are one transaction. Each record has its own
 * savepoint, so that a bad row fails alone.
 */
export interface LedgerRecords {
  /** Creates the missing tables of targets. @throws RecordsError */
  open(targets: readonly TargetDefinition[]): void;
  write(write: RecordWrite): EffectResult;
  /** Sees earlier writes of the same transaction. */
  read(read: RecordRead): EffectResult;
  /** Whether there are writes since the last `commit`. */
  readonly dirty: boolean;
  /** Rolls back everything that was written since the last `commit`. */
  abandon(): void;
}
