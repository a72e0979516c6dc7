// The evidence bundle: one file of JSON lines that holds everything by which a stranger can check a ledger. The first
// line says what it is and under which key; then there is one line for each entry with the content that it brought; the
// last line is a signed in-toto statement about all lines before it.

import Type, { type Static } from 'typebox';
import { ARTIFACT_KINDS, WITHHOLDING_REASONS } from '../artifact-ref.js';
import { RUN_KINDS, RUN_STATES } from '../run/run-state.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../shapes.js';

/** Of the first line: a key and a checkpoint. */
export const HEADER_BYTES_MAX = 65_536;
/** Of the last line, some 170 bytes for each run. It is parsed before anything is trusted. */
export const STATEMENT_BYTES_MAX = 32 * 1_024 * 1_024;
/** Of a line of a bundle whose key no caller has named: parsing one takes five times its size of memory. */
export const UNTRUSTED_LINE_BYTES_MAX = 24 * 1_024 * 1_024;

export const EVIDENCE_FORMAT = 'turnpike/evidence@v1';
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PREDICATE_TYPE = 'urn:turnpike:evidence:v1';
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

const Text = Type.String({ maxLength: 4_096 });
const contentProperties = { kind: OneOf(ARTIFACT_KINDS), case_id: Nullable(Type.String({ maxLength: 120 })) };
const Base64 = Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$' });

export const EvidenceHeader = Type.Object(
  {
    format: Type.Literal(EVIDENCE_FORMAT),
    /** The public key of the log: `name+hash+base64`. To be compared with one that came another way. */
    key: Text,
    /** The signed checkpoint that vouches for all entries of the bundle, and for no more. */
    checkpoint: Text,
    /**
     * Where the entries begin, if not with the first of the log: how many come before them, and the hashes of the
     * perfect subtrees of those, largest first. The root of the checkpoint comes out of these and the entries.
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
    /** What it brought, in the order in which it was stored. */
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

/** How a run ended, for whoever reads the statement alone. */
const EvidenceRun = Type.Object(
  { run_id: RunId, run_kind: OneOf(RUN_KINDS), status: OneOf(RUN_STATES), outcome: Nullable(Type.String()) },
  closed,
);

export const EvidenceStatement = Type.Object(
  {
    _type: Type.Literal(STATEMENT_TYPE),
    /** The log by its name, at the root of the checkpoint. */
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
        /** The policies and machine definitions that the trees have pinned. */
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
