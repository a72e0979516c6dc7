/** The kind of damage to a ledger, as far as it can be determined. */
export type ProblemKind =
  | 'altered' // something differs from what was written
  | 'missing' // something that was written is missing
  | 'duplicated' // something is there twice
  | 'reordered' // something is in another place
  | 'inserted' // something was never written
  | 'cut' // the end is missing
  | 'incomplete'; // something is missing that other entries require

/** The rules of verification. */
export type LedgerRule =
  | 'log.gap' // an entry of the log is missing or in another place
  | 'log.unreadable' // the store cannot return the entry, or its own head
  | 'text.not_json'
  | 'text.not_canonical'
  | 'entry.envelope' // not exactly body, prev, seq, tree_id and type
  | 'entry.columns' // stored under another tree, seq or type than its text says
  | 'entry.leaf_hash' // the text does not match its hash
  | 'entry.body' // the body does not match the schema of its type
  | 'event.place' // an audit event names a place other than its own
  | 'tree.seq' // an entry of the tree is missing or in another place
  | 'tree.prev' // not the successor of the previous entry in the tree
  | 'artifact.unreadable' // the store cannot return the content, or detects a change
  | 'artifact.unreferenced' // content that the entry does not refer to
  | 'artifact.missing' // an input without the content that it refers to
  | 'artifact.system_withheld' // a policy or machine definition is unavailable
  | 'mark.input' // the mark of an input id that a caller chose is missing
  | 'mark.proposal' // the mark of an accepted proposal id is missing
  | 'tree.listed' // the store's list of trees does not match the log
  | 'record.differs' // a stored run record does not match the entries
  | 'head.stored' // the store's own head is not the head of this log
  | 'head.below' // the log is shorter than the external head
  | 'head.differs' // the log differs from the external head
  | 'archive.head' // the head after the archived part is not a valid head
  | 'archive.unsigned' // the ledger's key has not signed the archived part
  | 'archive.differs' // an archive is not the recorded one, or does not continue the previous one
  | 'archive.missing' // archived entries are in none of the given archives
  | 'key.unknown' // the log records a rotation of its key that the key history does not have
  | 'key.unrecorded' // the log does not record a rotation of the key history
  | 'key.differs' // a rotation vouches for another log
  | 'tree.unopened' // a tree does not begin with its opening
  | 'entry.time' // a consequence of an input has another timestamp
  | 'refusal.moved' // a refused input changed something
  | 'run.unborn' // an entry refers to a run that was not created
  | 'run.twice' // a run was created twice
  | 'run.parent' // the parent of a run was not running when it was created
  | 'run.inherits' // a run differs from its parent in pins, correlation or root
  | 'run.context' // an event differs from its run in context
  | 'run.unjudged' // an undecided run changed state or acted
  | 'run.judged_again' // a run was decided more than once
  | 'run.unallowed' // a run is running without an allow
  | 'run.undenied' // a run was denied without a deny decision
  | 'run.unmoved' // a decided run is neither running nor ended
  | 'run.unstarted' // a run that never ran ended like a running one
  | 'run.over' // a run has entries after its end
  | 'run.outlives' // a run is live after its parent has ended
  | 'end.error' // a run failed without an error, or has an error without failing
  | 'act.unallowed' // a privileged effect of a run without an allow, or not running
  | 'act.missing' // the run ended without an event of its effect
  | 'act.extra' // there are more events than such a run causes
  | 'outcome.unasked' // an outcome for an effect that no run requested
  | 'outcome.untold' // an outcome that does not match its events
  | 'step.unasked' // a trace without a proposal
  | 'step.untraced' // a proposal without a trace
  | 'step.order' // a step out of order in its run
  | 'vote.untold' // a vote that does not match its events
  | 'replay.differs' // the machines produce a different entry here
  | 'replay.unexpected' // the machines produce no entry here
  | 'replay.missing' // the machines produce an entry that is not recorded
  | 'replay.artifact' // the content does not match its reference in the entry
  | 'replay.seen' // `seen` does not match the proposal ids accepted before
  | 'replay.failed'; // the machines cannot process this input

/** Kinds of the rules that only one kind of damage breaks. For all other rules the kind is `altered`. */
const KINDS: Partial<Record<LedgerRule, ProblemKind>> = {
  'log.gap': 'missing',
  'tree.seq': 'missing',
  'artifact.unreferenced': 'inserted',
  'artifact.missing': 'missing',
  'artifact.system_withheld': 'missing',
  'mark.input': 'missing',
  'mark.proposal': 'missing',
  'head.below': 'cut',
  'archive.missing': 'missing',
  'key.unrecorded': 'missing',
  'tree.unopened': 'incomplete',
  'refusal.moved': 'inserted',
  'run.unborn': 'incomplete',
  'run.twice': 'duplicated',
  'run.parent': 'incomplete',
  'run.unjudged': 'incomplete',
  'run.judged_again': 'inserted',
  'run.unallowed': 'incomplete',
  'run.undenied': 'incomplete',
  'run.unmoved': 'incomplete',
  'run.unstarted': 'incomplete',
  'run.over': 'inserted',
  'run.outlives': 'incomplete',
  'act.unallowed': 'incomplete',
  'act.missing': 'incomplete',
  'act.extra': 'inserted',
  'outcome.unasked': 'incomplete',
  'outcome.untold': 'incomplete',
  'step.unasked': 'incomplete',
  'step.untraced': 'incomplete',
  'vote.untold': 'incomplete',
  'replay.unexpected': 'inserted',
  'replay.missing': 'missing',
};

/** The finding of a check, without its place. */
export interface LedgerFinding {
  readonly rule: LedgerRule;
  readonly message: string;
  /** Set if the check knows better than its rule. An entry later in the log may still set it. */
  kind?: ProblemKind;
}

export interface ProblemPlace {
  /** Null if the finding concerns the log as a whole. */
  readonly log_index: number | null;
  readonly tree_id: string | null;
  readonly seq: number | null;
}

/** A finding whose place its check knows. */
export interface PlacedFinding {
  readonly place: ProblemPlace;
  readonly finding: LedgerFinding;
}

/** One problem of a ledger. */
export interface LedgerProblem extends ProblemPlace {
  readonly rule: LedgerRule;
  readonly kind: ProblemKind;
  readonly message: string;
}

export const WHOLE_LOG: ProblemPlace = { log_index: null, tree_id: null, seq: null };

export const problemOf = ({ place, finding: { rule, kind, message } }: PlacedFinding): LedgerProblem => ({
  log_index: place.log_index,
  tree_id: place.tree_id,
  seq: place.seq,
  rule,
  kind: kind ?? KINDS[rule] ?? 'altered',
  message,
});
