// Reads the untrusted log of a bag line by line. Each entry is checked against its own text, and the trees must be
// complete chains. Whether they are in the log of a ledger is checked by `check-log.ts`.

import { isJsonObject, readJson } from '../../../core/contract/json.js';
import { BagEntry } from '../../../core/contract/evidence/bag-proof.js';
import { NO_PREV, type Entry, type EntryType } from '../../../core/contract/run/entry.js';
import { checkEntry } from '../../../core/ledger/verification/check-entry.js';
import { leafHash } from '../../../core/ledger/proof/merkle.js';
import type { CaseEntry, CaseSlice } from '../../../runtime/case/case-history.js';
import type { CaseEntries } from '../bag-contents.js';
import type { ExportBagRule } from './bag-report.js';
import { LOG } from '../bag-format.js';
import {
  isCanonical,
  isTextProblem,
  LINE_BOUNDS,
  readLines,
  parseText,
  type ExportBagReading,
} from './read-bag-text.js';

export const LOG_PATH = `data/${LOG}`;

/** An entry of a bag with its hash. */
export interface BagLogEntry extends CaseEntry {
  readonly leaf_hash: string;
  /** Its line number, from 1. */
  readonly line: number;
}

/** The end of each tree so far. */
class TreeChains {
  readonly #ends = new Map<string, { readonly seq: number; readonly prev: string }>();

  /** @returns whether the entry is the next one of its tree */
  append({ tree_id, seq, prev }: Entry, leaf_hash: string): boolean {
    const { seq: next, prev: last } = this.#ends.get(tree_id) ?? { seq: 0, prev: NO_PREV };
    this.#ends.set(tree_id, { seq: seq + 1, prev: leaf_hash });
    return seq === next && prev === last;
  }
}

/** The entries of entries.jsonl, in groups. Ends with a finding at the first invalid or misplaced entry. */
export async function* readBagLog(reading: ExportBagReading): AsyncGenerator<readonly BagLogEntry[]> {
  const chains = new TreeChains();
  let last = -1;
  for await (const lines of readLines(reading, LOG_PATH)) {
    const found: BagLogEntry[] = [];
    for (const { number, text } of lines) {
      const entry = parseBagEntry(text, number);
      const problem = isEntry(entry) ? orderProblem(entry, chains, last) : entry;
      if (problem !== null || !isEntry(entry)) {
        const [rule, message] = problem ?? (['bundle.entry_malformed', 'it is not a valid entry'] as const);
        reading.findings.add(rule, LOG_PATH, `line ${number}: ${message}`);
        return;
      }
      last = entry.log_index;
      found.push(entry);
    }
    yield found;
  }
}

type EntryProblem = readonly [ExportBagRule, string];

const isEntry = (found: BagLogEntry | EntryProblem): found is BagLogEntry => 'entry' in found;

function orderProblem(found: BagLogEntry, chains: TreeChains, last: number): EntryProblem | null {
  if (found.log_index <= last) return ['bundle.entry_place', 'it comes after an entry that is behind it in the log'];
  if (chains.append(found.entry, found.leaf_hash)) return null;
  return ['bundle.entry_place', 'it is not the next entry of its tree'];
}

function parseBagEntry(line: string, number: number): BagLogEntry | EntryProblem {
  const read = parseText(BagEntry, line, LINE_BOUNDS);
  if (isTextProblem(read)) return read;
  if (!isCanonical(line, read)) return ['bundle.json_not_canonical', 'it is not canonical JSON'];
  const { entry: text, index: log_index } = read;
  const envelope = parseEnvelope(text);
  if (envelope === null) return ['bundle.entry_malformed', 'it is not a valid entry'];
  const leaf_hash = leafHash(text);
  const { findings } = checkEntry({ ...envelope, log_index, text, leaf_hash });
  const [finding] = findings;
  if (finding !== undefined) return ['bundle.entry_malformed', finding.message];
  return { entry: envelope as Entry, log_index, text, leaf_hash, line: number };
}

/** The parsed text, if it has a place and a type: `checkEntry` decides about the rest. */
function parseEnvelope(text: string): (Pick<Entry, 'tree_id' | 'seq'> & { readonly type: string }) | null {
  const value = readJson(text);
  if (!isJsonObject(value)) return null;
  const { tree_id, seq, type } = value;
  const hasPlace = typeof tree_id === 'string' && typeof seq === 'number' && typeof type === 'string';
  return hasPlace ? (value as unknown as Entry) : null;
}

/** The log of a bag in place of a ledger: the same code generates the files of a bag from either. */
export const caseEntriesOfBag = (reading: ExportBagReading, slice: CaseSlice): CaseEntries => ({
  slice,
  async *entries(types: readonly EntryType[]) {
    for await (const entries of readBagLog(reading)) yield entries.filter(({ entry }) => types.includes(entry.type));
  },
});
