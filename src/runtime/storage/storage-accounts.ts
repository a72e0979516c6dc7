// What the ledger has recorded for each run tree, case and actor, and what is admitted and not recorded yet: accounts
// of the kind `bytes`, by the same rules as the budgets of runs (decision 0015).

import type { Artifact } from '../../contract/artifact-ref.js';
import type { Account, Limits } from '../../contract/run/budget.js';
import type { RecordedInput } from '../../contract/run/entry.js';
import type { Batch, TreeAppend } from '../../ports/ledger/ledger-store.js';
import { amountsOf, charge, limitsOf, openAccount, reserve, settle } from '../../run/budget.js';
import { STORAGE_DEFAULTS, type StorageOptions } from './storage-options.js';

/** Whom content is counted for. Null where the tree, or the case, is not there; an empty actor is nobody. */
export interface StorageAccountIds {
  readonly tree_id: string | null;
  readonly case_id: string | null;
  readonly actor_id: string;
}

/** Which budget is used up. */
export type StorageAccountKind = 'run' | 'case' | 'actor';

/** Bytes that were reserved for one admission. */
export interface StorageReservation {
  readonly accounts: readonly (readonly [kind: StorageAccountKind, id: string])[];
  readonly limits: Limits;
}

/** What SQLite, its indexes and what is derived add to an entry and to a content, and to both together. */
const ENTRY_BYTES = 96;
const CONTENT_BYTES = 256;
const FACTOR = 1.5;
/** So many accounts of each kind, and trees, are remembered; the one that was used longest ago is forgotten. */
const HOLDERS_MAX = 65_536;

export class StorageAccounts {
  readonly #limits: Readonly<Record<StorageAccountKind, number>>;
  readonly #accounts: Readonly<Record<StorageAccountKind, Map<string, Account>>> = {
    run: new Map(),
    case: new Map(),
    actor: new Map(),
  };
  /** Of trees that have not ended: whom their entries are counted for. */
  readonly #trees = new Map<string, Omit<StorageAccountIds, 'tree_id'>>();
  #hour = '';

  constructor({ runBytes, caseBytes, actorBytes }: StorageOptions = {}) {
    this.#limits = {
      run: runBytes ?? STORAGE_DEFAULTS.runBytes,
      case: caseBytes ?? STORAGE_DEFAULTS.caseBytes,
      actor: actorBytes ?? STORAGE_DEFAULTS.actorBytes,
    };
  }

  /** Reserves bytes in every account that they count to, or in none. @returns which budget does not have them */
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

  /** What was admitted is recorded, or never will be. */
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

  /** Counts what a batch has recorded. */
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

  /** Whom the tree counts for. What a later append says of that is not believed. */
  #holdersOf(append: TreeAppend): StorageAccountIds {
    const { tree_id } = append;
    const ids = this.#trees.get(tree_id) ?? accountIdsIn(append);
    // Of a tree from before this opening, an append need not name the actor: a later one will.
    if (ids.actor_id !== '') putLast(this.#trees, tree_id, ids);
    return { tree_id, ...ids };
  }

  #forgetTree(tree_id: string): void {
    this.#trees.delete(tree_id);
    this.#accounts.run.delete(tree_id);
  }

  /** An actor's account is of one hour. @param time in ISO 8601; one from before the present hour changes nothing */
  turnHour(time: string): void {
    const hour = time.slice(0, 'yyyy-mm-ddThh'.length);
    if (hour <= this.#hour) return;
    this.#hour = hour;
    // A copy: an account that is put back comes last.
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

/** Whom the entries of an append say that it is for: its agent, promotion or export, else nobody in particular. */
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

/** As whom an input starts a run or a session. */
function startedAs(input: RecordedInput): string | null {
  if (input.kind === 'open_session') return input.agent.actor.actor_id;
  return input.kind === 'start_agent' || input.kind === 'start_run' ? input.actor.actor_id : null;
}

/** The person who reads or answers. What that records is theirs: no reader uses up the budget of an agent. */
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

/** What an append takes of the disk, by the person whose inputs brought it; null: for whom the tree counts. */
function bytesByPerson({ entries, artifacts }: TreeAppend): ReadonlyMap<string | null, number> {
  const bytes = new Map<string | null, number>();
  const persons: (string | null)[] = [];
  let person: string | null = null;
  const add = (one: string | null, more: number): void => void bytes.set(one, (bytes.get(one) ?? 0) + more);
  for (const { entry, text } of entries) {
    if (entry.type === 'input') person = personIn(entry.body);
    persons.push(person);
    add(person, entryBytes(text));
  }
  for (const { entry, artifact } of artifacts) add(persons[entry] ?? null, contentBytes(artifact));
  return bytes;
}

/** How much of the disk a part of a batch takes, estimated upwards. */
export function recordedBytes({ entries, artifacts }: Pick<TreeAppend, 'entries' | 'artifacts'>): number {
  let bytes = 0;
  for (const { text } of entries) bytes += entryBytes(text);
  for (const { artifact } of artifacts) bytes += contentBytes(artifact);
  return bytes;
}

const entryBytes = (text: string): number => Math.ceil((Buffer.byteLength(text) + ENTRY_BYTES) * FACTOR);
const contentBytes = ({ bytes }: Artifact): number => Math.ceil((bytes.byteLength + CONTENT_BYTES) * FACTOR);

const toLimits = (bytes: number): Limits => limitsOf({ steps: 0, tool_calls: 0, wall_ms: 0, bytes, tokens: 0 });
const NO_AMOUNTS = amountsOf({});

const accountsOf = ({ tree_id, case_id, actor_id }: StorageAccountIds): StorageReservation['accounts'] => [
  ...(tree_id === null ? [] : [['run', tree_id] as const]),
  ...(case_id === null ? [] : [['case', case_id] as const]),
  ...(actor_id === '' ? [] : [['actor', actor_id] as const]),
];
