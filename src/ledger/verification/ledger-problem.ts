/** What has been done to a ledger, as far as it shows. */
export type ProblemKind =
  | 'altered' // something says another thing than was written
  | 'missing' // something that was written is not there
  | 'duplicated' // it is there once more
  | 'reordered' // it stands in another place
  | 'inserted' // it was never written
  | 'cut' // the end is not there
  | 'incomplete'; // something should have been written, by what is there

/** What can be wrong with a ledger. */
export type LedgerRule =
  | 'log.gap' // an entry of the log is missing, or stands in another place
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
  | 'artifact.system_withheld' // a policy or machine definition that is not there
  | 'mark.input' // an input id that a caller chose is not remembered
  | 'mark.proposal' // a proposal id that was accepted is not remembered
  | 'tree.listed' // the store's list of trees does not match the log
  | 'record.differs' // a run record that was written is not what the entries say
  | 'head.stored' // the store's own head is not the head of this log
  | 'head.below' // the log is shorter than its anchor vouches for
  | 'head.differs' // the log is not the one that its anchor vouches for
  | 'archive.head' // what the log goes on from, after what was archived, is no head of a log
  | 'archive.unsigned' // the ledger's key has not signed that so much was archived
  | 'archive.differs' // an archive is not the one that was written, or does not go on from the one before it
  | 'archive.missing' // entries are archived, and in none of the archives that were named
  | 'tree.unopened' // a tree that does not begin with its opening
  | 'entry.time' // what came of an input has another time than the input
  | 'refusal.moved' // an input was refused, and something has moved
  | 'run.unborn' // something is told of a run that was not created
  | 'run.twice' // a run was created twice
  | 'run.parent' // a run was created by one that was not running
  | 'run.inherits' // it has not the pins, correlation and root of its parent
  | 'run.context' // an event has not what its run has
  | 'run.unjudged' // nobody has decided about the run, and it has moved, or acted
  | 'run.judged_again' // decided about more often than once
  | 'run.unallowed' // it runs, and nobody has allowed it
  | 'run.undenied' // it was denied, and nobody has said so
  | 'run.unmoved' // decided about, and neither running nor ended
  | 'run.unstarted' // it ended as only a run ends that was running
  | 'run.over' // it had ended, and has something more
  | 'run.outlives' // its parent has ended, and it has not
  | 'end.error' // it failed without an error, or has one and did not fail
  | 'act.unallowed' // a privileged effect of a run that was not running by an allow
  | 'act.missing' // the run has ended, and nothing is told of its act
  | 'act.extra' // more is told than such a run does
  | 'outcome.unasked' // an outcome of what no run was about to do
  | 'outcome.untold' // an outcome, and events that do not say it
  | 'step.unasked' // a trace of what nobody has proposed
  | 'step.untraced' // a proposal that has no trace
  | 'step.order' // a step that is not the next one of its run
  | 'vote.untold' // people's answer and its events differ
  | 'replay.differs' // the machines would have written another entry here
  | 'replay.unexpected' // they would have written none
  | 'replay.missing' // they would have written one
  | 'replay.artifact' // the content is not what the entry refers to
  | 'replay.seen' // an id that was proposed before is not remembered, or one is that was not
  | 'replay.failed'; // the machines cannot take this input at all

/** Of rules that are broken in one way. What breaks the others is something that was altered. */
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

/** What a check found, without the place where it looked. */
export interface LedgerFinding {
  readonly rule: LedgerRule;
  readonly message: string;
  /** Where the check knows better than its rule. It may learn that later in the log. */
  kind?: ProblemKind;
}

export interface ProblemPlace {
  /** Null where it is the log as a whole. */
  readonly log_index: number | null;
  readonly tree_id: string | null;
  readonly seq: number | null;
}

/** A finding whose place its check knows. */
export interface PlacedFinding {
  readonly place: ProblemPlace;
  readonly finding: LedgerFinding;
}

/** One thing that is wrong with a ledger. */
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
