// The evidence bundle: one file of JSON lines with everything that a third party needs to verify a ledger. The first
// line is the header with the key. One line follows for each entry, with the content that came with it. The last line
// is a signed in-toto statement about all lines before it.

import Type, { type Static } from 'typebox';
import { formatHeader, refuseOtherFormat, type FileFormat } from '../file-format.js';
import { isJsonObject, type Json } from '../json.js';
import { ARTIFACT_KINDS, WITHHOLDING_REASONS } from '../artifact-ref.js';
import { RUN_KINDS, RUN_STATES } from '../run/run-context.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../shapes.js';

/** Limit of the first line: a key with its history, and a checkpoint. */
export const HEADER_BYTES_MAX = 524_288;
/** Limit of the last line; it needs about 170 bytes for each run. It is parsed before anything is trusted. */
export const STATEMENT_BYTES_MAX = 32 * 1_024 * 1_024;
/** Limit of a line if the caller named no key for the bundle: parsing a line takes five times its size in memory. */
export const UNTRUSTED_LINE_BYTES_MAX = 24 * 1_024 * 1_024;

const FORMAT: FileFormat = { prefix: 'turnpike-evidence/', newest: 1, old: /^turnpike\/evidence@/ };
export const EVIDENCE_FORMAT = formatHeader(FORMAT);

/** @throws LedgerError LEDGER_UNSUPPORTED if this is the header of a bundle of another format */
export function refuseOtherEvidence(header: Json | undefined): void {
  const format = isJsonObject(header) ? header['format'] : undefined;
  if (typeof format === 'string') refuseOtherFormat(format, FORMAT, 'this evidence bundle');
}
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PREDICATE_TYPE = 'urn:turnpike:evidence:v1';
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

const Text = Type.String({ maxLength: 4_096 });
const contentProperties = { kind: OneOf(ARTIFACT_KINDS), case_id: Nullable(Type.String({ maxLength: 120 })) };
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' });

/** The history of a key, from its first rotation on. */
export const KeyNotes = Type.Array(Type.String({ maxLength: 2_048 }), { minItems: 1, maxItems: 200 });

export const EvidenceHeader = Type.Object(
  {
    format: Type.Literal(EVIDENCE_FORMAT),
    /** The public key of the log: `name+hash+base64`. Compare it with a key from another source. */
    key: Text,
    /** The notes of all rotations of the key, if there were any (src/core/ledger/proof/key-history.ts). */
    chain: Type.Optional(KeyNotes),
    /** The signed checkpoint of exactly the entries in the bundle. */
    checkpoint: Text,
    /**
     * Where the entries begin, if not with the first of the log: the number of earlier entries and the hashes of their
     * perfect subtrees, largest first. The root of the checkpoint follows from these and the entries.
     */
    from: Type.Optional(
      Type.Object(
        {
          size: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
          frontier: Type.Array(Sha256, { minItems: 1, maxItems: 53 }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type EvidenceHeader = Static<typeof EvidenceHeader>;

export const EvidenceEntry = Type.Object(
  {
    /** The entry, byte for byte. */
    entry: Type.String(),
    /** The artifacts of the entry, in the order in which they were stored. */
    artifacts: Type.Array(
      Type.Union([
        Type.Object({ ...contentProperties, content: Base64 }, closed),
        Type.Object(
          {
            ...contentProperties,
            withheld: OneOf(WITHHOLDING_REASONS),
            sha256: Sha256,
            byte_size: Type.Integer({ minimum: 0 }),
          },
          closed,
        ),
      ]),
    ),
  },
  closed,
);
export type EvidenceEntry = Static<typeof EvidenceEntry>;

/** How a run ended, for a reader of the statement only. */
const EvidenceRun = Type.Object(
  { run_id: RunId, run_kind: OneOf(RUN_KINDS), status: OneOf(RUN_STATES), outcome: Nullable(Type.String()) },
  closed,
);

export const EvidenceStatement = Type.Object(
  {
    _type: Type.Literal(STATEMENT_TYPE),
    /** The name of the log, and the root of the checkpoint as its digest. */
    subject: Type.Array(Type.Object({ name: Text, digest: Type.Object({ sha256: Sha256 }, closed) }, closed), {
      minItems: 1,
      maxItems: 1,
    }),
    predicateType: Type.Literal(PREDICATE_TYPE),
    predicate: Type.Object(
      {
        entries: Type.Integer({ minimum: 0 }),
        artifacts: Type.Integer({ minimum: 0 }),
        /** How many of these are hashes without content. */
        withheld: Type.Integer({ minimum: 0 }),
        /** SHA-256 of all lines before this one, newlines included. */
        content_sha256: Sha256,
        /** The policies and machine definitions that the trees pin. */
        policies: Type.Array(Sha256),
        machines: Type.Array(Sha256),
        runs: Type.Array(EvidenceRun),
      },
      closed,
    ),
  },
  closed,
);
export type EvidenceStatement = Static<typeof EvidenceStatement>;

/** A DSSE envelope (secure-systems-lab). */
export const SignedStatement = Type.Object(
  {
    payloadType: Type.Literal(PAYLOAD_TYPE),
    payload: Base64,
    signatures: Type.Array(Type.Object({ keyid: Text, sig: Base64 }, closed), { minItems: 1, maxItems: 1 }),
  },
  closed,
);
export type SignedStatement = Static<typeof SignedStatement>;
