// Listens to what the sequencer announces (integrate_appends), on a connection of its own. An announcement may be lost
// with the connection: listeners also poll.

import type { Client } from 'pg';
import type { GrownTree } from '../../../engine/ports/ledger/shared-store.js';
import { connect, type PostgresPlace, type Row } from '../postgres-connection.js';

/** Time between two attempts to connect, in ms. */
const RECONNECT_MS = 1_000;

type GrownListener = (trees: readonly GrownTree[]) => void;

/** The channel of a ledger, as an SQL expression. */
export const CHANNEL = `'turnpike_' || 'head'::regclass::oid`;

export class PostgresAnnouncements {
  readonly #place: PostgresPlace;
  readonly #listeners = new Set<GrownListener>();
  #client: Client | null = null;
  #isConnecting = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(place: PostgresPlace) {
    this.#place = place;
  }

  /** See `SharedLedgerStore.subscribe`. */
  subscribe(listener: GrownListener): () => void {
    this.#listeners.add(listener);
    void this.#connect();
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#listeners.clear();
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<void> {
    if (this.#isClosed || this.#isConnecting || this.#client !== null) return;
    this.#isConnecting = true;
    try {
      const client = await connect(this.#place);
      client.on('notification', ({ payload }) => this.#announce(payload ?? ''));
      client.on('error', () => this.#lose(client));
      client.on('end', () => this.#lose(client));
      this.#client = client;
      const [row] = (await client.query<Row>({ text: `SELECT ${CHANNEL} AS channel` })).rows;
      await client.query({ text: `LISTEN ${row?.['channel'] ?? ''}` });
      if (this.#wasClosed()) await this.close();
    } catch {
      this.#reconnectLater();
    }
    this.#isConnecting = false;
  }

  /** Asked after a wait: the store may have been closed meanwhile. */
  #wasClosed(): boolean {
    return this.#isClosed;
  }

  #lose(client: Client): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#reconnectLater();
  }

  #reconnectLater(): void {
    if (this.#isClosed) return;
    this.#client = null;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(), RECONNECT_MS);
    this.#timer.unref();
  }

  #announce(payload: string): void {
    const trees = payload.split(' ').flatMap((text): readonly GrownTree[] => {
      const [tree_id = '', length] = text.split(':');
      return tree_id === '' || !Number.isSafeInteger(Number(length)) ? [] : [{ tree_id, length: Number(length) }];
    });
    for (const listener of this.#listeners) listener(trees);
  }
}
