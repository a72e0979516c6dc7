import Type from 'typebox';
import { closed, Identifier, Nullable, Sha256 } from '../shapes.js';

/** How many approvals or counters one acknowledgement names at most. */
export const CONFIRMED_MAX = 4_096;

/** Size and root of a log. */
const LogSize = Type.Object({ size: Type.Integer({ minimum: 0 }), root: Sha256 }, closed);

/** What the record of a restore, or of a failover that has lost entries, says about them. */
export const lostEntries = {
  /** The number of restores in the history of this log, this one included. */
  lineage: Type.Integer({ minimum: 1 }),
  /** The log that the backup contains, or that was left. */
  kept: LogSize,
  /** The newest known head of the lost log: the entries from `kept.size` to its size are lost. Null: unknown. */
  lost: Nullable(LogSize),
  /** The manifest of the backup. Null: a failover has lost the entries. */
  backup_sha256: Nullable(Sha256),
  /** Of an acknowledgement: the restored approvals and counters that may be used again. */
  confirmed: Type.Optional(
    Type.Object(
      {
        approvals: Type.Array(Sha256, { maxItems: CONFIRMED_MAX }),
        counters: Type.Array(Identifier, { maxItems: CONFIRMED_MAX }),
      },
      closed,
    ),
  ),
};
