// Marks as rows: unique by the root run or tree, and a name.

import { parseOwnJson } from '../../core/contract/json.js';
import type { InputKey, InputMark, MarkKey, ProposalMark } from '../../engine/ports/ledger/ledger-store.js';
import { checkProposalId } from '../ledger/check-batch.js';
import { tamperedError } from '../ledger/store-errors.js';
import type { ReaderPool } from './postgres-connection.js';
import { integerOf, textOf, type Row } from './postgres-values.js';

const proposalName = (proposal_id: string): string => `p${proposal_id}`;

/** As JSON: the caller chooses the id, and PostgreSQL stores neither U+0000 nor half of a surrogate pair. */
const inputName = (input_id: string): string => `i${JSON.stringify(input_id)}`;

/** A mark as a row of the table. */
export function markRow(mark: InputMark | ProposalMark) {
  if ('input_id' in mark) {
    const { tree_id, input_id, seq } = mark;
    return { scope: tree_id, name: inputName(input_id), seq, run_id: null, step_index: null, payload_sha256: null };
  }
  const { root_run_id, proposal_id, seq, run_id, step_index, payload_sha256 } = mark;
  return { scope: root_run_id, name: proposalName(proposal_id), seq, run_id, step_index, payload_sha256 };
}

const MARKS = {
  name: 'turnpike_marks',
  text: `SELECT k.place, m.seq, m.run_id, m.step_index, m.payload_sha256
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (scope, name, place)
  JOIN marks m ON m.scope = k.scope AND m.name = k.name`,
};

/** @returns for each key its mark, or null @throws LedgerError LEDGER_TAMPERED @throws InvariantError */
export async function readMarks(
  pool: ReaderPool,
  keys: readonly MarkKey[],
): Promise<readonly (InputMark | ProposalMark | null)[]> {
  for (const key of keys) if ('proposal_id' in key) checkProposalId(key.proposal_id);
  const scopes = keys.map((key) => ('input_id' in key ? key.tree_id : key.root_run_id));
  const names = keys.map((key) => ('input_id' in key ? inputName(key.input_id) : proposalName(key.proposal_id)));
  const rows = await pool.read(MARKS, [scopes, names]);
  const found = new Map(rows.map((row) => [Number(row['place']) - 1, row]));
  return keys.map((key, place) => {
    const row = found.get(place);
    return row === undefined ? null : markOf(key, row);
  });
}

/** The mark in a row with all columns. @throws LedgerError LEDGER_TAMPERED */
export function markOfRow(row: Row): InputMark | ProposalMark {
  const [scope, name] = [textOf(row, 'scope', 'a mark'), textOf(row, 'name', 'a mark')];
  return markOf(inputKeyOf(scope, name) ?? { root_run_id: scope, proposal_id: name.slice(1) }, row);
}

/** See `inputName`. @returns null for the name of a proposal */
function inputKeyOf(tree_id: string, name: string): InputKey | null {
  if (name.startsWith('p')) return null;
  try {
    const input_id: unknown = parseOwnJson(name.slice(1));
    if (typeof input_id === 'string') return { tree_id, input_id };
  } catch {
    // Falls through to the error below: this store did not write such a name.
  }
  throw tamperedError(`a mark has an invalid name: ${name}`);
}

function markOf(key: MarkKey, row: Row): InputMark | ProposalMark {
  const what = 'a mark';
  const seq = integerOf(row, 'seq', what);
  if ('input_id' in key) {
    if (row['run_id'] !== null) throw tamperedError(`the mark of an input of ${key.tree_id} has values of a proposal`);
    return { tree_id: key.tree_id, input_id: key.input_id, seq };
  }
  return {
    root_run_id: key.root_run_id,
    proposal_id: key.proposal_id,
    run_id: textOf(row, 'run_id', what),
    step_index: integerOf(row, 'step_index', what),
    payload_sha256: textOf(row, 'payload_sha256', what),
    seq,
  };
}
