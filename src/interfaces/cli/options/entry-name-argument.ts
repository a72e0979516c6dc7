// How people name an entry: `@55` is entry 55 of the ledger, `run_…#24` is entry 24 of a run tree. Commands print these
// forms and accept them. A bare number has neither, so it is accepted only if both readings mean the same entry.

import { nameInLedger, nameInTree } from '../../../core/contract/entry-name.js';
import { RunError, usageError } from '../../../core/errors.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';
import { quoteArgument } from '../arguments.js';

/** The lines of the help of a command that takes an entry. */
export const ENTRY_NOTES: readonly string[] = [
  'ENTRY is @55 for entry 55 of the ledger, or run_ID#24 for entry 24 of that run tree, as commands print them. A bare',
  'number is refused if these could be two entries.',
];

/** An entry as a person has named it. */
export type EntryName =
  | { readonly kind: 'ledger'; readonly log_index: number }
  | { readonly kind: 'tree'; readonly tree_id: string; readonly seq: number }
  | { readonly kind: 'number'; readonly number: number };

const NUMBER = '(0|[1-9]\\d{0,14})';
const NAME = new RegExp(`^(?:@${NUMBER}|((?:run|ses)_[\\w.]+)[#:]${NUMBER}|${NUMBER})$`, 'u');

/** @throws UsageError for any other text */
export function parseEntryName(text: string): EntryName {
  const [, index, tree, seq, number] = NAME.exec(text) ?? [];
  if (index !== undefined) return { kind: 'ledger', log_index: Number(index) };
  if (tree !== undefined) return { kind: 'tree', tree_id: rootRunIdOf(tree), seq: Number(seq) };
  if (number !== undefined) return { kind: 'number', number: Number(number) };
  throw usageError(
    `${quoteArgument(text)} names no entry: @55 is entry 55 of the ledger, run_ID#24 is entry 24 of that run tree`,
  );
}

interface NamedEntry {
  readonly log_index: number | null;
  readonly tree_id: string;
  readonly seq: number;
}

/** A ledger in which an entry is looked up: a reader, a store or a bundle. */
export interface NamedEntries {
  tree(tree_id: string, fromSeq: number): AsyncIterable<NamedEntry>;
  trees(): AsyncIterable<{ readonly tree_id: string }> | Iterable<{ readonly tree_id: string }>;
}

/**
 * The index in the ledger of the named entry. It may be past the end, which the reader of the entry reports.
 * @throws RunError RUN_UNKNOWN for an entry of a tree that does not exist; UsageError for a number that could mean two
 * entries
 */
export async function findLogIndex(text: string, ledger: NamedEntries): Promise<number> {
  const name = parseEntryName(text);
  if (name.kind === 'ledger') return name.log_index;
  if (name.kind === 'tree') {
    const found = await entryOf(ledger, name.tree_id, name.seq);
    if (found?.log_index != null) return found.log_index;
    const message = `this ledger has no entry ${nameInTree(name.tree_id, name.seq)}`;
    throw new RunError({ code: 'RUN_UNKNOWN', message });
  }
  const { number } = name;
  for await (const { tree_id } of ledger.trees()) {
    const other = await entryOf(ledger, tree_id, number);
    if (other === null || other.log_index === number) continue;
    throw usageError(
      `${number} could be two entries: ${nameInLedger(number)} is entry ${number} of the ledger, ` +
        `and ${nameInTree(tree_id, number)} is entry ${number} of that run tree`,
    );
  }
  return number;
}

async function entryOf(ledger: NamedEntries, tree_id: string, seq: number): Promise<NamedEntry | null> {
  for await (const entry of ledger.tree(tree_id, seq)) return entry.seq === seq ? entry : null;
  return null;
}
