// The environment of a victim: the real stores of a real home, wrapped in fault points.

import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { LedgerError } from '../../src/core/errors.js';
import type { Ids } from '../../src/engine/ports/ids.js';
import type {
  Batch,
  CommitResult,
  ExternalHeadStore,
  LedgerStore,
  LogHead,
} from '../../src/engine/ports/ledger/ledger-store.js';
import type { LedgerRecords } from '../../src/engine/ports/effects/records.js';
import { createHome, homePaths, isVacant, openHome } from '../../src/home/home.js';
import { openTurnpikeIn, type Turnpike, type TurnpikeOptions } from '../../src/host/turnpike.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';
import { JournalledSandbox, type Planted } from './executor.js';
import type { Hooks } from './fault-points.js';
import { interpreter } from './interpreter.js';
import { append, type Places } from './journal.js';

export interface Laying {
  readonly places: Places;
  readonly hooks: Hooks;
  /** Distinguishes the ids of this process from those of others on the same home. */
  readonly life: string;
  readonly planted?: Planted;
  /** From this write on, the head file is silently not written. */
  readonly headStuckFrom?: number;
  /** What an embedding service supplies: its policy, its tools and its tables. */
  readonly service?: Partial<TurnpikeOptions>;
  /** Wraps the records in the ledger's own database. */
  readonly aroundRecords?: (own: LedgerRecords) => LedgerRecords;
  /** Called with each batch before anything else. */
  readonly beforeCommit?: (batch: Batch) => void;
}

/** How far the head file was behind the ledger. */
export interface Lag {
  committed: number;
  vouched: number;
  most: number;
}

export interface Opened {
  readonly turnpike: Turnpike;
  readonly lag: Lag;
  readonly close: () => Promise<void>;
}

/** Opens the home in these folders; creates it if it does not exist. */
export async function openAt(laying: Laying): Promise<Opened> {
  const { places, hooks, life } = laying;
  const paths = isVacant(places.home) ? await createHome(places.home) : homePaths(places.home);
  const { store, externalHeadStore } = openHome(paths, { readOnly: false });
  const lag: Lag = { committed: 0, vouched: 0, most: 0 };
  const files = openSandbox({ root: paths.sandbox });
  const sandbox = new JournalledSandbox({ ...laying, sandbox: files, root: paths.sandbox });
  try {
    const turnpike = await openTurnpikeIn(
      {
        home: paths,
        store: new HookedStore(store, laying, lag),
        externalHeadStore: new HookedHeadStore(externalHeadStore, hooks, lag, laying.headStuckFrom ?? Infinity),
      },
      {
        ...laying.service,
        ...{ home: places.home, sandbox, control: false, ids: idsOf(life), log: winstonLog('silent') },
        interpreter,
        // These campaigns test the failure itself, and not what is refused before it.
        storage: { freeBytesMin: 1, reservedBytes: 1 },
      },
    );
    const close = async (): Promise<void> => {
      await turnpike.close();
      files.close();
    };
    return { turnpike, lag, close };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** The same ids for the same life. */
function idsOf(life: string): Ids {
  let drawn = 0;
  return { draw: (prefix) => `${prefix}${`L${life}N${(drawn += 1)}N`.padEnd(21, '0')}` };
}

/** How long `ack-before-commit` delays a commit that it has acknowledged. */
const PLANTED_MS = 25;

class HookedStore extends ForwardingStore {
  readonly #laying: Laying;
  readonly #lag: Lag;
  readonly #records: LedgerRecords | null;

  constructor(inner: LedgerStore, laying: Laying, lag: Lag) {
    super(inner);
    this.#laying = laying;
    this.#lag = lag;
    const { records } = inner;
    this.#records = records === null ? null : (laying.aroundRecords?.(records) ?? records);
  }

  override get records(): LedgerRecords | null {
    return this.#records;
  }

  override commit: LedgerStore['commit'] = async (batch) => {
    const { hooks, planted, places, beforeCommit } = this.#laying;
    beforeCommit?.(batch);
    hooks.pass('commit.before');
    let result: CommitResult = { head: null, first_log_indexes: null };
    if (planted === 'ack-before-commit') {
      setTimeout(() => void this.inner.commit(batch).catch(() => undefined), PLANTED_MS);
    } else {
      result = await this.inner.commit(batch).catch((error: unknown) => {
        append(places.journal, { at: 'commit failed', code: error instanceof LedgerError ? error.code : '' });
        throw error;
      });
    }
    this.#lag.committed = result.head?.size ?? this.#lag.committed;
    hooks.pass('commit.after');
    return result;
  };
}

class HookedHeadStore implements ExternalHeadStore {
  readonly #inner: ExternalHeadStore;
  readonly #hooks: Hooks;
  readonly #lag: Lag;
  readonly #stuckFrom: number;
  #writes = 0;

  constructor(inner: ExternalHeadStore, hooks: Hooks, lag: Lag, stuckFrom: number) {
    this.#inner = inner;
    this.#hooks = hooks;
    this.#lag = lag;
    this.#stuckFrom = stuckFrom;
  }

  reopen = () => this.#inner.reopen();
  close = () => this.#inner.close();

  async read(): Promise<Pick<LogHead, 'size' | 'root'> | null> {
    const head = await this.#inner.read();
    this.#lag.vouched = head?.size ?? 0;
    return head;
  }

  async write(head: Pick<LogHead, 'size' | 'root'>): Promise<void> {
    this.#hooks.pass('externalHeadStore.before');
    this.#writes += 1;
    if (this.#writes < this.#stuckFrom) {
      await this.#inner.write(head);
      this.#lag.vouched = head.size;
    }
    this.#hooks.pass('externalHeadStore.after');
  }
}
