// The head file (D15): two slots that are written alternately.
//
//   H1. A slot contains its own hash. If the hash does not match, the slot is ignored, and the other slot with the
//       previous head counts. If heads are signed, a slot contains the signed checkpoint. A complete slot that the key
//       of this ledger has not signed was forged, and the file is rejected.
//   H2. The slots are in two blocks of the disk, so that one torn write cannot damage both.
//   H3. The head never goes back. Of the writes that wait for the disk only the newest is made; all resolve with it.
//   H4. After a failed write nothing is written before `reopen`, because the content of the disk is unknown. The next
//       write goes to the slot that failed, so that the last durable head is not overwritten before.
//   H5. Heads in quick succession wait briefly for the newest: their flushes would compete with those of the commits
//       that they follow. So the file is behind the ledger by at most `PAUSE_MS` and one write.
//   H6. The slots have the same format. A version with another format replaces the whole file.

import { close, fdatasync, open, write } from 'node:fs';
import { open as openHandle, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { formatHeader, refuseOtherFormat, type FileFormat } from '../../core/contract/file-format.js';
import { sha256 } from '../../core/contract/hash.js';
import { LedgerError } from '../../core/errors.js';
import type { ExternalHead, HeadSeal, KeySource, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { SignedHeadStore } from '../../engine/ports/ledger/shared-store.js';
import { errorCode } from '../../system/error-code.js';
import { readRegular } from '../../system/files/open-file.js';
import { tamperedError } from './store-errors.js';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';

const SLOT_BYTES = 1_024;
/** Bytes; the block size of any disk divides it. */
const SLOT_DISTANCE = 4_096;
/** Of the file, which ends after its second slot. */
const HEAD_BYTES_MAX = 65_536;
/** Minimum time between the starts of two writes, in ms. */
const PAUSE_MS = 5;
/** `head`: a head with its hash; `note`: a signed one. */
const PLAIN = /^(turnpike-head 1 head (0|[1-9]\d{0,15}) ([0-9a-f]{64})) ([0-9a-f]{64})\n/;
const SEALED = /^turnpike-head 1 note ([1-9]\d{0,3}) ([0-9a-f]{64})\n/;
/** Before formats began again at 1, a number followed where a word follows today. */
const FORMAT: FileFormat = { prefix: 'turnpike-head ', newest: 1, old: /^turnpike-head \d+ \d/ };
const HEADER = formatHeader(FORMAT);

type Head = Pick<LogHead, 'size' | 'root'>;
type Slot = 0 | 1;

/** A head file that can begin to sign its heads. */
export type HeadFile = SignedHeadStore;

/** The head file at `path`, created by the first write. If a seal is given, all heads must be signed with it. */
export const headFile = (path: string, seal: HeadSeal | null = null): HeadFile => new SlottedHeadFile(path, seal);

// Plain descriptors for files that stay open: a FileHandle costs more, and the garbage collector must not close it.
const openFile = promisify(open);
const writeAt = promisify(write);
const flush = promisify(fdatasync);
const closeFile = promisify(close);

class SlottedHeadFile implements HeadFile {
  readonly #path: string;
  #seal: HeadSeal | null;
  #isPlainAccepted: boolean;
  /** The newest head that a caller asked to write. */
  #newest: Head | null = null;
  /** The open file, and the slot of the current head. Null until the first write. */
  #file: { readonly descriptor: number; readonly slot: Slot } | null = null;
  /** The write that has not started yet: it will write the head that is newest then. */
  #queued: Promise<void> | null = null;
  #last: Promise<void> = Promise.resolve();
  #failure: unknown = null;
  /** Start of the last write on the monotonic clock of the process, in ms. */
  #writeStartedAt = -Infinity;
  #closing = false;
  #endPause = (): void => undefined;

  constructor(path: string, seal: HeadSeal | null) {
    this.#path = path;
    this.#seal = seal;
    this.#isPlainAccepted = seal === null;
  }

  sealWith(seal: HeadSeal): void {
    this.#seal = seal;
    this.#isPlainAccepted = true;
  }

  readonly keys = (): KeySource | null => this.#seal?.keys?.() ?? null;

  replaceSeal(seal: HeadSeal): void {
    this.#seal = seal;
  }

  readonly openNote = (note: string): ExternalHead | null => this.#seal?.open(note) ?? null;

  async read(): Promise<ExternalHead | null> {
    return (await this.#read())?.head ?? null;
  }

  /** @throws LedgerError LEDGER_BELOW_HEAD if the current head is later, or another one of the same size */
  async write(head: Head): Promise<void> {
    if (this.#newest !== null && !canFollow(head, this.#newest)) throw belowHeadError(head, this.#newest);
    this.#newest = head;
    if (this.#queued === null) {
      this.#queued = this.#last.then(() => this.#pause()).then(() => this.#writeNewest(this.#newest ?? head));
      this.#last = this.#queued.catch(() => undefined);
    }
    await this.#queued;
  }

  async reopen(): Promise<void> {
    await this.#last;
    const file = this.#file;
    try {
      // After a failed flush the old descriptor may report no further errors.
      if (file !== null) await closeFile(file.descriptor).catch(() => undefined);
      this.#file = file === null ? null : { ...file, descriptor: await openFile(this.#path, 'r+') };
      this.#failure = null;
    } catch (cause) {
      this.#file = null;
      this.#failure = cause;
      throw unwritableError(this.#path, cause);
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#endPause();
    await this.#last;
    const file = this.#file;
    this.#file = null;
    if (file !== null) await closeFile(file.descriptor);
  }

  #pause(): Promise<void> {
    const rest = this.#writeStartedAt + PAUSE_MS - performance.now();
    if (rest <= 0 || this.#closing) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, rest);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #writeNewest(head: Head): Promise<void> {
    this.#queued = null;
    this.#writeStartedAt = performance.now();
    if (this.#failure !== null) throw unwritableError(this.#path, this.#failure);
    try {
      const { descriptor, slot } = (this.#file ??= await this.#open(head));
      const free = slot === 0 ? 1 : 0;
      const { bytesWritten } = await writeAt(descriptor, slotOf(head, this.#seal), 0, SLOT_BYTES, free * SLOT_DISTANCE);
      if (bytesWritten !== SLOT_BYTES) throw new Error(`only ${bytesWritten} bytes were written`);
      await flush(descriptor);
      this.#file = { descriptor, slot: free };
    } catch (cause) {
      if (cause instanceof LedgerError) throw cause;
      this.#failure = cause;
      throw unwritableError(this.#path, cause);
    }
  }

  /** Opens the file to write heads from `head` on; creates it with this head if it does not exist. */
  async #open(head: Head): Promise<{ readonly descriptor: number; readonly slot: Slot }> {
    const found = await this.#read();
    if (found === null) await createFile(this.#path, slotOf(head, this.#seal));
    else if (!canFollow(head, found.head)) {
      if (this.#newest === head) this.#newest = found.head;
      throw belowHeadError(head, found.head);
    }
    return { descriptor: await openFile(this.#path, 'r+'), slot: found?.slot ?? 0 };
  }

  #read(): Promise<FoundSlot | null> {
    return readFileHead(this.#path, (slot) => headOf(slot, this.#seal, this.#isPlainAccepted));
  }
}

interface FoundSlot {
  readonly head: ExternalHead;
  readonly slot: Slot;
}

/** Writes a draft first, so that an existing head file is never empty. */
async function createFile(path: string, slot: Buffer): Promise<void> {
  const draft = `${path}.new`;
  const file = await openHandle(draft, 'w', 0o600);
  try {
    await file.write(slot);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  await fsyncDirectory(dirname(path));
}

async function readFileHead(path: string, headIn: (slot: Buffer) => SlotHead): Promise<FoundSlot | null> {
  let bytes: Buffer;
  try {
    bytes = await readRegular(path, HEAD_BYTES_MAX);
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return null;
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the head file ${path} cannot be read`, cause });
  }
  const slots = [0, SLOT_DISTANCE].map((from) => bytes.subarray(from, from + SLOT_BYTES));
  const [first = null, second = null] = slots.map(headIn);
  if (first === 'foreign' || second === 'foreign') {
    const message = `the head file ${path} holds a head that this ledger's key has not signed: restore it from a backup`;
    throw tamperedError(message);
  }
  if (second !== null && (first === null || second.size > first.size)) return { head: second, slot: 1 };
  if (first !== null) return { head: first, slot: 0 };
  // Not before: a damaged slot may state any format, and then the other one counts.
  for (const slot of slots) refuseOtherFormat(slot.toString('latin1'), FORMAT, `the head file ${path}`);
  const message = `the head file ${path} is damaged: restore it from a backup, with the ledger of that time`;
  throw tamperedError(message);
}

function slotOf(head: Head, seal: HeadSeal | null): Buffer {
  const slot = Buffer.alloc(SLOT_BYTES);
  if (seal === null) {
    const statement = `${HEADER} head ${head.size} ${head.root}`;
    slot.write(`${statement} ${sha256(statement)}\n`);
    return slot;
  }
  const note = Buffer.from(seal.seal(head));
  const prefix = Buffer.from(`${HEADER} note ${note.length} ${sha256(note)}\n`);
  if (prefix.length + note.length > SLOT_BYTES) throw new RangeError('a signed head that no slot can hold');
  note.copy(slot, prefix.copy(slot));
  return slot;
}

/** The content of a slot: a head, null if it is not complete, or a head that was not signed with the key. */
type SlotHead = ExternalHead | 'foreign' | null;

function headOf(slot: Buffer, seal: HeadSeal | null, isPlainAccepted: boolean): SlotHead {
  const text = slot.toString('latin1');
  const [prefix = '', length, noteHash] = SEALED.exec(text) ?? [];
  if (length !== undefined) {
    const note = slot.subarray(prefix.length, prefix.length + Number(length));
    if (sha256(note) !== noteHash) return null;
    return seal?.open(note.toString('utf8')) ?? 'foreign';
  }
  const [, statement = '', size, root = '', hash] = PLAIN.exec(text) ?? [];
  if (hash !== sha256(statement)) return null;
  return isPlainAccepted ? { size: Number(size), root } : 'foreign';
}

const canFollow = (head: Head, former: Head): boolean =>
  head.size > former.size || (head.size === former.size && head.root === former.root);

const belowHeadError = ({ size }: Head, former: Head): LedgerError =>
  new LedgerError({
    code: 'LEDGER_BELOW_HEAD',
    message: `a head of ${size} entries cannot follow another one of ${former.size}`,
  });

const unwritableError = (path: string, cause: unknown): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the head file ${path} could not be written`, cause });
