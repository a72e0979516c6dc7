// Views of sessions at entries that are not shown yet, so that the panel of a session is drawn with the other panels.

import type { SessionView } from '../../contract/session-view.js';
import type { Feed } from '../data/feed.js';
import type { Rows } from './rows/rows.js';
import type { Run } from './rows/runs.js';

export interface SessionSource {
  readonly feed: Feed;
  readonly rows: Rows;
}

/** Identifies the view of a session at an entry. */
export const sessionKey = (session_id: string, at: number): string => `session ${session_id} ${at}`;

export class SessionViews {
  readonly #source: SessionSource;
  #prepared: { readonly key: string; readonly view: SessionView | null } | null = null;

  constructor(source: SessionSource) {
    this.#source = source;
  }

  /** Fetches the session of a run's tree at an entry. After a failure, the panel requests it itself. */
  async prepare(run: Run, at: number): Promise<void> {
    const { feed, rows } = this.#source;
    const session_id = rows.ids.at(run.tree);
    try {
      this.#prepared = { key: sessionKey(session_id, at), view: await feed.session(session_id, at) };
    } catch {
      this.#prepared = null;
    }
  }

  /** The prepared view; undefined if it was not prepared. */
  get(key: string): SessionView | null | undefined {
    return this.#prepared?.key === key ? this.#prepared.view : undefined;
  }
}
