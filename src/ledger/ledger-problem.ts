/** What can be wrong with a ledger. */
export type LedgerRule =
  | 'log.gap' // an entry of the log is missing
  | 'log.unreadable' // the store could not give the entry, or its own head
  | 'text.not_json'
  | 'text.not_canonical'
  | 'entry.envelope' // not exactly body, prev, seq, tree_id and type
  | 'entry.columns' // stored under another tree, seq or type than its text says
  | 'entry.leaf_hash' // the text is not the one that was hashed
  | 'entry.body' // not what the schema of its type allows
  | 'event.place' // an audit event that names another place than its own
  | 'tree.seq' // an entry of the tree is missing or stands in another place
  | 'tree.prev' // not the successor of the entry before it in the tree
  | 'artifact.unreadable' // the store could not give the content, or knows that it was changed
  | 'artifact.unreferenced' // content that the entry does not refer to
  | 'artifact.missing' // an input without the content that it refers to
  | 'mark.input' // an input id that a caller chose is not remembered
  | 'mark.proposal' // a proposal id that was accepted is not remembered
  | 'record.differs' // a run record that was written is not what the entries say
  | 'head.stored' // the store's own head is not the head of this log
  | 'head.below' // the log is shorter than its anchor vouches for
  | 'head.differs'; // the log is not the one that its anchor vouches for

/** What a check found, without the place where it looked. */
export interface Finding {
  readonly rule: LedgerRule;
  readonly message: string;
}

/** One thing that is wrong with a ledger. The place is null where it is the log as a whole. */
export interface LedgerProblem extends Finding {
  readonly log_index: number | null;
  readonly tree_id: string | null;
  readonly seq: number | null;
}
