// All attacks on one entry of a ledger: removed, duplicated, exchanged with the next one, followed by a forged one, and
// changed in each of its fields; and every possible truncation.

import { isJsonObject, type JsonObject, canonicalJson } from '../../src/core/contract/json.js';
import type { ProblemKind } from '../../src/core/ledger/verification/ledger-problem.js';
import { leafHash } from '../../src/core/ledger/proof/merkle.js';
import type { Row } from './ledgers.js';

/** What an attacker corrects after the attack. */
export const ATTACKERS = [
  'naive', // nothing
  'forger', // the chain of the tree, its hashes and the store's head
  'insider', // the external head as well: everything but what the machines would have emitted
] as const;
export type Attacker = (typeof ATTACKERS)[number];

export type AttackName = 'deleted' | 'doubled' | 'exchanged' | 'inserted' | 'changed' | 'cut';

export interface Attack {
  readonly name: AttackName;
  readonly label: string;
  /** The original entry that the attack concerns. */
  readonly row: Row;
  readonly index: number;
  readonly rows: readonly Row[];
  /** The kind that verification should report; more than one if the ledger cannot distinguish them. */
  readonly kinds: readonly ProblemKind[];
  /** Whether two exchanged entries are of one tree: the order of different trees is known only from the heads. */
  readonly inTree: boolean;
  /** Whether a naive attack leaves traces in the chain: a forger need not write what he corrects anyway. */
  readonly only: 'naive' | 'all';
}

const ENVELOPE = ['tree_id', 'seq', 'prev', 'type', 'leaf_hash'] as const;

export function* attacksOn(rows: readonly Row[]): Iterable<Attack> {
  const pool = poolOf(rows);
  for (const [index, row] of rows.entries()) {
    const next = rows[index + 1];
    const at = { row, index, inTree: true, only: 'all' as const };
    // An input without its refusal may equally be an inserted one.
    const refusal = row.text.includes('"outcome_reason":"INVALID_STATE_TRANSITION"');
    const missing: readonly ProblemKind[] = refusal ? ['missing', 'cut', 'inserted'] : ['missing', 'cut'];
    yield { ...at, name: 'deleted', label: '', rows: rows.toSpliced(index, 1), kinds: missing };
    yield { ...at, name: 'doubled', label: '', rows: rows.toSpliced(index, 0, row), kinds: ['duplicated'] };
    if (next !== undefined) {
      const exchanged = rows.toSpliced(index, 2, next, row);
      const inTree = next.tree_id === row.tree_id;
      yield { ...at, name: 'exchanged', label: '', rows: exchanged, kinds: ['reordered'], inTree };
    }
    yield {
      ...at,
      name: 'inserted',
      label: '',
      rows: rows.toSpliced(index + 1, 0, forgedAfter(row)),
      kinds: ['inserted'],
    };
    for (const field of ENVELOPE) {
      const changed = rows.with(index, envelopeChanged(row, field));
      yield { ...at, name: 'changed', label: field, rows: changed, kinds: ['altered'], only: 'naive' };
    }
    const { body } = JSON.parse(row.text) as { body: JsonObject };
    for (const field of Object.keys(body)) {
      const other = pool
        .get(`${row.type} ${field}`)
        ?.find((value) => canonicalJson(value) !== canonicalJson(body[field]));
      const changed = bodyChanged(row, field, other ?? otherThan(body[field]));
      yield { ...at, name: 'changed', label: `body.${field}`, rows: rows.with(index, changed), kinds: ['altered'] };
    }
    yield { ...at, name: 'cut', label: '', rows: rows.slice(0, index), kinds: ['cut'] };
  }
}

/** The values of a field anywhere in the ledger: a forger uses well-formed values. */
function poolOf(rows: readonly Row[]): ReadonlyMap<string, readonly unknown[]> {
  const pool = new Map<string, unknown[]>();
  for (const { type, text } of rows) {
    for (const [field, value] of Object.entries((JSON.parse(text) as { body: JsonObject }).body)) {
      const known = pool.get(`${type} ${field}`) ?? [];
      pool.set(`${type} ${field}`, known.length < 40 ? [...known, value] : known);
    }
  }
  return pool;
}

/** Another well-formed entry of its kind and time, at the place after it. */
function forgedAfter(row: Row): Row {
  const entry = JSON.parse(row.text) as { body: JsonObject; seq: number; prev: string };
  const { body } = entry;
  const seq = entry.seq + 1;
  const place = row.type === 'audit_event' ? { event_id: `${row.tree_id}:${seq}`, sequence: seq } : {};
  const changed =
    row.type === 'input'
      ? { input_id: `${textOf(body['input_id'])}-forged` }
      : row.type === 'run_created'
        ? { run_id: `${textOf(body['run_id'])}9` }
        : row.type === 'step_trace'
          ? { step_index: Number(body['step_index']) + 1 }
          : { notes: 'forged' };
  const text = canonicalJson({ ...entry, seq, prev: row.leaf_hash, body: { ...body, ...place, ...changed } });
  return { ...row, seq, text, leaf_hash: leafHash(text) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function envelopeChanged(row: Row, field: (typeof ENVELOPE)[number]): Row {
  switch (field) {
    case 'tree_id':
      return { ...row, tree_id: `${row.tree_id}x` };
    case 'seq':
      return { ...row, seq: row.seq + 1 };
    case 'type':
      return { ...row, type: row.type === 'input' ? 'audit_event' : 'input' };
    case 'leaf_hash':
      return { ...row, leaf_hash: leafHash(row.leaf_hash) };
    case 'prev': {
      const entry = JSON.parse(row.text) as JsonObject;
      return { ...row, text: canonicalJson({ ...entry, prev: leafHash('') }) };
    }
  }
}

/** The hash of the row stays as it was: an attacker who can correct it does so. */
function bodyChanged(row: Row, field: string, value: unknown): Row {
  const entry = JSON.parse(row.text) as { body: JsonObject };
  return { ...row, text: canonicalJson({ ...entry, body: { ...entry.body, [field]: value } }) };
}

function otherThan(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') {
    if (/^[0-9a-f]{64}$/.test(value)) return leafHash(value);
    if (/^\d{4}-.*Z$/.test(value)) return new Date(Date.parse(value) + 1_000).toISOString();
    return `${value}x`;
  }
  if (Array.isArray(value)) return value.length > 0 ? value.slice(1) : ['x'];
  if (isJsonObject(value)) {
    const [first] = Object.keys(value);
    return first === undefined ? { x: 'x' } : { ...value, [first]: otherThan(value[first]) };
  }
  return 'x';
}
