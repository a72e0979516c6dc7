// Checks everything that a stored entry shows on its own: text, envelope, columns, hash and body.

import Type, { type Static } from 'typebox';
import { isJsonObject, parseOwnJson, canonicalJson } from '../../contract/json.js';
import { entrySchema, inputSchema, type EntryType } from '../../contract/run/entry.js';
import { missingFeature } from '../../contract/run/feature-vocabulary.js';
import { closed, Sha256 } from '../../contract/shapes.js';
import { isConforming, isEntryBody } from '../../contract/validators.js';
import { InvariantError } from '../../errors.js';
import type { StoredEntry } from '../readable-ledger.js';
import type { LedgerFinding } from './ledger-problem.js';
import { leafHash } from '../proof/merkle.js';

const Envelope = Type.Object(
  {
    body: Type.Object({}),
    prev: Sha256,
    seq: Type.Integer({ minimum: 0 }),
    tree_id: Type.String({ minLength: 1, maxLength: 120 }),
    type: Type.String({ pattern: '^[a-z_]{1,40}$' }),
  },
  closed,
);
type Envelope = Static<typeof Envelope>;

/** A type that is not known here must belong to a feature that is not installed. */
const isEnvelope = (value: unknown): value is Envelope =>
  isConforming(Envelope, value) &&
  (entrySchema((value as Envelope).type) !== null || missingFeature((value as Envelope).body) !== null);

/** A stored entry, parsed from its text, and what is wrong with it. */
export interface CheckedEntry {
  /** Null if the text is no entry. The text was not parsed then, and may be of any depth. */
  readonly envelope: Envelope | null;
  /** The leaf hash computed from the text, not the one that the store reports. */
  readonly leaf_hash: string;
  readonly findings: readonly LedgerFinding[];
}

/** Checks one stored entry on its own. Other checks compare it with its neighbours and its content. */
export function checkEntry(stored: StoredEntry): CheckedEntry {
  const leaf_hash = leafHash(stored.text);
  const findings: LedgerFinding[] = [];
  if (leaf_hash !== stored.leaf_hash) {
    findings.push({
      rule: 'entry.leaf_hash',
      message: `the leaf hash of the text is ${leaf_hash}, which differs from the stored one`,
    });
  }
  const envelope = readEnvelope(stored.text, findings);
  if (envelope !== null) findings.push(...checkColumns(envelope, stored), ...checkBody(envelope));
  return { envelope, leaf_hash, findings };
}

/** The text is attacker-controlled here: anyone who can open the database can have written it. */
function readEnvelope(text: string, findings: LedgerFinding[]): Envelope | null {
  let value: unknown;
  try {
    value = parseOwnJson(text);
  } catch {
    findings.push({ rule: 'text.not_json', message: 'the text is not JSON' });
    return null;
  }
  if (!isCanonical(value, text)) {
    findings.push({ rule: 'text.not_canonical', message: 'the text is JSON, but not canonical' });
    return null;
  }
  if (isEnvelope(value)) return value;
  findings.push({
    rule: 'entry.envelope',
    message: 'the text is not an object with exactly the members body, prev, seq, tree_id and type',
  });
  return null;
}

function isCanonical(value: unknown, text: string): boolean {
  try {
    return canonicalJson(value) === text;
  } catch (error) {
    if (error instanceof InvariantError) return false;
    throw error;
  }
}

function* checkColumns(envelope: Envelope, stored: StoredEntry): Iterable<LedgerFinding> {
  for (const column of ['tree_id', 'seq', 'type'] as const) {
    if (envelope[column] === stored[column]) continue;
    const [column_says, text_says] = [stored[column], envelope[column]].map((value) => JSON.stringify(value));
    yield { rule: 'entry.columns', message: `its ${column} is stored as ${column_says}, its text says ${text_says}` };
  }
}

function* checkBody({ body, type, tree_id, seq }: Envelope): Iterable<LedgerFinding> {
  // What a feature has recorded that is not installed here has no schema here: replay says what it lacks.
  const schema = type === 'input' ? inputSchema(String((body as { readonly kind?: unknown }).kind)) : entrySchema(type);
  if (schema === null && missingFeature(body) !== null) return;
  if (!isEntryBody(type as EntryType, body))
    yield { rule: 'entry.body', message: `the body does not match the schema of type ${type}` };
  if (type !== 'audit_event' || !isJsonObject(body)) return;
  if (body['event_id'] !== `${tree_id}:${seq}` || body['sequence'] !== seq) {
    yield {
      rule: 'event.place',
      message: `an audit event here must have event_id ${tree_id}:${seq} and sequence ${seq}`,
    };
  }
}
