// The records of a commit. `COMMIT_RECORDS` is the one list of their columns. The SQL types, which the functions in
// sql/ read by name, the types in this code, and the order of the columns in a parameter are derived from it. Positions
// of appends and contents begin at 1, as in SQL.

import { arrayLiteral } from './postgres-values.js';

/** The SQL types of columns, and the types of their values. `| null`: the column may be null. */
interface ColumnTypes {
  readonly text: string;
  readonly 'text | null': string | null;
  readonly integer: number;
  readonly 'integer | null': number | null;
  readonly bigint: number;
  readonly 'bigint | null': number | null;
  readonly boolean: boolean;
  readonly 'boolean | null': boolean | null;
  readonly 'text[]': readonly string[];
  readonly 'integer[] | null': readonly number[] | null;
  readonly 'quota_reservation[]': readonly CommitRecord<'quota_reservation'>[];
}

type Columns = Readonly<Record<string, keyof ColumnTypes>>;

/** By the name of the SQL type. A type comes after those that it names. */
export const COMMIT_RECORDS = {
  /** The entries of one tree. */
  commit_append: {
    tree_id: 'text',
    from_seq: 'integer',
    entry_count: 'integer',
    /** Of a tree that this append opens. */
    case_id: 'text | null',
    ended: 'boolean',
    unfinished: 'boolean | null',
    wake_at: 'text | null',
    types: 'text',
    texts_at: 'integer',
    texts_bytes: 'integer',
    /** 32 bytes for each entry. */
    leaves_at: 'integer',
    /** The entries with content, by their position in the append from 0, and the positions of their contents. */
    artifact_entries: 'integer[] | null',
    artifact_contents: 'integer[] | null',
  },
  commit_content: {
    /** The number of content that the ledger has already, without bytes; otherwise 0. */
    known_no: 'bigint',
    case_id: 'text | null',
    sha256: 'text',
    kind: 'text',
    byte_size: 'bigint',
    key_no: 'integer',
    /** Null for content that was erased. */
    stored_at: 'integer | null',
    stored_bytes: 'integer',
  },
  commit_mark: {
    append: 'integer',
    scope: 'text',
    name: 'text',
    seq: 'integer',
    run_id: 'text | null',
    step_index: 'integer | null',
    payload_sha256: 'text | null',
  },
  commit_snapshot: {
    append: 'integer',
    seq: 'integer',
    mac: 'text',
    case_id: 'text | null',
    key_no: 'integer',
    content_sha256: 'text',
    stored_at: 'integer',
    stored_bytes: 'integer',
  },
  /** A case to lock, and the last of its keys that the batch uses; 0 without content. */
  commit_case: { case_id: 'text', key_no: 'integer' },
  commit_lease: { append: 'integer', kind: 'text', run_id: 'text', tree_id: 'text' },
  commit_release: { append: 'integer', run_id: 'text' },
  quota_reservation: {
    key: 'text',
    run_id: 'text',
    paths: 'text[]',
    bytes: 'bigint',
    files: 'bigint',
    whole_bytes: 'bigint',
    whole_files: 'bigint',
  },
  /** What an append does with the reservations of a case, or with which of them it was decided. */
  quota_change: {
    append: 'integer',
    case_id: 'text',
    version: 'text',
    checked: 'boolean',
    changed: 'boolean',
    /** Up to which total of the case the decision holds. */
    limit_bytes: 'bigint | null',
    limit_files: 'bigint | null',
    released: 'text[]',
    reserved: 'quota_reservation[]',
  },
  label_change: { append: 'integer', case_id: 'text', version: 'bigint | null', raised: 'boolean' },
} as const satisfies Readonly<Record<string, Columns>>;

export type CommitRecord<Name extends keyof typeof COMMIT_RECORDS> = {
  readonly [
    Column in keyof (typeof COMMIT_RECORDS)[Name]
  ]: (typeof COMMIT_RECORDS)[Name][Column] extends keyof ColumnTypes
    ? ColumnTypes[(typeof COMMIT_RECORDS)[Name][Column]]
    : never;
};

/** The parameter p_quotas of a commit. */
export interface QuotasJson {
  /** The next version of the reservations that the batch changes. */
  readonly next: string;
  readonly changes: readonly CommitRecord<'quota_change'>[];
  readonly labels: readonly CommitRecord<'label_change'>[];
}

/** Creates the SQL types of the records. */
export const CREATE_RECORD_TYPES = Object.entries<Columns>(COMMIT_RECORDS)
  .map(([name, columns]) => {
    const types = Object.entries(columns).map(([column, type]) => `${column} ${type.replace(' | null', '')}`);
    return `CREATE TYPE ${name} AS (${types.join(', ')});`;
  })
  .join('\n');

/** An array of records as PostgreSQL reads it; the driver writes only arrays of values. */
export function recordArray<Name extends keyof typeof COMMIT_RECORDS>(
  type: Name,
  records: readonly CommitRecord<Name>[],
): string {
  const columns = Object.keys(COMMIT_RECORDS[type]) as (keyof CommitRecord<Name>)[];
  return arrayLiteral(records.map((record) => `(${columns.map((column) => fieldText(record[column])).join(',')})`));
}

const SPECIAL = /[\s",()\\]/;

/** A value in a record; null is nothing, and an empty text has quotes. */
function fieldText(value: string | number | boolean | readonly unknown[] | null): string {
  if (value === null) return '';
  const text = typeof value === 'object' ? arrayLiteral(value) : String(value);
  return text === '' || SPECIAL.test(text) ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : text;
}
