// The limits of the disk space that a ledger may use, and the accounts that they limit.
//
// An account has the bytes that the ledger has recorded, or admitted and not yet recorded, for one run tree, case or
// actor. Accounts follow rules B1 and B2 of run budgets (budget-account.ts, decision 0015). They change in place: each
// step books in three of them, three times.

import type { Artifact } from '../../core/contract/artifact-ref.js';
import type { RecordedInput } from '../../core/contract/run/entry.js';
import { featureActorId } from '../../core/contract/run/feature-vocabulary.js';
import type { Batch, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import { usageError } from '../../core/errors.js';
import type { FreeSpace } from '../../engine/ports/disk-space.js';

/**
 * Limits of the disk space that the ledger uses: whole numbers of bytes, 1 or more. A budget counts what was recorded
 * since the opening, with an allowance for what SQLite adds.
 */
export interface StorageOptions {
  /** Budget of one run tree. Default 1 GiB. */
  readonly runBytes?: number;
  /** Budget of all run trees of a case. Default 16 GiB. */
  readonly caseBytes?: number;
  /** Budget of all that one actor starts, proposes or reads within an hour: some 400,000 steps. Default 8 GiB. */
  readonly actorBytes?: number;
  /** With less free space no run starts, and no content over 16 KiB is recorded. Default 5 %, at most 256 MiB. */
  readonly freeBytesMin?: number;
  /** Reserved for recording what is in flight when the disk is full. Default 1 % of it, at most 4 MiB. */
  readonly reservedBytes?: number;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** The default budgets. */
const STORAGE_DEFAULTS = { runBytes: GIB, caseBytes: 16 * GIB, actorBytes: 8 * GIB } as const;
const FREE_SPACE = { share: 0.05, bytesMax: 256 * MIB } as const;
const RESERVED_SPACE = { share: 0.01, bytesMax: 4 * MIB } as const;

const OPTION_NAMES = ['runBytes', 'caseBytes', 'actorBytes', 'freeBytesMin', 'reservedBytes'] as const;

/** @throws UsageError for an invalid number of bytes */
export function validateStorageOptions(options: StorageOptions): StorageOptions {
  for (const name of OPTION_NAMES) {
    const value = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw usageError(`storage.${name}: a whole number of bytes, 1 or more`);
  }
  return options;
}

/** The low-water mark and the reserve of a file system. */
export const waterMarksOf = ({ freeBytesMin, reservedBytes }: StorageOptions, { total }: FreeSpace) => ({
  low: freeBytesMin ?? Math.min(FREE_SPACE.bytesMax, Math.floor(total * FREE_SPACE.share)),
  reserved: reservedBytes ?? Math.min(RESERVED_SPACE.bytesMax, Math.floor(total * RESERVED_SPACE.share)),
});

/** The accounts that content counts for. Null without a tree or case; an empty actor means no account. */
export interface StorageAccountIds {
  readonly tree_id: string | null;
  readonly case_id: string | null;
  readonly actor_id: string;
}

/** The kind of the account whose budget is used up. */
export type StorageAccountKind = 'run' | 'case' | 'actor';

/** Bytes reserved for one admission. */
interface StorageReservation {
  readonly accounts: AccountKeys;
  readonly bytes: number;
}

type AccountKeys = readonly (readonly [kind: StorageAccountKind, id: string])[];

interface ByteAccount {
  spent: number;
  reserved: number;
}

/** Estimated overhead of SQLite, its indexes and derived data, per entry, per content, and for both together. */
const ENTRY_BYTES = 96;
const CONTENT_BYTES = 256;
const FACTOR = 1.5;
/**
 * Limit of remembered accounts of each kind, and of trees. The least recently used one is forgotten. Below half of it
 * the order of use is not kept, since none is forgotten soon.
 */
const HOLDERS_MAX = 65_536;

export class StorageAccounts {
  readonly #limits: Readonly<Record<StorageAccountKind, number>>;
  readonly #accounts: Readonly<Record<StorageAccountKind, Map<string, ByteAccount>>> = {
    run: new Map(),
    case: new Map(),
    actor: new Map(),
  };
  /** Of trees that have not ended: the accounts that their entries count for. */
  readonly #trees = new Map<string, Omit<StorageAccountIds, 'tree_id'>>();
  #hour = '';

  constructor({ runBytes, caseBytes, actorBytes }: StorageOptions = {}) {
    this.#limits = {
      run: runBytes ?? STORAGE_DEFAULTS.runBytes,
      case: caseBytes ?? STORAGE_DEFAULTS.caseBytes,
      actor: actorBytes ?? STORAGE_DEFAULTS.actorBytes,
    };
  }

  /**
   * Reserves bytes in all accounts, or in none.
   * @returns the kind of the account whose budget is used up, or the reservation
   */
  admit(ids: StorageAccountIds, bytes: number): StorageReservation | StorageAccountKind {
    const { tree_id } = ids;
    const known = tree_id === null ? undefined : this.#trees.get(tree_id);
    const accounts = accountsOf(known === undefined ? ids : { tree_id, ...known });
    for (const [kind, id] of accounts) {
      const account = this.#accounts[kind].get(id);
      if (bytes > this.#limits[kind] - (account === undefined ? 0 : account.spent + account.reserved)) return kind;
    }
    for (const [kind, id] of accounts) this.#use(kind, id).reserved += bytes;
    return { accounts, bytes };
  }

  /** Releases a reservation: the content was recorded, or never will be. */
  settle({ accounts, bytes }: StorageReservation): void {
    for (const [kind, id] of accounts) {
      const account = this.#accounts[kind].get(id);
      // The hour of an actor may have passed, or the tree have ended.
      if (account === undefined || account.reserved < bytes) continue;
      account.reserved -= bytes;
      if (account.spent === 0 && account.reserved === 0) this.#accounts[kind].delete(id);
    }
  }

  /** Counts the bytes of a committed batch. */
  committed({ trees }: Batch): void {
    for (const append of trees) {
      const [first] = append.entries;
      if (first?.entry.type === 'input') this.turnHour(first.entry.body.time);
      const { own, persons } = countBytes(append);
      if (own > 0) this.#charge(this.#holdersOf(append), own);
      for (const [actor_id, bytes] of persons) this.#charge({ tree_id: null, case_id: null, actor_id }, bytes);
      if (append.ended) this.#forgetTree(append.tree_id);
    }
  }

  #charge(ids: StorageAccountIds, bytes: number): void {
    for (const [kind, id] of accountsOf(ids)) this.#use(kind, id).spent += bytes;
  }

  /** The accounts of the tree. A later append cannot change them. */
  #holdersOf(append: TreeAppend): StorageAccountIds {
    const { tree_id } = append;
    const ids = this.#trees.get(tree_id) ?? accountIdsIn(append);
    // An append to a tree from before this opening may not name the actor: a later append will.
    const isNew = this.#trees.get(tree_id) !== ids;
    if (ids.actor_id !== '' && (isNew || this.#trees.size >= HOLDERS_MAX / 2)) putLast(this.#trees, tree_id, ids);
    return { tree_id, ...ids };
  }

  #forgetTree(tree_id: string): void {
    this.#trees.delete(tree_id);
    this.#accounts.run.delete(tree_id);
  }

  /** Starts a new hour for the accounts of actors. @param time in ISO 8601; an earlier hour changes nothing */
  turnHour(time: string): void {
    const hour = time.slice(0, 'yyyy-mm-ddThh'.length);
    if (hour <= this.#hour) return;
    this.#hour = hour;
    for (const [id, account] of this.#accounts.actor) {
      account.spent = 0;
      if (account.reserved === 0) this.#accounts.actor.delete(id);
    }
  }

  /** The account, opened on its first use. */
  #use(kind: StorageAccountKind, id: string): ByteAccount {
    const accounts = this.#accounts[kind];
    const account = accounts.get(id);
    if (account !== undefined && accounts.size < HOLDERS_MAX / 2) return account;
    const used = account ?? { spent: 0, reserved: 0 };
    putLast(accounts, id, used);
    return used;
  }
}

function putLast<T>(map: Map<string, T>, id: string, value: T): void {
  map.delete(id);
  map.set(id, value);
  const [oldest] = map.keys();
  if (map.size > HOLDERS_MAX && oldest !== undefined) map.delete(oldest);
}

/** The accounts that the entries of an append name: those of its agent, promotion or export, otherwise none. */
function accountIdsIn({ opened, entries }: TreeAppend): Omit<StorageAccountIds, 'tree_id'> {
  let [case_id, actor_id, isOfPerson] = [opened?.case_id ?? null, '', false];
  for (const { entry } of entries) {
    if (entry.type === 'input') {
      isOfPerson = personIn(entry.body) !== null;
      actor_id = startedAs(entry.body) ?? actor_id;
    }
    if (isOfPerson || (entry.type !== 'run_created' && entry.type !== 'audit_event')) continue;
    case_id ??= entry.body.case_id ?? null;
    const { actor_type, actor_id: acting } = entry.body.actor;
    if (actor_id === '' && actor_type !== 'system') actor_id = acting;
  }
  return { case_id, actor_id };
}

/** The actor that starts a run, or what a feature starts. */
function startedAs(input: RecordedInput): string | null {
  return input.kind === 'start_agent' || input.kind === 'start_run' ? input.actor.actor_id : featureActorId(input);
}

/** The person who reads or decides. Their bytes count for them: a reader must not use up an agent's budget. */
function personIn(input: RecordedInput): string | null {
  switch (input.kind) {
    case 'vote':
      return input.approver.actor.actor_id;
    case 'access':
    case 'resolve':
    case 'restore':
    case 'rotate_key':
      return input.actor.actor_id;
    default:
      return null;
  }
}

/** The disk bytes of an append: those that count for its tree, and those of persons, whose inputs they come from. */
function countBytes({ entries, artifacts }: TreeAppend): {
  readonly own: number;
  readonly persons: ReadonlyMap<string, number>;
} {
  const persons = new Map<string, number>();
  const personOf: (string | null)[] = [];
  let own = 0;
  let person: string | null = null;
  const add = (one: string | null, more: number): void => {
    if (one === null) own += more;
    else persons.set(one, (persons.get(one) ?? 0) + more);
  };
  for (const { entry, text } of entries) {
    if (entry.type === 'input') person = personIn(entry.body);
    personOf.push(person);
    add(person, entryBytes(utf8Bytes(text)));
  }
  for (const { entry, artifact } of artifacts) add(personOf[entry] ?? null, contentBytes(artifact));
  return { own, persons };
}

/**
 * Disk bytes of a part of a batch, estimated upwards.
 * @param textBytes returns the bytes of a text, or an upper bound
 */
export function recordedBytes(
  { entries, artifacts }: Pick<TreeAppend, 'entries' | 'artifacts'>,
  textBytes: (text: string) => number = utf8Bytes,
): number {
  let bytes = 0;
  for (const { text } of entries) bytes += entryBytes(textBytes(text));
  for (const { artifact } of artifacts) bytes += contentBytes(artifact);
  return bytes;
}

/** The bytes of a text in UTF-8. */
export const utf8Bytes = (text: string): number => Buffer.byteLength(text);
/** UTF-8 bytes for one UTF-16 unit, at most. */
const BYTES_A_CHAR_MAX = 3;
/** An upper bound of the bytes of a text in UTF-8. */
export const textBytesMax = (text: string): number => text.length * BYTES_A_CHAR_MAX;

const entryBytes = (textBytes: number): number => Math.ceil((textBytes + ENTRY_BYTES) * FACTOR);
const contentBytes = ({ bytes }: Artifact): number => Math.ceil((bytes.byteLength + CONTENT_BYTES) * FACTOR);

function accountsOf({ tree_id, case_id, actor_id }: StorageAccountIds): AccountKeys {
  const keys: (readonly [kind: StorageAccountKind, id: string])[] = [];
  if (tree_id !== null) keys.push(['run', tree_id]);
  if (case_id !== null) keys.push(['case', case_id]);
  if (actor_id !== '') keys.push(['actor', actor_id]);
  return keys;
}
