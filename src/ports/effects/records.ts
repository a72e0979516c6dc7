import type { TargetDefinition } from '../../contract/policy/catalogue.js';
import type { EffectResult } from '../../contract/run/effect.js';
import type { Json, JsonObject } from '../../contract/json.js';
import type { WriteMode } from '../../contract/policy/lanes.js';

/** One record to be written, complete. It conforms to the target's schema, and has been allowed. */
export interface RecordWrite {
  readonly target: TargetDefinition;
  readonly mode: WriteMode;
  readonly record: JsonObject;
  /** The case that the row belongs to; null exactly where the target is shared. */
  readonly case_id: string | null;
  /** The same effect has the same key, in every attempt. */
  readonly idempotency_key: string;
  /** SHA-256 of the canonical request: the same key never stands for another request. */
  readonly request_hash: string;
}

/** Which records to read. The rows of other cases are not there. */
export interface RecordRead {
  readonly target: TargetDefinition;
  /** Columns and the values they must have. */
  readonly where: Readonly<Record<string, Json>>;
  /** Only records behind this key, in the order of the key; null for the first ones. */
  readonly after: Readonly<Record<string, Json>> | null;
  readonly limit: number;
  /** Null exactly where the target is shared. */
  readonly case_id: string | null;
}

/**
 * Where the records of targets are kept, outside the ledger's own database. Nothing throws for what it finds there: a
 * row that the database refuses is `failed`; an answer that did not come is `unknown`.
 *
 * A write and the note that it was done (in a table of effects, by its idempotency key) are one transaction of that
 * database, so that a write can be settled later: done, certainly not done and never to be done, or unknown.
 */
export interface RecordDatabase {
  /** Makes the table of effects, and looks whether the targets' tables are there. @throws RecordsError */
  open(targets: readonly TargetDefinition[]): Promise<void>;
  /** A key that was done before answers as it did then, and writes nothing. */
  write(write: RecordWrite): Promise<EffectResult>;
  /** A result `{records, next}`: `next` is the key of the last one where there are more, else null. */
  read(read: RecordRead): Promise<EffectResult>;
  /** `done` as it was done, or `failed`/INTERRUPTED after it was made sure that the write can never happen any more. */
  settle(write: RecordWrite): Promise<EffectResult>;
  close(): Promise<void>;
}

/**
 * The same in the ledger's own database. What is written here becomes durable with the next `commit` of the ledger, or
 * not at all: the write, its outcome and its audit event are one transaction. Each record has a savepoint of its own,
 * so that a bad row fails alone.
 */
export interface LedgerRecords {
  /** Makes the targets' tables that are not there yet. @throws RecordsError */
  open(targets: readonly TargetDefinition[]): void;
  write(write: RecordWrite): EffectResult;
  /** Sees what was written before in the same transaction. */
  read(read: RecordRead): EffectResult;
  /** Whether anything was written since the last `commit`. */
  readonly dirty: boolean;
  /** Takes back everything that was written since the last `commit`. */
  abandon(): void;
}
