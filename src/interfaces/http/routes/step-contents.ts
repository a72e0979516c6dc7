// Lists the ledger content in the response of a route: each item is recorded as a read.

import { parseOwnJson } from '../../../core/contract/json.js';
import type { RecordedInput } from '../../../core/contract/run/entry.js';
import type { StepStory } from '../../../core/contract/inspection/inspection.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import { artifactRef, isWithheld } from '../../../core/contract/artifact-ref.js';
import type { StoredEntry } from '../../../engine/ports/ledger/ledger-store.js';
import { type LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';

export type ContentLedger = Pick<LedgerReader, 'tree' | 'log' | 'artifactsOf'>;

/** A content hash, and an entry that attached this content. */
export interface ContentPlace {
  readonly log_index: number;
  readonly sha256: string;
}

/**
 * For the response of a step: its payload, and the result of its action, the words of a tool about its failure, or the
 * earlier response that it repeats.
 */
export async function listStepContents(story: StepStory, ledger: ContentLedger): Promise<readonly ContentPlace[]> {
  const { run_id, proposal, response } = story;
  if (response === null) return [];
  const proposalEntry = await entryAt(proposal, ledger);
  if (proposalEntry === null) return [];
  const attached = (await ledger.artifactsOf(proposalEntry)).map((artifact) => artifactRef(artifact).hash_sha256);
  const [payload, repeated] = attached.map((sha256) => ({ log_index: proposal, sha256 }));
  let result: number | null = null;
  for await (const { log_index, type, text } of ledger.tree(rootRunIdOf(run_id), proposalEntry.seq)) {
    if (type === 'input' && isResultOf(text, run_id)) result = log_index;
    if (log_index !== story.trace) continue;
    const trace = bodyOf(text) as StepTrace;
    const replayed = trace.replay_of === null ? undefined : repeated;
    const resultContent =
      trace.result === null || result === null || !hasResult(response)
        ? undefined
        : { log_index: result, sha256: trace.result.hash_sha256 };
    const words = trace.explanation_ref;
    const wordsContent =
      words === undefined || result === null || !hasExplanation(response)
        ? undefined
        : { log_index: result, sha256: words.hash_sha256 };
    return [payload, replayed ?? resultContent ?? wordsContent].filter((content) => content !== undefined);
  }
  return payload === undefined ? [] : [payload];
}

/** Whether a lane withholds this content from readers. */
export async function isWithheldByLane({ log_index, sha256 }: ContentPlace, ledger: ContentLedger): Promise<boolean> {
  for await (const entry of ledger.log(log_index)) {
    const artifacts = await ledger.artifactsOf(entry);
    return artifacts.some((artifact) => isWithheld(artifact) && artifactRef(artifact).hash_sha256 === sha256);
  }
  return false;
}

async function entryAt(log_index: number, ledger: ContentLedger): Promise<StoredEntry | null> {
  for await (const entry of ledger.log(log_index)) return entry;
  return null;
}

/** Whether a response contains a result. It may contain only an error code, or under a terse exposure neither. */
const hasResult = (response: string): boolean =>
  ((parseOwnJson(response) as { readonly result?: unknown }).result ?? null) !== null;

function hasExplanation(response: string): boolean {
  const { error } = parseOwnJson(response) as { readonly error?: { readonly explanation?: unknown } | null };
  return (error?.explanation ?? null) !== null;
}

function isResultOf(text: string, run_id: string): boolean {
  const { kind, run_id: resultRunId } = bodyOf(text) as RecordedInput;
  return kind === 'result' && resultRunId.startsWith(`${run_id}.`);
}

const bodyOf = (text: string): unknown => (parseOwnJson(text) as { readonly body: unknown }).body;
