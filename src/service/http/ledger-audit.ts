// Who was given content, in the ledger itself (`turnpike.recordReading`). Of entries, which hold hashes and no content,
// nothing is written down: whoever follows the ledger would make it grow by following. What a client asks for again and
// again is written down the first time that a reader is given it, for the same reason.

import { canonicalJson } from '../../contract/canonical-json.js';
import { InvariantError, LedgerError } from '../../errors.js';
import type { LedgerReader } from '../../runtime/ledger-reader.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import type { InspectorSource } from '../inspector/source.js';
import type { Access, AccessAudit } from './service.js';
import { contentsOfStep, isKeptBack, type Content, type ShownLedger } from './shown-content.js';

/** Readings, and sessions, that are remembered; what is forgotten is only told once more. */
const TOLD_MAX = 4_096;
const SESSIONS_MAX = 256;

type Reader = Pick<Access, 'actor' | 'role'>;

/** @returns an audit that writes to the ledger that is served; of an export its own run tells */
export function ledgerAudit(
  turnpike: Pick<Turnpike, 'recordReading'> & { readonly ledger: ShownLedger },
  inspector: InspectorSource | null,
): AccessAudit {
  const { ledger } = turnpike;
  const read = async (content: Content & Reader): Promise<void> => {
    if (await turnpike.recordReading(content)) return;
    // It was there a moment ago: of what nothing is told, nothing is shown.
    throw new LedgerError({ code: 'LEDGER_ERASED', message: `entry ${content.log_index} has lost its content` });
  };
  const once = new Once(read);
  const specs = new SessionSpecs(ledger);
  return async ({ actor, role, route, subject }) => {
    const { log_index, sha256, run_id, step, session_id, at = Infinity } = subject;
    const content = { log_index: Number(log_index), sha256: String(sha256) };
    if (route.endsWith('/artifacts/{sha256}')) {
      await read({ actor, role, ...content });
    } else if (route.endsWith('/steps/{run_id}/{step}')) {
      const story = (await inspector?.step(String(run_id), Number(step))) ?? null;
      const shown = story === null ? [] : await contentsOfStep(story, ledger);
      for (const one of shown) await read({ actor, role, ...one });
    } else if (route.endsWith('/approvals/{run_id}/{digest}')) {
      await once.tell({ actor, role }, content);
    } else if (route === TASK || route === SESSION_VIEW) {
      for (const spec of await specs.of(String(session_id), Number(at))) {
        // A view has no word of it then; a task is not shown at all, but to whoever works through it.
        if (route === SESSION_VIEW && (await isKeptBack(spec, ledger))) continue;
        await once.tell({ actor, role }, spec);
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
class Once {
  readonly #read: (content: Content & Reader) => Promise<unknown>;
  readonly #told = new Map<string, Promise<unknown>>();

  constructor(read: (content: Content & Reader) => Promise<unknown>) {
    this.#read = read;
  }

  /** Resolves when it stands in the ledger, whoever has told of it. */
  async tell({ actor, role }: Reader, { log_index, sha256 }: Content): Promise<void> {
    const key = canonicalJson([actor, role, log_index, sha256]);
    let told = this.#told.get(key);
    if (told === undefined) {
      told = this.#read({ actor, role, log_index, sha256 });
      told.catch(() => this.#told.delete(key));
    }
    keep(this.#told, key, told, TOLD_MAX);
    await told;
  }
}

/** Which specs a session was given: what is shown of it is out of them, whichever holds. */
export class SessionSpecs {
  readonly #ledger: Pick<LedgerReader, 'tree'>;
  readonly #known = new Map<string, { next: number; readonly specs: Content[] }>();

  constructor(ledger: Pick<LedgerReader, 'tree'>) {
    this.#ledger = ledger;
  }

  /** Those of the entries up to `at`. */
  async of(session_id: string, at: number): Promise<readonly Content[]> {
    const known = this.#known.get(session_id) ?? { next: 0, specs: [] };
    keep(this.#known, session_id, known, SESSIONS_MAX);
    for await (const { seq, type, text, log_index } of this.#ledger.tree(session_id, known.next)) {
      // Somebody else may have read on meanwhile.
      if (seq !== known.next) continue;
      known.next = seq + 1;
      const sha256 = type === 'input' && !text.includes(OF_READING) ? SPEC.exec(text)?.[1] : undefined;
      if (sha256 !== undefined) known.specs.push({ log_index, sha256 });
    }
    return known.specs.filter(({ log_index }) => log_index <= at);
  }
}

/** A reference as canonical JSON has it. Text that only looks like one has its quotes escaped. */
const SPEC = /"artifact_kind":"session_spec"[^{}]*"hash_sha256":"([0-9a-f]{64})"/;

/** Whoever was told to have read a spec has not brought one. */
const OF_READING = '"kind":"access"';

function keep<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
