// DSSE: the signature covers the type together with the payload, so that a signature for one type is not valid for
// another.

import { PAYLOAD_TYPE, type SignedStatement } from '../../contract/evidence/evidence.js';
import type { NoteSigner, NoteVerifier } from './signed-note.js';

/** The signed bytes (PAE). */
const preAuthEncoding = (type: string, payload: string): string =>
  `DSSEv1 ${Buffer.byteLength(type)} ${type} ${Buffer.byteLength(payload)} ${payload}`;

const keyId = ({ name, key_hash }: NoteVerifier): string => `${name}+${key_hash}`;

export function signStatement(payload: string, signer: NoteSigner): SignedStatement {
  const sig = Buffer.from(signer.sign(preAuthEncoding(PAYLOAD_TYPE, payload))).toString('base64');
  return {
    payloadType: PAYLOAD_TYPE,
    payload: Buffer.from(payload).toString('base64'),
    signatures: [{ keyid: keyId(signer), sig }],
  };
}

/** @returns the payload; null if this key has not signed it */
export function openStatement({ payloadType, payload, signatures }: SignedStatement, key: NoteVerifier): string | null {
  const [signature] = signatures;
  const text = Buffer.from(payload, 'base64').toString('utf8');
  if (signature?.keyid !== keyId(key)) return null;
  return key.verifies(preAuthEncoding(payloadType, text), Buffer.from(signature.sig, 'base64')) ? text : null;
}
