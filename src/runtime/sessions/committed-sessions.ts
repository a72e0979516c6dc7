// Sessions as everyone may see them: folded from what is committed, whoever has the home. Of a spec that a lane
// withholds there are hashes.

import { LiveTrees } from '../../engine/trees/live-trees.js';
import { SNAPSHOT_ENTRIES } from '../../engine/trees/snapshots.js';
import type { LedgerStore } from '../../ports/ledger/ledger-store.js';
import type { SessionState } from '../../session/session-state.js';
import { ContentReader } from '../content/content-reader.js';
import { redactSession } from '../content/redact-session.js';
import { rootRunIdOf } from '../ledger/ledger-reader.js';
import { SESSION_PREFIX } from './session-reader.js';

/** @returns null where this ledger has no such session @throws LedgerError LEDGER_TAMPERED when it does not fold */
export async function loadCommittedSession(store: LedgerStore, session_id: string): Promise<SessionState | null> {
  if (!session_id.startsWith(SESSION_PREFIX) || rootRunIdOf(session_id) !== session_id) return null;
  const tree = await new LiveTrees(store, 1, SNAPSHOT_ENTRIES).get(session_id);
  const session = tree?.session ?? null;
  return session === null ? null : redactSession(session, new ContentReader(store));
}

/** In the order in which they were started; `active`: only those that are neither completed nor ended. */
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

const isClosed = ({ status }: SessionState): boolean => status === 'completed' || status === 'ended';
