// What text a promotion would carry over, found out from the ledger: a fact for the policy, nobody's word.

import { isWithheld } from '../../contract/artifact-ref.js';
import type { Json } from '../../contract/json.js';
import { passagesOf, stringsIn, type Passages } from '../../policy/embedded-text.js';
import { EMBEDDED_TEXT } from '../../policy/prohibitions.js';
import type { LedgerStore } from '../../ports/ledger-store.js';
import { entriesOfCase } from '../export/case-entries.js';

/** Text of a case that is looked through at most; nothing of a larger case passes for free of embedded text. */
export const SEARCHED_BYTES_MAX = 268_435_456;

/**
 * S4-73: does the record repeat a passage of anything that the ledger holds of the case?
 * @returns the flag by which the policy knows embedded text, or none
 */
export async function embeddedText(store: LedgerStore, case_id: string, record: Json): Promise<readonly string[]> {
  const strings = stringsIn(record);
  if (strings === null) return [EMBEDDED_TEXT];
  const passages = passagesOf(strings.join('\n'));
  let bytes = 0;
  for await (const entries of entriesOfCase(store, { case_id, head: await store.head() }, ['input'])) {
    for (const { entry } of entries) {
      for (const artifact of await store.artifactsOf(entry)) {
        if (artifact.case_id !== case_id) continue;
        // Nobody can tell any more what it said.
        if (isWithheld(artifact)) return [EMBEDDED_TEXT];
        bytes += artifact.bytes.byteLength;
        if (bytes > SEARCHED_BYTES_MAX || occurs(passages, artifact.bytes)) return [EMBEDDED_TEXT];
        // The search is work for the processor alone: others take their turn between two texts.
        await new Promise(setImmediate);
      }
    }
  }
  return [];
}

/** Most content is JSON, where words stand between escapes: it is looked at as it stands, and without them. */
function occurs(passages: Passages, bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('utf8');
  return passages.occursIn(text) || (text.includes('\\') && passages.occursIn(unescaped(text)));
}

const unescaped = (text: string): string =>
  text
    .replace(/\\u([0-9a-fA-F]{4})/gu, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\[ntrbf"\\/]/gu, ' ');
