// Counts what is read from a ledger, for a progress bar. A read within another one is not counted: it belongs to the
// entry that the outer one has reached.

import type { LedgerStore, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { LineFile } from '../../engine/ports/ledger/line-file.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import type { EvidenceBundle } from './evidence-bundle.js';

const HASHING = 'hashing the file';

/** How reads of a ledger are reported. */
export interface CountedReads {
  /** The label of each pass over the log. Null: passes only advance the part that the caller has begun. */
  readonly label: string | null;
  /** Where each pass over the log ends. Default: at the head of the log. */
  readonly end?: number;
}

/** Wraps each iteration so that only the outermost one counts. */
class ReadCounter {
  readonly #progress: ProgressReporter;
  #isReading = false;

  constructor(progress: ProgressReporter) {
    this.#progress = progress;
  }

  /** @param onFirst begins a part of its own at the first item of an outermost read; the part ends with the read */
  async *count<T>(items: AsyncIterable<T>, onFirst?: (item: T) => void | Promise<void>): AsyncGenerator<T> {
    if (this.#isReading) {
      yield* items;
      return;
    }
    this.#isReading = true;
    let isFirst = true;
    try {
      for await (const item of items) {
        if (isFirst) await onFirst?.(item);
        isFirst = false;
        yield item;
        this.#progress.advance();
      }
    } finally {
      this.#isReading = false;
      if (onFirst !== undefined && !isFirst) this.#progress.end();
    }
  }
}

/** A store that reports how many entries were read from it. Without a reporter it is the store itself. */
export function countReads<Store extends LedgerStore>(
  store: Store,
  progress: ProgressReporter,
  { label, end }: CountedReads,
): Store {
  if (progress === NO_PROGRESS) return store;
  const counter = new ReadCounter(progress);
  const begin = async ({ log_index }: StoredEntry): Promise<void> =>
    progress.begin({ label: label ?? '', unit: 'entries', total: (end ?? (await store.head()).size) - log_index });
  const counted: Partial<LedgerStore> = {
    log: (...args) => counter.count(store.log(...args), label === null ? undefined : begin),
    tree: (...args) => counter.count(store.tree(...args)),
    histories: (places) => counter.count(store.histories(places)),
  };
  // Not a class of methods that forward: a store has members that only its own kind has.
  return new Proxy(store, {
    get: (target, key) => {
      if (Object.hasOwn(counted, key)) return counted[key as keyof LedgerStore];
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

/** A bundle that reports how many entries were read from it. */
export function countBundleReads(bundle: EvidenceBundle, progress: ProgressReporter, label: string): EvidenceBundle {
  if (progress === NO_PROGRESS) return bundle;
  const counter = new ReadCounter(progress);
  const begin = ({ log_index }: StoredEntry): void =>
    progress.begin({ label, unit: 'entries', total: bundle.checkpoint.size - log_index });
  return {
    ...bundle,
    log: (from) => counter.count(bundle.log(from), begin),
    tree: (...args) => counter.count(bundle.tree(...args)),
  };
}

/** A file of `bytes` bytes that reports how far its lines were read, and that it is hashed before. */
export function countLines(file: LineFile, progress: ProgressReporter, label: string, bytes: number): LineFile {
  if (progress === NO_PROGRESS) return file;
  return {
    lines: async function* (lineMax) {
      progress.begin({ label, unit: 'bytes', total: bytes });
      for await (const line of file.lines(lineMax)) {
        yield line;
        progress.advance(line.place.length + 1);
      }
      progress.end();
    },
    read: (place) => file.read(place),
    boundaryLines: (limits) => file.boundaryLines(limits),
    sha256Before: (end) => {
      progress.begin({ label: HASHING, unit: 'bytes', total: null });
      return file.sha256Before(end);
    },
    close: () => file.close(),
  };
}
