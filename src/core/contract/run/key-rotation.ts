import Type from 'typebox';
import { CaseId, closed } from '../shapes.js';

/** The key that signs the log. The entry follows the key history, which counts. */
export const LedgerKeyRotation = Type.Object(
  {
    purpose: Type.Literal('ledger'),
    /** The number of rotations of this key, this one included. */
    number: Type.Integer({ minimum: 1, maximum: 9_999 }),
    /** Both public keys: `name+hash+base64`. */
    old_key: Type.String({ minLength: 1, maxLength: 400 }),
    new_key: Type.String({ minLength: 1, maxLength: 400 }),
    /** The note that both keys have signed (src/core/ledger/proof/key-history.ts). */
    note: Type.String({ minLength: 1, maxLength: 2_048 }),
  },
  closed,
);

/** The key that encrypts the contents of a case. The entry follows the note of the replacement, which counts. */
export const CaseKeyRotation = Type.Object(
  {
    purpose: Type.Literal('case'),
    case_id: CaseId,
    /** The number of the replaced key. The next number replaces it. */
    key_no: Type.Integer({ minimum: 1, maximum: 9_999 }),
    /** The contents that the case had then. */
    contents: Type.Integer({ minimum: 0 }),
  },
  closed,
);
