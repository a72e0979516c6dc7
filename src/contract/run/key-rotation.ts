import Type from 'typebox';
import { closed } from '../shapes.js';

/** The key that signs the log. The entry follows the key history, which counts. */
export const LedgerKeyRotation = Type.Object(
  {
    purpose: Type.Literal('ledger'),
    /** The number of rotations of this key, this one included. */
    number: Type.Integer({ minimum: 1, maximum: 9_999 }),
    /** Both public keys: `name+hash+base64`. */
    old_key: Type.String({ minLength: 1, maxLength: 400 }),
    new_key: Type.String({ minLength: 1, maxLength: 400 }),
    /** The note that both keys have signed (src/ledger/proof/key-history.ts). */
    note: Type.String({ minLength: 1, maxLength: 2_048 }),
  },
  closed,
);
