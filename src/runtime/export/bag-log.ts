// The log of a bag, as anybody may have written it: its entries are read line by line, each is checked against its own
// text, and the trees must be whole chains. Whether they are in the log of a ledger, the proof tells (check-log.ts).

import { BagEntry } from '../../contract/bag-proof.js';
import { NO_PREV, type Entry, type EntryType } from '../../contract/entry.js';
import { isJsonObject } from '../../contract/json.js';
import { checkEntry } from '../../ledger/check-entry.js';
import { leafHash } from '../../ledger/merkle.js';
import type { CaseEntry, CaseSlice } from '../case/case-history.js';
import type { CaseEntries } from './bundle-contents.js';
import type { BundleRule } from './bundle-finding.js';
import { LOG } from './bundle-files.js';
import { isCanonical, isProblem, LINE_BOUNDS, linesOf, parsed, type BundleReading } from './bundle-text.js';

export const LOG_PATH = `data/${LOG}`;

/** An entry of a bag with its hash. */
export interface BagLogEntry extends CaseEntry {
  readonly leaf_hash: string;
  /** Of its line, from 1. */
  readonly line: number;
}

/** Where each tree ends, as far as it was read. */
class TreeChains {
  readonly #ends = new Map<string, { readonly seq: number; readonly prev: string }>();

  /** @returns whether the entry is the next one of its tree */
  take({ tree_id, seq, prev }: Entry, leaf_hash: string): boolean {
    const { seq: next, prev: last } = this.#ends.get(tree_id) ?? { seq: 0, prev: NO_PREV };
    this.#ends.set(tree_id, { seq: seq + 1, prev: leaf_hash });
    return seq === next && prev === last;
  }
}

/** The entries of entries.jsonl, some at a time. Ends with a finding at the first that is no entry of its place. */
export async function* bagLog(reading: BundleReading): AsyncGenerator<readonly BagLogEntry[]> {
  const chains = new TreeChains();
  let last = -1;
  for await (const lines of linesOf(reading, LOG_PATH)) {
    const found: BagLogEntry[] = [];
    for (const { number, text } of lines) {
      const entry = entryIn(text, number);
      const problem = isEntry(entry) ? placeProblem(entry, chains, last) : entry;
      if (problem !== null || !isEntry(entry)) {
        const [rule, message] = problem ?? (['bundle.entry_malformed', 'it is no entry'] as const);
        reading.findings.add(rule, LOG_PATH, `line ${number}: ${message}`);
        return;
      }
      last = entry.log_index;
      found.push(entry);
    }
    yield found;
  }
}

type Problem = readonly [BundleRule, string];

const isEntry = (found: BagLogEntry | Problem): found is BagLogEntry => 'entry' in found;

function placeProblem(found: BagLogEntry, chains: TreeChains, last: number): Problem | null {
  if (found.log_index <= last) return ['bundle.entry_place', 'it comes after an entry that is behind it in the log'];
  if (chains.take(found.entry, found.leaf_hash)) return null;
  return ['bundle.entry_place', 'it is not the next entry of its tree'];
}

function entryIn(line: string, number: number): BagLogEntry | Problem {
  const read = parsed(BagEntry, line, LINE_BOUNDS);
  if (isProblem(read)) return read;
  if (!isCanonical(line, read)) return ['bundle.json_not_canonical', 'it is not canonical JSON'];
  const { entry: text, index: log_index } = read;
  const envelope = envelopeOf(text);
  if (envelope === null) return ['bundle.entry_malformed', 'it is no entry'];
  const leaf_hash = leafHash(text);
  const { findings } = checkEntry({ ...envelope, log_index, text, leaf_hash });
  const [finding] = findings;
  if (finding !== undefined) return ['bundle.entry_malformed', finding.message];
  return { entry: envelope as Entry, log_index, text, leaf_hash, line: number };
}

/** The text, parsed, where it has a place and a type: `checkEntry` decides about the rest. */
function envelopeOf(text: string): (Pick<Entry, 'tree_id' | 'seq'> & { readonly type: string }) | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) return null;
    const { tree_id, seq, type } = value;
    const hasPlace = typeof tree_id === 'string' && typeof seq === 'number' && typeof type === 'string';
    return hasPlace ? (value as unknown as Entry) : null;
  } catch {
    return null;
  }
}

/** The log of a bag in the place of a ledger: what was written from one can be made again from the other. */
export const bagEntries = (reading: BundleReading, slice: CaseSlice): CaseEntries => ({
  slice,
  async *entries(types: readonly EntryType[]) {
    for await (const entries of bagLog(reading)) yield entries.filter(({ entry }) => types.includes(entry.type));
  },
});
