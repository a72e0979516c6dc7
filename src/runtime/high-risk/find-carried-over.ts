// What a promotion would carry over of its case, found out from the record and the ledger: facts for the policy. The
// run's input records them, so a replay needs neither the detectors nor the case.

import { isWithheld } from '../../contract/artifact-ref.js';
import { findingFlag } from '../../policy/content/content-findings.js';
import { EMBEDDED_TEXT } from '../../policy/prohibitions.js';
import type { LedgerStore } from '../../ports/ledger/ledger-store.js';
import type { Pace } from '../../ports/pace.js';
import type { CaseHistory } from '../case/case-history.js';
import { ContentSearch, type PromotedRecord } from './content-search.js';

/** Text of a case that is looked through at most; nothing of a larger case passes for free of embedded text. */
export const SEARCHED_BYTES_MAX = 268_435_456;

interface SearchSources {
  readonly store: LedgerStore;
  readonly pace: Pace;
  /** By default `SEARCHED_BYTES_MAX`. */
  readonly bytesMax?: number;
}

/**
 * S4-73, C92: does the record repeat a passage of the case in the ledger, or identify a person?
 * @returns the flags by which the policy knows embedded text and each finding, or none
 */
export async function findCarriedOver(
  sources: SearchSources,
  history: CaseHistory,
  carried: PromotedRecord,
): Promise<readonly string[]> {
  const search = ContentSearch.create(carried);
  if (search === null) return [EMBEDDED_TEXT];
  const embedded = await searchCase(sources, history, search);
  const flags = search.findings.map(findingFlag);
  return embedded ? [EMBEDDED_TEXT, ...flags] : flags;
}

/** Reads the texts of the case. @returns whether a passage was found, or a text that cannot be read */
async function searchCase(sources: SearchSources, history: CaseHistory, search: ContentSearch): Promise<boolean> {
  const { store, pace, bytesMax = SEARCHED_BYTES_MAX } = sources;
  const { case_id } = history.slice;
  const pause = pace.begin(0);
  let bytes = 0;
  let embedded = false;
  for await (const entries of history.entries(['input'])) {
    for (const { entry } of entries) {
      for (const artifact of await store.artifactsOf(entry)) {
        // What a person asked to be promoted or exported is no text of the case: what it repeats is found where it is.
        if (artifact.case_id !== case_id || artifact.kind === 'request') continue;
        // What an erased text said cannot be known any more.
        if (isWithheld(artifact)) return true;
        bytes += artifact.bytes.byteLength;
        if (bytes > bytesMax) return true;
        embedded = search.read(artifact.bytes) || embedded;
        // The search is work for the processor alone: others take their turn between two texts.
        await pause();
      }
    }
  }
  return embedded;
}
