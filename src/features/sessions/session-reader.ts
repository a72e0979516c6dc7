// Reads sessions: which exist, their state, and the text of their tasks. Nothing here changes a session.

import { LiveTrees } from '../../engine/trees/live-trees.js';
import { SNAPSHOT_ENTRIES } from '../../engine/trees/snapshots.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { ReadControl } from '../../engine/ports/pace.js';
import { effectiveStatus } from './rules/agent-activity.js';
import { findTask } from './rules/task-progress.js';
import type { SessionState } from './rules/session-state.js';
import { sessionOf } from './tree/session-of.js';
import { ContentReader } from '../../runtime/content/content-reader.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import { redactSession } from './redact-session.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { SessionSummary, TaskDetails } from './sessions.js';

/** Prefix of session ids, which are also the ids of their trees. */
export const SESSION_PREFIX = 'ses_';

export interface LedgerSession {
  readonly session: SessionState;
  readonly case_id: string | null;
}

type SessionReaderParts = Pick<HostAccess, 'engine' | 'store' | 'clock' | 'pace'>;

/** Milliseconds that a pass over all sessions works before other work runs. */
const TURN_MS = 5;

export class SessionReader {
  readonly #parts: SessionReaderParts;
  /** Passes without a control run one after another: concurrent ones would repeat the same work. */
  #listing: Promise<unknown> = Promise.resolve();

  constructor(parts: SessionReaderParts) {
    this.#parts = parts;
  }

  async find(session_id: string): Promise<LedgerSession | null> {
    if (!isSessionId(session_id)) return null;
    const tree = await this.#parts.engine.peek(session_id);
    const session = tree === null ? null : sessionOf(tree);
    return tree === null || session === null ? null : { session, case_id: tree.case_id };
  }

  /** The session of a spec that is neither completed nor ended. */
  async findActive(spec_id: string): Promise<SessionState | null> {
    const pause = this.#parts.pace.begin(TURN_MS);
    for await (const { tree_id, ended } of this.#parts.store.trees()) {
      await pause();
      if (ended || !tree_id.startsWith(SESSION_PREFIX)) continue;
      const session = (await this.find(tree_id))?.session;
      if (session?.spec.id === spec_id && !isClosed(session)) return session;
    }
    return null;
  }

  /**
   * Newest first. Sessions that are not in memory are folded, so the pass yields to other work.
   * @param control charges the pass to its caller, and cancels it; without one, passes run one after another
   */
  list(spec_id?: string, control?: ReadControl): Promise<readonly SessionSummary[]> {
    if (control !== undefined) return this.#list(spec_id, control);
    const listing = this.#listing.then(() => this.#list(spec_id, { pause: this.#parts.pace.begin(TURN_MS) }));
    this.#listing = listing.catch(() => undefined);
    return listing;
  }

  async #list(
    spec_id: string | undefined,
    { pause, signal }: Pick<ReadControl, 'pause'> & Partial<ReadControl>,
  ): Promise<readonly SessionSummary[]> {
    const summaries: SessionSummary[] = [];
    const now = new Date(this.#parts.clock.now()).toISOString();
    for await (const { tree_id } of this.#parts.store.trees(signal === undefined ? {} : { signal })) {
      await pause();
      const session = (await this.find(tree_id))?.session;
      if (session === undefined || (spec_id !== undefined && session.spec.id !== spec_id)) continue;
      summaries.push(toSummary(session, now));
    }
    return summaries.sort((a, b) => (a.created_at_utc < b.created_at_utc ? 1 : -1));
  }
}

const isSessionId = (id: string): boolean => id.startsWith(SESSION_PREFIX) && rootRunIdOf(id) === id;
export const isClosed = ({ status }: SessionState): boolean => status === 'completed' || status === 'ended';

export const toSummary = (session: SessionState, now: string): SessionSummary => ({
  session_id: session.session_id,
  spec_id: session.spec.id,
  status: session.status,
  effective_status: effectiveStatus(session, now),
  created_at_utc: session.created_at,
});

/** The text of a task, by default that of the outstanding step; null if there is no such task. */
export function findTaskDetails(session: SessionState, task_id?: string): TaskDetails | null {
  const found = findTask(session, task_id ?? session.outstanding?.step.task_id ?? '');
  if (found === null) return null;
  const { phase, task } = found;
  const implementTask = task.type === 'verify' ? null : task;
  return {
    task_id: task.id,
    phase_id: phase.id,
    title: task.title,
    instruction: task.instruction ?? task.title,
    acceptance: implementTask?.acceptance ?? [],
    files: implementTask?.files ?? [],
    depends_on: task.depends_on ?? [],
    status: session.tasks[task.id] ?? 'pending',
  };
}

/**
 * Folds a session from committed entries, for any process that can read the home. If a lane withholds the spec, its
 * texts are hashes.
 * @returns null if this ledger has no such session
 * @throws LedgerError LEDGER_TAMPERED if it cannot be folded
 */
export async function loadCommittedSession(store: LedgerStore, session_id: string): Promise<SessionState | null> {
  if (!isSessionId(session_id)) return null;
  const tree = await new LiveTrees(store, 1, SNAPSHOT_ENTRIES).get(session_id);
  const session = tree === null ? null : sessionOf(tree);
  return session === null ? null : redactSession(session, new ContentReader(store));
}

/** All sessions in the order of their start; with `active`, only those that are neither completed nor ended. */
export async function* listCommittedSessions(
  store: LedgerStore,
  { active }: { readonly active: boolean },
): AsyncIterable<SessionState> {
  const found: string[] = [];
  for await (const { tree_id, ended } of store.trees()) {
    if (tree_id.startsWith(SESSION_PREFIX) && !(active && ended)) found.push(tree_id);
  }
  for (const session_id of found) {
    const session = await loadCommittedSession(store, session_id);
    if (session !== null && !(active && isClosed(session))) yield session;
  }
}
