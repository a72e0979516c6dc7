// The head file (D15): two slots that are written in turn.
//
//   H1. A slot says its own hash, so it is whole or it does not count; then the other one, the head before it, does.
//   H2. The slots lie in two blocks of the disk, so that one torn write cannot damage both.
//   H3. The head never goes back. Of writes that wait for the disk only the newest is made; all resolve with it.
//   H4. After a write has failed none is made any more: nobody knows what lies on the disk.
//   H5. Heads that come close upon each other wait a moment for the newest: their flushes would compete with those of
//       the commits that they follow. So the file is behind the ledger by `PAUSE_MS` and one write at most.

import { close, fdatasync, open, write } from 'node:fs';
import { open as openHandle, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { sha256 } from '../contract/hash.js';
import { LedgerError } from '../errors.js';
import type { HeadAnchor, LogHead } from '../ports/ledger-store.js';
import { errorCode } from './error-code.js';

const SLOT_BYTES = 256;
/** A block of any disk. */
const SLOT_DISTANCE = 4_096;
/** From the beginning of a write to that of the next. */
const PAUSE_MS = 5;
const SLOT = /^(turnpike-head 1 (0|[1-9]\d{0,15}) ([0-9a-f]{64})) ([0-9a-f]{64})\n/;

type Head = Pick<LogHead, 'size' | 'root'>;
type Slot = 0 | 1;

/** The head file at `path`, which need not be there yet: the first write makes it. */
export const headFile = (path: string): HeadAnchor => new SlottedHeadFile(path);

// Plain descriptors for what is kept open: a file handle costs more, and must not be left to the garbage collector.
const openFile = promisify(open);
const writeAt = promisify(write);
const flush = promisify(fdatasync);
const closeFile = promisify(close);

class SlottedHeadFile implements HeadAnchor {
  readonly #path: string;
  /** The newest head that somebody asked to write. */
  #newest: Head | null = null;
  /** The file, and the slot whose head counts. Null until the first write. */
  #file: { readonly descriptor: number; readonly slot: Slot } | null = null;
  /** The write that has not begun: it will take what is newest then. */
  #queued: Promise<void> | null = null;
  #last: Promise<void> = Promise.resolve();
  #failure: unknown = null;
  /** When the last write began, by the process's own clock. */
  #begun = -Infinity;
  #closing = false;
  #hurry = (): void => undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<Head | null> {
    return (await readFileHead(this.#path))?.head ?? null;
  }

  /** @throws LedgerError LEDGER_BELOW_HEAD if there is a later head already, or another one of this size */
  async write(head: Head): Promise<void> {
    if (this.#newest !== null && !follows(head, this.#newest)) throw below(head, this.#newest);
    this.#newest = head;
    if (this.#queued === null) {
      this.#queued = this.#last.then(() => this.#pause()).then(() => this.#writeNewest(this.#newest ?? head));
      this.#last = this.#queued.catch(() => undefined);
    }
    await this.#queued;
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#hurry();
    await this.#last;
    const file = this.#file;
    this.#file = null;
    if (file !== null) await closeFile(file.descriptor);
  }

  #pause(): Promise<void> {
    const rest = this.#begun + PAUSE_MS - performance.now();
    if (rest <= 0 || this.#closing) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, rest);
      this.#hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #writeNewest(head: Head): Promise<void> {
    this.#queued = null;
    this.#begun = performance.now();
    if (this.#failure !== null) throw unwritable(this.#path, this.#failure);
    try {
      const { descriptor, slot } = this.#file ?? (await this.#open(head));
      const free = slot === 0 ? 1 : 0;
      this.#file = { descriptor, slot: free };
      const { bytesWritten } = await writeAt(descriptor, slotOf(head), 0, SLOT_BYTES, free * SLOT_DISTANCE);
      if (bytesWritten !== SLOT_BYTES) throw new Error(`only ${bytesWritten} bytes were written`);
      await flush(descriptor);
    } catch (cause) {
      if (cause instanceof LedgerError) throw cause;
      this.#failure = cause;
      throw unwritable(this.#path, cause);
    }
  }

  /** Opens the file for heads from `head` on; one that is not there is made with it. */
  async #open(head: Head): Promise<{ readonly descriptor: number; readonly slot: Slot }> {
    const found = await readFileHead(this.#path);
    if (found === null) await createFile(this.#path, head);
    else if (!follows(head, found.head)) {
      if (this.#newest === head) this.#newest = found.head;
      throw below(head, found.head);
    }
    return { descriptor: await openFile(this.#path, 'r+'), slot: found?.slot ?? 0 };
  }
}

/** Under another name first, so that a file that is there is never empty. */
async function createFile(path: string, head: Head): Promise<void> {
  const draft = `${path}.new`;
  const file = await openHandle(draft, 'w', 0o600);
  try {
    await file.write(slotOf(head));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  const directory = await openHandle(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function readFileHead(path: string): Promise<{ readonly head: Head; readonly slot: Slot } | null> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return null;
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the head file ${path} cannot be read`, cause });
  }
  const first = headOf(bytes.subarray(0, SLOT_BYTES));
  const second = headOf(bytes.subarray(SLOT_DISTANCE, SLOT_DISTANCE + SLOT_BYTES));
  if (second !== null && (first === null || second.size > first.size)) return { head: second, slot: 1 };
  if (first !== null) return { head: first, slot: 0 };
  const message = `the head file ${path} is damaged: restore it from a backup, with the ledger of that time`;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
}

function slotOf({ size, root }: Head): Buffer {
  const said = `turnpike-head 1 ${size} ${root}`;
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.write(`${said} ${sha256(said)}\n`);
  return slot;
}

function headOf(slot: Buffer): Head | null {
  const [, said = '', size, root = '', hash] = SLOT.exec(slot.toString('latin1')) ?? [];
  return hash === sha256(said) ? { size: Number(size), root } : null;
}

const follows = (head: Head, former: Head): boolean =>
  head.size > former.size || (head.size === former.size && head.root === former.root);

const below = ({ size }: Head, former: Head): LedgerError =>
  new LedgerError({
    code: 'LEDGER_BELOW_HEAD',
    message: `a head of ${size} entries cannot follow another one of ${former.size}`,
  });

const unwritable = (path: string, cause: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the head file ${path} could not be written`, cause });
