// Marks as rows: all marks of one batch are one row, and a name for each is what the index knows.

import type { Batch, InputKey, InputMark, ProposalKey, ProposalMark } from '../../ports/ledger/ledger-store.js';
import { duplicateMarkError, tamperedError } from '../ledger/store-errors.js';

/** What identifies a mark: it is found by this, and no other may have the same. */
export interface MarkIndexKey {
  /** The id of the root run or of the tree within which the name is unique. */
  readonly scope: string;
  readonly name: string;
}

/** A name may be a slice of a payload, and would keep all of that in memory. */
export const copyName = (name: string): string => Buffer.from(name).toString();

export const proposalKey = ({ root_run_id, proposal_id }: ProposalKey): MarkIndexKey => ({
  scope: root_run_id,
  name: `p${proposal_id}`,
});
export const inputKey = ({ tree_id, input_id }: InputKey): MarkIndexKey => ({
  scope: tree_id,
  name: `i${input_id}`,
});
/** The name of the mark that says that a tree has ended. */
export const ENDED_MARK = 'e';

/** The marks of a batch, as one row says them. */
export interface BatchMarks {
  readonly proposals: readonly ProposalMark[];
  readonly inputs: readonly InputMark[];
  /** Ids of trees. */
  readonly ended: readonly string[];
}

/** @returns null where a batch has none */
export function batchMarksOf({ trees }: Batch): BatchMarks | null {
  const proposals: ProposalMark[] = [];
  const inputs: InputMark[] = [];
  const ended: string[] = [];
  for (const append of trees) {
    for (const mark of append.proposals) proposals.push(mark);
    for (const mark of append.inputs) inputs.push(mark);
    if (append.ended) ended.push(append.tree_id);
  }
  return proposals.length + inputs.length + ended.length === 0 ? null : { proposals, inputs, ended };
}

/** @returns the mark of this key among those of a row */
export function markIn(
  { proposals, inputs }: BatchMarks,
  key: InputKey | ProposalKey,
): InputMark | ProposalMark | undefined {
  if ('input_id' in key) return inputs.find((mark) => mark.tree_id === key.tree_id && mark.input_id === key.input_id);
  const { root_run_id, proposal_id } = key;
  return proposals.find((mark) => mark.root_run_id === root_run_id && mark.proposal_id === proposal_id);
}

export function* keysOf({ proposals, inputs, ended }: BatchMarks): Generator<MarkIndexKey, void> {
  for (const mark of proposals) yield proposalKey(mark);
  for (const mark of inputs) yield inputKey(mark);
  for (const scope of ended) yield { scope, name: ENDED_MARK };
}

/**
 * The marks that a row says for the first time, with their keys: that a tree has ended may be said again.
 * @throws InvariantError for a proposal or an input that is marked already
 */
export function findNewMarks(
  { proposals, inputs, ended }: BatchMarks,
  isMarked: (key: MarkIndexKey) => boolean,
): { readonly first: BatchMarks; readonly keys: readonly MarkIndexKey[] } {
  const first = { proposals, inputs, ended: ended.filter((scope) => !isMarked({ scope, name: ENDED_MARK })) };
  const keys: MarkIndexKey[] = [];
  const names = new Set<string>();
  for (const { scope, name } of keysOf(first)) {
    const key = { scope, name: copyName(name) };
    if (isMarked(key)) throw duplicateMarkError();
    keys.push(key);
    names.add(`${scope}\n${name}`);
  }
  if (names.size < keys.length) throw duplicateMarkError();
  return { first, keys };
}

/** A row's marks as text; small, because every step has some. */
export const marksText = ({ proposals, inputs, ended }: BatchMarks): string =>
  JSON.stringify([
    proposals.map((mark) => [
      mark.root_run_id,
      mark.proposal_id,
      mark.run_id,
      mark.step_index,
      mark.payload_sha256,
      mark.seq,
    ]),
    inputs.map(({ tree_id, input_id, seq }) => [tree_id, input_id, seq]),
    ended,
  ]);

const SHAPES = [
  ['string', 'string', 'string', 'number', 'string', 'number'],
  ['string', 'string', 'number'],
] as const;
type ProposalRow = [string, string, string, number, string, number];
type InputRow = [string, string, number];

/** @throws LedgerError LEDGER_TAMPERED if the text is not that of marks */
export function readMarks(mark_no: number, text: string): BatchMarks {
  try {
    const [proposals, inputs, ended] = JSON.parse(text) as [ProposalRow[], InputRow[], string[]];
    if (hasShape(SHAPES[0], proposals) && hasShape(SHAPES[1], inputs) && ended.every((id) => typeof id === 'string')) {
      return { proposals: proposals.map(proposalOf), inputs: inputs.map(inputOf), ended };
    }
  } catch {
    // Told below, like everything else that this store has not written.
  }
  throw tamperedError(`row ${mark_no} of the marks is not what it was`);
}

const hasShape = (shape: readonly string[], rows: readonly (readonly unknown[])[]): boolean =>
  rows.every((row) => row.length === shape.length && shape.every((type, place) => typeof row[place] === type));

const proposalOf = ([
  root_run_id,
  proposal_id,
  run_id,
  step_index,
  payload_sha256,
  seq,
]: ProposalRow): ProposalMark => ({
  root_run_id,
  proposal_id,
  run_id,
  step_index,
  payload_sha256,
  seq,
});

const inputOf = ([tree_id, input_id, seq]: InputRow): InputMark => ({ tree_id, input_id, seq });
