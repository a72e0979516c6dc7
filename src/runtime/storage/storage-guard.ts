// Refuses new work before the disk is full. Work in flight can then still be recorded, and every run can end.
//
//   G1. Below the low-water mark no run starts, and content over 16 KiB is refused.
//   G2. If a commit does not fit on the disk, the reserve is given up for it. Until there is room again, only ends of
//       runs and decisions of people are accepted.
//   G3. A budget is reserved at admission and settled at recording, so it holds for any number of concurrent callers.

import { RunError, usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { DiskSpace, FreeSpace } from '../../engine/ports/disk-space.js';
import type { Batch, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import { isOpeningInput, type RecordedInput } from '../../core/contract/run/entry.js';
import { featureActorId, featureInputKind, loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { SubmissionResult, NewInput, Submission, TreeEngine } from '../../engine/tree-engine.js';
import type { Artifact } from '../../core/contract/artifact-ref.js';

/**
 * The engine as callers use it. The storage guard must first admit starts of trees, content of agents, and readings of
 * people. Ends of runs, decisions of people, and what the engine itself records always pass.
 */
export class AdmittedEngine implements TreeEngine {
  readonly #engine: TreeEngine;
  readonly #guard: StorageGuard;

  constructor(engine: TreeEngine, guard: StorageGuard) {
    this.#engine = engine;
    this.#guard = guard;
  }

  submit(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    // The accounts of an input depend on its feature. What core decides with a feature has none.
    const loading = 'feature' in submission.input ? loadFeatureOf(submission.input) : null;
    if (loading === null) return this.#submitAdmitted(tree_id, submission);
    return loading.then(() => this.#submitAdmitted(tree_id, submission));
  }

  #submitAdmitted(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    const { input, materials } = submission;
    const guard = this.#guard;
    const submit = (): Promise<SubmissionResult> => this.#engine.submit(tree_id, submission);
    if (isOpeningInput(input)) return guard.admitStart(accountIdsOf(null, input), submit);
    switch (input.kind) {
      case 'proposal':
      case 'start_run':
        return guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
      case 'start_agent':
        // Its own entries were reserved together with those of the tree that is opened for it.
        return materials.length === 0
          ? submit()
          : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
      case 'access':
        return guard.admitContent({ tree_id: null, case_id: null, actor_id: input.actor.actor_id }, 0, submit);
      default:
        return featureInputKind(input.kind) === null
          ? submit()
          : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), submit);
    }
  }

  readonly peek: TreeEngine['peek'] = (tree_id) => this.#engine.peek(tree_id);
  readonly inspect: TreeEngine['inspect'] = (tree_id, work) => this.#engine.inspect(tree_id, work);
  readonly findStep: TreeEngine['findStep'] = (...step) => this.#engine.findStep(...step);
  readonly awaitStep: TreeEngine['awaitStep'] = (...step) => this.#engine.awaitStep(...step);
  readonly erase: TreeEngine['erase'] = (...erasure) => this.#engine.erase(...erasure);
  readonly exclusively: TreeEngine['exclusively'] = (work) => this.#engine.exclusively(work);
  readonly head: TreeEngine['head'] = () => this.#engine.head();
  readonly waitUntilIntegrated: TreeEngine['waitUntilIntegrated'] = (...waiting) =>
    this.#engine.waitUntilIntegrated(...waiting);
  readonly labelVersion: TreeEngine['labelVersion'] = (case_id) => this.#engine.labelVersion(case_id);
  readonly start: TreeEngine['start'] = () => this.#engine.start();
  readonly stop: TreeEngine['stop'] = () => this.#engine.stop();
  readonly restart: TreeEngine['restart'] = () => this.#engine.restart();

  get hasFailed(): boolean {
    return this.#engine.hasFailed;
  }

  get condition(): TreeEngine['condition'] {
    return this.#engine.condition;
  }
}

const bytesOf = (materials: Submission['materials']): number =>
  materials.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);

/**
 * The accounts that content counts for, according to its input. The accounts know the rest for trees of this process.
 */
function accountIdsOf(tree_id: string | null, input: NewInput): StorageAccountIds {
  const namedCase = 'case_id' in input ? input.case_id : 'payload' in input ? (input.payload.case_id ?? null) : null;
  const actor_id = 'actor' in input ? input.actor.actor_id : 'feature' in input ? featureActorId(input) : null;
  return { tree_id, case_id: namedCase, actor_id: actor_id ?? '' };
}

/** Content up to this size is still recorded below the low-water mark. */
const SMALL_CONTENT_BYTES = 16_384;
/** Upper estimate of the entries of one step, and of the start of one run tree. */
const STEP_BYTES = 24_576;
const START_BYTES = 65_536;
/** A commit writes its pages first to the log of the database and later to the database. */
const PAGES_FACTOR = 3;
const MARGIN_BYTES = 65_536;
const HOUR_MS = 3_600_000;

interface GuardParts {
  readonly options: StorageOptions;
  /** Null if the store is not on a known local disk. */
  readonly space: DiskSpace | null;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Log;
}

/** Admits work according to the free space, and follows the commits. */
export class StorageGuard {
  readonly #parts: GuardParts;
  readonly #accounts: StorageAccounts;
  #isReserved = false;
  /** The hour of the last admission, since 1970. */
  #hour = 0;

  constructor(parts: GuardParts) {
    this.#parts = { ...parts, options: validateStorageOptions(parts.options) };
    this.#accounts = new StorageAccounts(parts.options);
  }

  /** Creates the reserve as far as there is room. */
  open(): void {
    this.#ensureReserve();
  }

  /** Whether runs may start: false below the low-water mark, and without the reserve. */
  admitsStarts(): boolean {
    return this.#ensureReserve();
  }

  /** The free space in bytes; null if the disk is not known. */
  freeBytes(): number | null {
    return this.#parts.space?.measure()?.free ?? null;
  }

  /** Whether the disk accepts a write now; true if the disk is not known. */
  async isWritable(): Promise<boolean> {
    return (await this.#parts.space?.isWritable?.()) ?? true;
  }

  /** Creates the reserve before `work`: at an opening and at each restart. */
  withReserve(work: () => Promise<void>): () => Promise<void> {
    return () => {
      this.open();
      return work();
    };
  }

  /**
   * Admits the start of a run tree or session.
   * @throws RunError STORAGE_LOW, STORAGE_BUDGET; then nothing was started
   */
  admitStart<T>(ids: Omit<StorageAccountIds, 'tree_id'>, work: () => Promise<T>): Promise<T> {
    if (!this.#ensureReserve()) return Promise.reject(storageLowError());
    return this.#reserveDuring({ ...ids, tree_id: null }, START_BYTES, work);
  }

  /** Admits content of `bytes` for a run. @throws RunError STORAGE_LOW, STORAGE_BUDGET; then there is no step */
  admitContent<T>(ids: StorageAccountIds, bytes: number, work: () => Promise<T>): Promise<T> {
    if (!this.#ensureReserve() && (bytes > SMALL_CONTENT_BYTES || !this.#isReserved))
      return Promise.reject(storageLowError());
    return this.#reserveDuring(ids, bytes + STEP_BYTES, work);
  }

  /** Makes room for a commit. */
  prepare({ trees }: Batch): void {
    const { space } = this.#parts;
    if (space === null) return;
    const now = space.measure();
    if (now === null) return;
    const fits = (textBytes: (text: string) => number): boolean =>
      now.free >= PAGES_FACTOR * trees.reduce((sum, append) => sum + recordedBytes(append, textBytes), MARGIN_BYTES);
    // First with an upper bound, because it is costly to count the bytes of every text.
    if (!fits(textBytesMax) && !fits(utf8Bytes)) this.#release(space);
  }

  onCommitted(batch: Batch): void {
    this.#accounts.committed(batch);
  }

  /** Gives up the reserve if the disk is low: an opening, or a restart after a failure, needs the room. */
  releaseReserveIfLow(): void {
    const { space, options } = this.#parts;
    const now = space?.measure() ?? null;
    if (space !== null && now !== null && now.free < waterMarksOf(options, now).low) {
      this.#release(space);
    }
  }

  async #reserveDuring<T>(ids: StorageAccountIds, bytes: number, work: () => Promise<T>): Promise<T> {
    // An actor that has used up its hour records nothing that would start the next one.
    this.#turnHour();
    const reservation = this.#accounts.admit(ids, bytes);
    if (typeof reservation === 'string') throw budgetExhaustedError(reservation);
    try {
      return await work();
    } finally {
      this.#accounts.settle(reservation);
    }
  }

  #turnHour(): void {
    const now = this.#parts.clock.now();
    const hour = Math.floor(now / HOUR_MS);
    if (hour === this.#hour) return;
    this.#hour = hour;
    this.#accounts.turnHour(new Date(now).toISOString());
  }

  /** Whether there is more free space than the low-water mark. Creates the reserve again if there is room for it. */
  #ensureReserve(): boolean {
    const { space, options } = this.#parts;
    const now = space?.measure() ?? null;
    if (space === null || now === null) return true;
    const { low: mark, reserved } = waterMarksOf(options, now);
    if (!this.#isReserved && now.free + space.reservedBytes() >= mark + reserved)
      this.#isReserved = space.reserve(reserved);
    return this.#isReserved && now.free >= mark;
  }

  #release(space: DiskSpace): void {
    const wasReserved = space.reservedBytes() > 0;
    this.#isReserved = false;
    if (!wasReserved) return;
    space.release();
    this.#parts.log.error('the disk of the ledger is full: the reserve was released to record work in flight', {});
  }
}

const storageLowError = (): RunError =>
  new RunError({
    code: 'STORAGE_LOW',
    message: 'the disk of the ledger is almost full: free space, or enlarge it; runs can still be ended',
  });

const BUDGET_ADVICE: Readonly<Record<StorageAccountKind, string>> = {
  run: 'this run tree: end it and start another (`storage.runBytes`)',
  case: 'this case: archive or erase, and open the home again (`storage.caseBytes`)',
  actor: 'this actor: wait for the next hour (`storage.actorBytes`)',
};

const budgetExhaustedError = (kind: StorageAccountKind): RunError =>
  new RunError({ code: 'STORAGE_BUDGET', message: `there is no storage budget left for ${BUDGET_ADVICE[kind]}` });

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
function validateStorageOptions(options: StorageOptions): StorageOptions {
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

// An account has the bytes that the ledger has recorded, or admitted and not yet recorded, for one run tree, case or
// actor. Accounts follow rules B1 and B2 of run budgets (budget-account.ts, decision 0015). They change in place: each
// step books in three of them, three times.

/** The accounts that content counts for. Null without a tree or case; an empty actor means no account. */
export interface StorageAccountIds {
  readonly tree_id: string | null;
  readonly case_id: string | null;
  readonly actor_id: string;
}

/** The kind of the account whose budget is used up. */
type StorageAccountKind = 'run' | 'case' | 'actor';

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
  if (input.kind === 'start_agent' || input.kind === 'start_run') return input.actor.actor_id;
  return 'feature' in input ? featureActorId(input) : null;
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
const utf8Bytes = (text: string): number => Buffer.byteLength(text);
/** UTF-8 bytes for one UTF-16 unit, at most. */
const BYTES_A_CHAR_MAX = 3;
/** An upper bound of the bytes of a text in UTF-8. */
const textBytesMax = (text: string): number => text.length * BYTES_A_CHAR_MAX;

const entryBytes = (textBytes: number): number => Math.ceil((textBytes + ENTRY_BYTES) * FACTOR);
const contentBytes = ({ bytes }: Artifact): number => Math.ceil((bytes.byteLength + CONTENT_BYTES) * FACTOR);

function accountsOf({ tree_id, case_id, actor_id }: StorageAccountIds): AccountKeys {
  const keys: (readonly [kind: StorageAccountKind, id: string])[] = [];
  if (tree_id !== null) keys.push(['run', tree_id]);
  if (case_id !== null) keys.push(['case', case_id]);
  if (actor_id !== '') keys.push(['actor', actor_id]);
  return keys;
}
