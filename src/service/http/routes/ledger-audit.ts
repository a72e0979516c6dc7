// Who was given content, in the ledger itself (`turnpike.recordReading`). Of entries, which hold hashes and no content,
// nothing is written down: whoever follows the ledger would make it grow by following. What a client asks for again and
// again is written down the first time that a reader is given it, for the same reason.

import { canonicalJson } from '../../../contract/canonical-json.js';
import { InvariantError, LedgerError } from '../../../errors.js';
import type { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import type { Turnpike } from '../../../runtime/turnpike.js';
import type { InspectorSource } from '../../inspector/inspector-source.js';
import type { Access, AccessAudit } from '../http-service.js';
import { listStepContents, isWithheldByLane, type ContentPlace, type ContentLedger } from './step-contents.js';

/** Readings, and sessions, that are remembered; what is forgotten is only told once more. */
const READINGS_REMEMBERED_MAX = 4_096;
const SESSIONS_MAX = 256;

type ReaderIdentity = Pick<Access, 'actor' | 'role'>;

/** @returns an audit that writes to the ledger that is served; of an export its own run tells */
export function ledgerAudit(
  turnpike: Pick<Turnpike, 'recordReading'> & { readonly ledger: ContentLedger },
  inspector: InspectorSource | null,
): AccessAudit {
  const { ledger } = turnpike;
  const read = async (content: ContentPlace & ReaderIdentity): Promise<void> => {
    if (await turnpike.recordReading(content)) return;
    // It was there a moment ago: of what nothing is told, nothing is shown.
    throw new LedgerError({ code: 'LEDGER_ERASED', message: `entry ${content.log_index} has lost its content` });
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
        // A view has no word of it then; a task is not shown at all, but to whoever works through it.
        if (route === SESSION_VIEW && (await isWithheldByLane(spec, ledger))) continue;
        await readings.record({ actor, role }, spec);
      }
    } else if (!WITHOUT_CONTENT.has(route)) {
      throw new InvariantError(`nobody has said whether ${route} shows content`);
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
  // Its own run is its record.
  '/api/v1/exports',
]);

/** Tells of each reader and content once, until it is forgotten. */
class ReadingLog {
  readonly #recordReading: (content: ContentPlace & ReaderIdentity) => Promise<unknown>;
  readonly #recorded = new Map<string, Promise<unknown>>();

  constructor(read: (content: ContentPlace & ReaderIdentity) => Promise<unknown>) {
    this.#recordReading = read;
  }

  /** Resolves when it stands in the ledger, whoever has told of it. */
  async record({ actor, role }: ReaderIdentity, { log_index, sha256 }: ContentPlace): Promise<void> {
    const key = canonicalJson([actor, role, log_index, sha256]);
    let recorded = this.#recorded.get(key);
    if (recorded === undefined) {
      recorded = this.#recordReading({ actor, role, log_index, sha256 });
      recorded.catch(() => this.#recorded.delete(key));
    }
    setBounded(this.#recorded, key, recorded, READINGS_REMEMBERED_MAX);
    await recorded;
  }
}

/** Which specs a session was given: what is shown of it is out of them, whichever holds. */
export class SessionSpecs {
  readonly #ledger: Pick<LedgerReader, 'tree'>;
  readonly #known = new Map<string, { next: number; readonly specs: ContentPlace[] }>();

  constructor(ledger: Pick<LedgerReader, 'tree'>) {
    this.#ledger = ledger;
  }

  /** Those of the entries up to `at`. */
  async list(session_id: string, at: number): Promise<readonly ContentPlace[]> {
    const known = this.#known.get(session_id) ?? { next: 0, specs: [] };
    setBounded(this.#known, session_id, known, SESSIONS_MAX);
    for await (const { seq, type, text, log_index } of this.#ledger.tree(session_id, known.next)) {
      // Somebody else may have read on meanwhile.
      if (seq !== known.next) continue;
      known.next = seq + 1;
      const sha256 = type === 'input' && !text.includes(ACCESS_INPUT) ? SPEC.exec(text)?.[1] : undefined;
      if (sha256 !== undefined) known.specs.push({ log_index, sha256 });
    }
    return known.specs.filter(({ log_index }) => log_index <= at);
  }
}

/** A reference as canonical JSON has it. Text that only looks like one has its quotes escaped. */
const SPEC = /"artifact_kind":"session_spec"[^{}]*"hash_sha256":"([0-9a-f]{64})"/;

/** Whoever was told to have read a spec has not brought one. */
const ACCESS_INPUT = '"kind":"access"';

function setBounded<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
