// Counts the bytes that the ledger has recorded, or admitted and not yet recorded, for each run tree, case and actor.
// The accounts of the kind `bytes` follow the rules of run budgets (decision 0015).

import type { Artifact } from '../../contract/artifact-ref.js';
import type { Account, Limits } from '../../contract/run/budget.js';
import type { RecordedInput } from '../../contract/run/entry.js';
import type { Batch, TreeAppend } from '../../ports/ledger/ledger-store.js';
import { amountsOf, charge, limitsOf, openAccount, reserve, settle } from '../../run/budget.js';
import { STORAGE_DEFAULTS, type StorageOptions } from './storage-options.js';

/** The accounts that content counts for. Null without a tree or case; an empty actor means no account. */
export interface StorageAccountIds {
  readonly tree_id: string | null;
  readonly case_id: string | null;
  readonly actor_id: string;
}

/** The kind of the account whose budget is used up. */
export type StorageAccountKind = 'run' | 'case' | 'actor';

/** Bytes reserved for one admission. */
export interface StorageReservation {
  readonly accounts: readonly (readonly [kind: StorageAccountKind, id: string])[];
  readonly limits: Limits;
}

/** Estimated overhead of SQLite, its indexes and derived data, per entry, per content, and for both together. */
const ENTRY_BYTES = 96;
const CONTENT_BYTES = 256;
const FACTOR = 1.5;
/** Limit of remembered accounts of each kind, and of trees. The least recently used one is forgotten. */
const HOLDERS_MAX = 65_536;

export class StorageAccounts {
  readonly #limits: Readonly<Record<StorageAccountKind, number>>;
  readonly #accounts: Readonly<Record<StorageAccountKind, Map<string, Account>>> = {
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
    const accountKeys = accountsOf(known === undefined ? ids : { tree_id, ...known });
    const limits = limitsOf({ bytes });
    const after = new Map<StorageAccountKind, Account>();
    for (const [kind, id] of accountKeys) {
      const reserved = reserve(this.#account(kind, id), toLimits(bytes));
      if ('exhausted' in reserved) return kind;
      after.set(kind, reserved.account);
    }
    for (const [kind, id] of accountKeys) this.#storeAccount(kind, id, after.get(kind));
    return { accounts: accountKeys, limits };
  }

  /** Releases a reservation: the content was recorded, or never will be. */
  settle({ accounts: accountKeys, limits }: StorageReservation): void {
    for (const [kind, id] of accountKeys) {
      const account = this.#accounts[kind].get(id);
      // The hour of an actor may have passed, or the tree have ended.
      if (account === undefined || account.reserved.bytes < (limits.bytes ?? 0)) continue;
      const settled = settle(account, toLimits(limits.bytes ?? 0), NO_AMOUNTS);
      if (settled.spent.bytes === 0 && settled.reserved.bytes === 0) this.#accounts[kind].delete(id);
      else this.#storeAccount(kind, id, settled);
    }
  }

  /** Counts the bytes of a committed batch. */
  committed({ trees }: Batch): void {
    for (const append of trees) {
      const [first] = append.entries;
      if (first?.entry.type === 'input') this.turnHour(first.entry.body.time);
      for (const [person, bytes] of bytesByPerson(append)) {
        const ids = person === null ? this.#holdersOf(append) : { tree_id: null, case_id: null, actor_id: person };
        const amounts = amountsOf({ bytes });
        for (const [kind, id] of accountsOf(ids))
          this.#storeAccount(kind, id, charge(this.#account(kind, id), amounts));
      }
      if (append.ended) this.#forgetTree(append.tree_id);
    }
  }

  /** The accounts of the tree. A later append cannot change them. */
  #holdersOf(append: TreeAppend): StorageAccountIds {
    const { tree_id } = append;
    const ids = this.#trees.get(tree_id) ?? accountIdsIn(append);
    // An append to a tree from before this opening may not name the actor: a later append will.
    if (ids.actor_id !== '') putLast(this.#trees, tree_id, ids);
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
    // A copy, because an account that is put back comes last.
    for (const [id, { reserved }] of [...this.#accounts.actor]) {
      if (reserved.bytes === 0) this.#accounts.actor.delete(id);
      else this.#storeAccount('actor', id, { ...openAccount(limitsOf({ bytes: this.#limits.actor })), reserved });
    }
  }

  #account(kind: StorageAccountKind, id: string): Account {
    return this.#accounts[kind].get(id) ?? openAccount(limitsOf({ bytes: this.#limits[kind] }));
  }

  #storeAccount(kind: StorageAccountKind, id: string, account: Account | undefined): void {
    if (account !== undefined) putLast(this.#accounts[kind], id, account);
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

/** The actor that starts a run or a session. */
function startedAs(input: RecordedInput): string | null {
  if (input.kind === 'open_session') return input.agent.actor.actor_id;
  return input.kind === 'start_agent' || input.kind === 'start_run' ? input.actor.actor_id : null;
}

/** The person who reads or decides. Their bytes count for them: a reader must not use up an agent's budget. */
function personIn(input: RecordedInput): string | null {
  switch (input.kind) {
    case 'vote':
      return input.approver.actor.actor_id;
    case 'access':
    case 'resolve':
      return input.actor.actor_id;
    default:
      return null;
  }
}

/** Disk bytes of an append, by the person whose inputs they come from; null: by the accounts of the tree. */
function bytesByPerson({ entries, artifacts }: TreeAppend): ReadonlyMap<string | null, number> {
  const bytes = new Map<string | null, number>();
  const persons: (string | null)[] = [];
  let person: string | null = null;
  const add = (one: string | null, more: number): void => void bytes.set(one, (bytes.get(one) ?? 0) + more);
  for (const { entry, text } of entries) {
    if (entry.type === 'input') person = personIn(entry.body);
    persons.push(person);
    add(person, entryBytes(Buffer.byteLength(text)));
  }
  for (const { entry, artifact } of artifacts) add(persons[entry] ?? null, contentBytes(artifact));
  return bytes;
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

const toLimits = (bytes: number): Limits => limitsOf({ steps: 0, tool_calls: 0, wall_ms: 0, bytes, tokens: 0 });
const NO_AMOUNTS = amountsOf({});

const accountsOf = ({ tree_id, case_id, actor_id }: StorageAccountIds): StorageReservation['accounts'] => [
  ...(tree_id === null ? [] : [['run', tree_id] as const]),
  ...(case_id === null ? [] : [['case', case_id] as const]),
  ...(actor_id === '' ? [] : [['actor', actor_id] as const]),
];
