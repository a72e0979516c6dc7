// The ground that a victim stands on: the real stores of a real home, with the fault points around them.

import { openSandbox } from '../../src/adapters/sandbox.js';
import { winstonLog } from '../../src/adapters/winston-log.js';
import { LedgerError } from '../../src/errors.js';
import type { Ids } from '../../src/ports/ids.js';
import type { Batch, Erasure, HeadAnchor, LedgerStore, LogHead } from '../../src/ports/ledger-store.js';
import type { OwnRecords } from '../../src/ports/records.js';
import { createHome, homePaths, isVacant, openHome } from '../../src/runtime/home.js';
import { openTurnpikeOn, type Turnpike, type TurnpikeOptions } from '../../src/runtime/turnpike.js';
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
  /** From this write on the head file is not written any more, and nobody is told. */
  readonly anchorStuckFrom?: number;
  /** What an embedding service brings along: its policy, its tools and its tables. */
  readonly service?: Partial<TurnpikeOptions>;
  /** Put around the records in the ledger's own database. */
  readonly aroundRecords?: (own: OwnRecords) => OwnRecords;
  /** Told of each batch before anything else is. */
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

/** Opens the home at these places, which is made where there is none. */
export async function openAt(laying: Laying): Promise<Opened> {
  const { places, hooks, life } = laying;
  const paths = isVacant(places.home) ? await createHome(places.home) : homePaths(places.home);
  const { store, anchor } = openHome(paths, { readOnly: false });
  const lag: Lag = { committed: 0, vouched: 0, most: 0 };
  const files = openSandbox({ root: paths.sandbox });
  const sandbox = new JournalledSandbox({ ...laying, sandbox: files, root: paths.sandbox });
  try {
    const turnpike = await openTurnpikeOn(
      {
        home: paths,
        store: new HookedStore(store, laying, lag),
        anchor: new HookedAnchor(anchor, hooks, lag, laying.anchorStuckFrom ?? Infinity),
      },
      {
        ...laying.service,
        ...{ home: places.home, sandbox, control: false, ids: idsOf(life), log: winstonLog('silent') },
        interpreter,
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

/** How long `ack-before-commit` lets a commit wait that it has acknowledged. */
const PLANTED_MS = 25;

class HookedStore implements LedgerStore {
  readonly #inner: LedgerStore;
  readonly #laying: Laying;
  readonly #lag: Lag;
  readonly records: OwnRecords | null;

  constructor(inner: LedgerStore, laying: Laying, lag: Lag) {
    this.#inner = inner;
    this.#laying = laying;
    this.#lag = lag;
    const { records } = inner;
    this.records = records === null ? null : (laying.aroundRecords?.(records) ?? records);
  }

  acquire = () => this.#inner.acquire();
  reopen = () => this.#inner.reopen();
  head = () => this.#inner.head();
  tree = (tree_id: string, fromSeq?: number) => this.#inner.tree(tree_id, fromSeq);
  log = (fromIndex?: number) => this.#inner.log(fromIndex);
  trees = () => this.#inner.trees();
  artifactsOf = (log_index: number) => this.#inner.artifactsOf(log_index);
  artifact = (case_id: string | null, sha256: string) => this.#inner.artifact(case_id, sha256);
  erase = (erasure: Erasure) => this.#inner.erase(erasure);
  proposal = (root: string, id: string) => this.#inner.proposal(root, id);
  input = (tree_id: string, input_id: string) => this.#inner.input(tree_id, input_id);
  get snapshots() {
    return this.#inner.snapshots;
  }
  get runRecords() {
    return this.#inner.runRecords;
  }
  get archives() {
    return this.#inner.archives;
  }
  close = () => this.#inner.close();

  async commit(batch: Batch): Promise<void> {
    const { hooks, planted, places, beforeCommit } = this.#laying;
    beforeCommit?.(batch);
    hooks.pass('commit.before');
    if (planted === 'ack-before-commit') {
      setTimeout(() => void this.#inner.commit(batch).catch(() => undefined), PLANTED_MS);
    } else {
      await this.#inner.commit(batch).catch((error: unknown) => {
        append(places.journal, { at: 'commit failed', code: error instanceof LedgerError ? error.code : '' });
        throw error;
      });
    }
    this.#lag.committed = batch.head.size;
    hooks.pass('commit.after');
  }
}

class HookedAnchor implements HeadAnchor {
  readonly #inner: HeadAnchor;
  readonly #hooks: Hooks;
  readonly #lag: Lag;
  readonly #stuckFrom: number;
  #writes = 0;

  constructor(inner: HeadAnchor, hooks: Hooks, lag: Lag, stuckFrom: number) {
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
    this.#hooks.pass('anchor.before');
    this.#writes += 1;
    if (this.#writes < this.#stuckFrom) {
      await this.#inner.write(head);
      this.#lag.vouched = head.size;
    }
    this.#hooks.pass('anchor.after');
  }
}
