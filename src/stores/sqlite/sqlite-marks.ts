// Marks as rows: all marks of one batch are one row, and the index has one name for each mark.

import { parseOwnJson } from '../../core/contract/json.js';
import type { Batch, InputKey, InputMark, ProposalKey, ProposalMark } from '../../engine/ports/ledger/ledger-store.js';
import { duplicateMarkError, tamperedError } from '../ledger/store-errors.js';

/** The unique key of a mark. */
export interface MarkIndexKey {
  /** The id of the root run or of the tree within which the name is unique. */
  readonly scope: string;
  readonly name: string;
}

/** Copies a name that may be a slice of a payload, which would otherwise stay in memory as a whole. */
export const copyName = (name: string): string => Buffer.from(name).toString();

export const proposalKey = ({ root_run_id, proposal_id }: ProposalKey): MarkIndexKey => ({
  scope: root_run_id,
  name: `p${proposal_id}`,
});
export const inputKey = ({ tree_id, input_id }: InputKey): MarkIndexKey => ({
  scope: tree_id,
  name: `i${input_id}`,
});
/** The name of the mark for the end of a tree. */
export const ENDED_MARK = 'e';

/** The marks of a batch, stored in one row. */
export interface BatchMarks {
  readonly proposals: readonly ProposalMark[];
  readonly inputs: readonly InputMark[];
  /** Tree ids. */
  readonly ended: readonly string[];
}

/** @returns null if the batch has no marks */
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

/** @returns the mark with this key, among those of one row */
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
 * The marks that are not stored yet, with their keys. A batch may mark the end of a tree again; that is skipped.
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

/** The text of a row; compact, because every step writes one. */
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

/** @throws LedgerError LEDGER_TAMPERED if the text is not a valid row of marks */
export function readMarks(mark_no: number, text: string): BatchMarks {
  try {
    const [proposals, inputs, ended] = parseOwnJson(text) as [ProposalRow[], InputRow[], string[]];
    if (hasShape(SHAPES[0], proposals) && hasShape(SHAPES[1], inputs) && ended.every((id) => typeof id === 'string')) {
      return { proposals: proposals.map(proposalOf), inputs: inputs.map(inputOf), ended };
    }
  } catch {
    // Falls through to the error below: this store did not write such a text.
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
