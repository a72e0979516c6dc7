// Marks decide which request is a repeat, and which step answers it. They are rows next to the entries, so each mark
// that is found is compared with the entry that it names.

import { nameInTree } from '../../core/contract/entry-name.js';
import { LedgerError } from '../../core/errors.js';
import type { InputMark, LedgerStore, MarkKey, MarkOf, ProposalMark, TreeEntry } from '../ports/ledger/ledger-store.js';

/** What a mark says of its entry, and of the trace of its step. */
interface MarkedEntry {
  readonly kind?: unknown;
  readonly input_id?: unknown;
  readonly run_id?: unknown;
  readonly payload?: { readonly hash_sha256?: unknown };
  readonly step_index?: unknown;
}

/** As `LedgerStore.marks`. @throws LedgerError LEDGER_TAMPERED for a mark that differs from its entry */
export async function checkedMarks<Key extends MarkKey>(
  store: Pick<LedgerStore, 'marks' | 'tree'>,
  keys: readonly Key[],
): Promise<readonly (MarkOf<Key> | null)[]> {
  const marks = await store.marks(keys);
  for (const mark of marks) if (mark !== null) await checkMark(store, mark);
  return marks;
}

async function checkMark(store: Pick<LedgerStore, 'tree'>, mark: InputMark | ProposalMark): Promise<void> {
  const tree_id = 'input_id' in mark ? mark.tree_id : (mark.root_run_id.split('.', 1)[0] ?? '');
  if (await isOfItsEntry(store, tree_id, mark)) return;
  const message = `a mark names entry ${nameInTree(tree_id, mark.seq)}, which is of another request: run \`turnpike ledger verify\``;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
}

/** The marks of archived trees stay, and their entries are in files. */
async function isOfItsEntry(
  store: Pick<LedgerStore, 'tree'>,
  tree_id: string,
  mark: InputMark | ProposalMark,
): Promise<boolean> {
  try {
    let isFirst = true;
    for await (const entry of store.tree(tree_id, mark.seq)) {
      if (!isFirst && entry.type !== 'step_trace') continue;
      const body = bodyOf(entry);
      if (isFirst && entry.type !== 'input') return false;
      if ('input_id' in mark) return body.input_id === mark.input_id;
      if (isFirst && !isProposalOf(body, mark)) return false;
      // A run has one step at a time, so its next trace is that of the proposal.
      if (!isFirst && body.run_id === mark.run_id) return body.step_index === mark.step_index;
      isFirst = false;
    }
    // Without a trace, the step of a proposal is in flight.
    return !isFirst;
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_ARCHIVED') return true;
    throw error;
  }
}

const isProposalOf = ({ kind, run_id, payload }: MarkedEntry, mark: ProposalMark): boolean =>
  kind === 'proposal' && run_id === mark.run_id && payload?.hash_sha256 === mark.payload_sha256;

const bodyOf = ({ text }: TreeEntry): MarkedEntry => (JSON.parse(text) as { readonly body: MarkedEntry }).body;
