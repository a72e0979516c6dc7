// What the ledger has recorded for each run tree, case and actor, and what is admitted and not recorded yet: accounts
// of the kind `bytes`, by the same rules as the budgets of runs (decision 0015).

import type { Account, Limits } from '../../contract/budget.js';
import type { Batch, TreeAppend } from '../../ports/ledger-store.js';
import { amountsOf, charge, limitsOf, openAccount, reserve, settle } from '../../run/budget.js';
import { STORAGE_DEFAULTS, type StorageOptions } from './storage-options.js';

/** Whom content is counted for. Null where the tree, or the case, is not there. */
export interface Holders {
  readonly tree_id: string | null;
  readonly case_id: string | null;
  readonly actor_id: string;
}

/** Which budget is used up. */
export type HolderKind = 'run' | 'case' | 'actor';

/** Bytes that were reserved for one admission. */
export interface Grant {
  readonly held: readonly (readonly [kind: HolderKind, id: string])[];
  readonly limits: Limits;
}

/** What SQLite, its indexes and what is derived add to an entry and to a content, and to both together. */
const ENTRY_BYTES = 96;
const CONTENT_BYTES = 256;
const FACTOR = 1.5;
/** Accounts of so many cases are remembered; the one that was used longest ago is forgotten. */
const CASES_MAX = 65_536;

export class StorageBook {
  readonly #limits: Readonly<Record<HolderKind, number>>;
  readonly #accounts: Readonly<Record<HolderKind, Map<string, Account>>> = {
    run: new Map(),
    case: new Map(),
    actor: new Map(),
  };
  /** Of trees that have not ended: whom their entries are counted for. */
  readonly #trees = new Map<string, Omit<Holders, 'tree_id'>>();
  #hour = '';

  constructor({ runBytes, caseBytes, actorBytes }: StorageOptions = {}) {
    this.#limits = {
      run: runBytes ?? STORAGE_DEFAULTS.runBytes,
      case: caseBytes ?? STORAGE_DEFAULTS.caseBytes,
      actor: actorBytes ?? STORAGE_DEFAULTS.actorBytes,
    };
  }

  /** Reserves bytes in every account that they count to, or in none. @returns which budget does not have them */
  admit(holders: Holders, bytes: number): Grant | HolderKind {
    const { tree_id } = holders;
    const known = tree_id === null ? undefined : this.#trees.get(tree_id);
    const held = heldBy(known === undefined ? holders : { tree_id, ...known });
    const limits = limitsOf({ bytes });
    const after = new Map<HolderKind, Account>();
    for (const [kind, id] of held) {
      const reserved = reserve(this.#account(kind, id), want(bytes));
      if ('exhausted' in reserved) return kind;
      after.set(kind, reserved.account);
    }
    for (const [kind, id] of held) this.#keep(kind, id, after.get(kind));
    return { held, limits };
  }

  /** What was admitted is recorded, or never will be. */
  settle({ held, limits }: Grant): void {
    for (const [kind, id] of held) {
      const account = this.#accounts[kind].get(id);
      // The hour of an actor may have passed, or the tree have ended.
      if (account === undefined || account.reserved.bytes < (limits.bytes ?? 0)) continue;
      this.#keep(kind, id, settle(account, want(limits.bytes ?? 0), NOTHING));
    }
  }

  /** Counts what a batch has recorded. */
  committed({ trees }: Batch): void {
    for (const append of trees) {
      this.#turnHour(append);
      const { tree_id } = append;
      const holders = this.#trees.get(tree_id) ?? holdersIn(append);
      const bytes = amountsOf({ bytes: recordedBytes(append) });
      for (const [kind, id] of heldBy({ tree_id, ...holders })) {
        this.#keep(kind, id, charge(this.#account(kind, id), bytes));
      }
      if (append.ended) this.#forgetTree(tree_id);
      else this.#trees.set(tree_id, holders);
    }
  }

  #forgetTree(tree_id: string): void {
    this.#trees.delete(tree_id);
    this.#accounts.run.delete(tree_id);
  }

  /** An actor's account is of one hour of recorded time: no clock is read. */
  #turnHour({ entries: [first] }: TreeAppend): void {
    const body = first?.entry.type === 'input' ? first.entry.body : null;
    const hour = body?.time.slice(0, 'yyyy-mm-ddThh'.length) ?? this.#hour;
    if (hour <= this.#hour) return;
    this.#hour = hour;
    // A copy: an account that is put back comes last.
    for (const [id, { reserved }] of [...this.#accounts.actor]) {
      if (reserved.bytes === 0) this.#accounts.actor.delete(id);
      else this.#keep('actor', id, { ...openAccount(limitsOf({ bytes: this.#limits.actor })), reserved });
    }
  }

  #account(kind: HolderKind, id: string): Account {
    return this.#accounts[kind].get(id) ?? openAccount(limitsOf({ bytes: this.#limits[kind] }));
  }

  #keep(kind: HolderKind, id: string, account: Account | undefined): void {
    if (account === undefined) return;
    const accounts = this.#accounts[kind];
    accounts.delete(id);
    accounts.set(id, account);
    const [oldest] = accounts.keys();
    if (kind === 'case' && accounts.size > CASES_MAX && oldest !== undefined) accounts.delete(oldest);
  }
}

/** Whom the entries of an append say that it is for: its agent, promotion or export, else nobody in particular. */
function holdersIn({ opened, entries }: TreeAppend): Omit<Holders, 'tree_id'> {
  let [case_id, actor_id] = [opened?.case_id ?? null, ''];
  for (const { entry } of entries) {
    if (entry.type !== 'run_created' && entry.type !== 'audit_event') continue;
    case_id ??= entry.body.case_id ?? null;
    if (entry.body.actor.actor_type !== 'system') actor_id = entry.body.actor.actor_id;
  }
  return { case_id, actor_id };
}

/** How much of the disk a part of a batch takes, estimated upwards. */
export function recordedBytes({ entries, artifacts }: Pick<TreeAppend, 'entries' | 'artifacts'>): number {
  let bytes = 0;
  for (const { text } of entries) bytes += text.length + ENTRY_BYTES;
  for (const { artifact } of artifacts) bytes += artifact.bytes.byteLength + CONTENT_BYTES;
  return Math.ceil(bytes * FACTOR);
}

const want = (bytes: number): Limits => limitsOf({ steps: 0, tool_calls: 0, wall_ms: 0, bytes, tokens: 0 });
const NOTHING = amountsOf({});

const heldBy = ({ tree_id, case_id, actor_id }: Holders): Grant['held'] => [
  ...(tree_id === null ? [] : [['run', tree_id] as const]),
  ['case', case_id ?? ''],
  ['actor', actor_id],
];
