// Listens to what the sequencer announces (integrate_appends), on a connection of its own. An announcement may be lost
// with the connection: listeners also poll.

import type { Client } from 'pg';
import { BackgroundJob } from '../../../engine/background-job.js';
import type { GrownTree } from '../../../engine/ports/ledger/shared-store.js';
import { systemClock } from '../../../system/system-clock.js';
import { connect, type PostgresPlace } from '../postgres-connection.js';
import type { Row } from '../postgres-values.js';
import { CHANNEL } from '../postgres-schema.js';

/** Time between two attempts to connect, in ms. */
const RECONNECT_MS = 1_000;

type GrownListener = (trees: readonly GrownTree[]) => void;

export class PostgresAnnouncements {
  readonly #place: PostgresPlace;
  readonly #listeners = new Set<GrownListener>();
  /** Connects, again after each loss. */
  readonly #job: BackgroundJob;
  #client: Client | null = null;

  constructor(place: PostgresPlace) {
    this.#place = place;
    this.#job = new BackgroundJob({
      clock: systemClock(),
      run: () => this.#connect(),
      onFailed: () => {
        this.#client = null;
        return RECONNECT_MS;
      },
    });
  }

  /** See `SharedLedgerStore.subscribe`. */
  subscribe(listener: GrownListener): () => void {
    this.#listeners.add(listener);
    this.#job.start(0);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#job.close();
    this.#listeners.clear();
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<null> {
    const client = await connect(this.#place);
    client.on('notification', ({ payload }) => this.#announce(payload ?? ''));
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    this.#client = client;
    const [row] = (await client.query<Row>({ text: `SELECT ${CHANNEL} AS channel` })).rows;
    await client.query({ text: `LISTEN ${row?.['channel'] ?? ''}` });
    // The store may have been closed meanwhile.
    if (this.#job.isStopped) await this.close();
    return null;
  }

  #lose(client: Client): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#job.request(RECONNECT_MS);
  }

  #announce(payload: string): void {
    const trees = payload.split(' ').flatMap((text): readonly GrownTree[] => {
      const [tree_id = '', length] = text.split(':');
      return tree_id === '' || !Number.isSafeInteger(Number(length)) ? [] : [{ tree_id, length: Number(length) }];
    });
    for (const listener of this.#listeners) listener(trees);
  }
}
