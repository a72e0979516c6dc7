// Records in the ledger itself who was shown content (`turnpike.recordReading`). Reads of entries, which contain hashes
// but no content, are not recorded: a client that follows the ledger would make it grow. For the same reason, content
// that a client polls is recorded only the first time.

import { nameInLedger } from '../../../core/contract/entry-name.js';
import { canonicalJson, parseOwnJson } from '../../../core/contract/json.js';
import { InvariantError, LedgerError } from '../../../core/errors.js';
import { createLruMap } from '../../../system/lru-map.js';
import type { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import type { Turnpike } from '../../../host/turnpike.js';
import type { InspectorSource } from '../../inspector/inspector-source.js';
import type { Access, AccessAudit } from '../http-service.js';
import type { RecordedInput } from '../../../core/contract/run/entry.js';
import type { StepStory } from '../../../core/contract/inspection/inspection.js';
import type { StepTrace } from '../../../core/contract/run/step-trace.js';
import { artifactRef, isWithheld } from '../../../core/contract/artifact-ref.js';
import type { StoredEntry } from '../../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';

/** Limits of the caches of reads and sessions; an evicted read is only recorded once more. */
const READINGS_REMEMBERED_MAX = 4_096;
const SESSIONS_MAX = 256;

type ReaderIdentity = Pick<Access, 'actor' | 'role'>;

/** @returns an audit that writes to the served ledger; an export needs no entry, because its own run records it */
export function ledgerAudit(
  turnpike: Pick<Turnpike, 'recordReading'> & { readonly ledger: ContentLedger },
  inspector: InspectorSource | null,
): AccessAudit {
  const { ledger } = turnpike;
  const read = async (content: ContentPlace & ReaderIdentity): Promise<void> => {
    if (await turnpike.recordReading(content)) return;
    // The content was erased meanwhile: a read that cannot be recorded is not allowed.
    throw new LedgerError({
      code: 'LEDGER_ERASED',
      message: `entry ${nameInLedger(content.log_index)} has lost its content`,
    });
  };
  const readings = new ReadingLog(read);
  const specs = new SessionSpecs(ledger);
  return async ({ actor, role, route, subject }) => {
    const { log_index, sha256, run_id, step, session_id, at = Infinity } = subject;
    const content = { log_index: Number(log_index), sha256: String(sha256) };
    if (route.endsWith('/artifacts/{sha256}')) {
      await read({ actor, role, ...content });
    } else if (route.endsWith('/steps/{run_id}/{step}')) {
      const story = (await inspector?.step(String(run_id), Number(step))) ?? null;
      const shown = story === null ? [] : await listStepContents(story, ledger);
      for (const item of shown) await read({ actor, role, ...item });
    } else if (route.endsWith('/approvals/{run_id}/{digest}')) {
      await readings.record({ actor, role }, content);
    } else if (route === TASK || route === SESSION_VIEW) {
      for (const spec of await specs.list(String(session_id), Number(at))) {
        // The view then contains no text of the spec. A task is shown only to the caller that works through the
        // session.
        if (route === SESSION_VIEW && (await isWithheldByLane(spec, ledger))) continue;
        await readings.record({ actor, role }, spec);
      }
    } else if (!WITHOUT_CONTENT.has(route)) {
      throw new InvariantError(`it is not defined whether ${route} shows content`);
    }
  };
}

const TASK = '/api/v1/sessions/{session_id}/task';
const SESSION_VIEW = '/api/v1/inspector/sessions/{session_id}';

const WITHOUT_CONTENT: ReadonlySet<string> = new Set([
  '/api/v1/events',
  '/api/v1/events/{log_index}',
  '/api/v1/inspector/entries',
  '/api/v1/stream',
  // The run of the export records it.
  '/api/v1/exports',
]);

/** Records each pair of reader and content once, until the pair is evicted. */
class ReadingLog {
  readonly #recordReading: (content: ContentPlace & ReaderIdentity) => Promise<unknown>;
  readonly #recorded = createLruMap<Promise<unknown>>(READINGS_REMEMBERED_MAX);

  constructor(read: (content: ContentPlace & ReaderIdentity) => Promise<unknown>) {
    this.#recordReading = read;
  }

  /** Resolves when the read is in the ledger, whichever request recorded it. */
  async record({ actor, role }: ReaderIdentity, { log_index, sha256 }: ContentPlace): Promise<void> {
    const key = canonicalJson([actor, role, log_index, sha256]);
    let recorded = this.#recorded.get(key);
    if (recorded === undefined) {
      recorded = this.#recordReading({ actor, role, log_index, sha256 });
      recorded.catch(() => this.#recorded.delete(key));
      this.#recorded.set(key, recorded);
    }
    await recorded;
  }
}

/** Lists the specs that a session received: texts of a session come from one of them. */
export class SessionSpecs {
  readonly #ledger: Pick<LedgerReader, 'tree'>;
  readonly #known = createLruMap<{ next: number; readonly specs: ContentPlace[] }>(SESSIONS_MAX);

  constructor(ledger: Pick<LedgerReader, 'tree'>) {
    this.#ledger = ledger;
  }

  /** The specs in the entries up to and including `at`. */
  async list(session_id: string, at: number): Promise<readonly ContentPlace[]> {
    const known = this.#known.get(session_id) ?? { next: 0, specs: [] };
    this.#known.set(session_id, known);
    for await (const { seq, type, text, log_index } of this.#ledger.tree(session_id, known.next)) {
      // A concurrent call may have read further meanwhile.
      if (seq !== known.next) continue;
      known.next = seq + 1;
      const sha256 = type === 'input' && !text.includes(ACCESS_INPUT) ? SPEC.exec(text)?.[1] : undefined;
      if (sha256 !== undefined) known.specs.push({ log_index, sha256 });
    }
    return known.specs.filter(({ log_index }) => log_index <= at);
  }
}

/** A reference in canonical JSON. In text that only looks like one, the quotes are escaped. */
const SPEC = /"artifact_kind":"session_spec"[^{}]*"hash_sha256":"([0-9a-f]{64})"/;

/** Marks the record of a read of a spec, which does not attach one. */
const ACCESS_INPUT = '"kind":"access"';

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
