// Refuses new work before the disk is full. Work in flight can then still be recorded, and every run can end.
//
//   G1. Below the low-water mark no run starts, and content over 16 KiB is refused.
//   G2. If a commit does not fit on the disk, the reserve is given up for it. Until there is room again, only ends of
//       runs and decisions of people are accepted.
//   G3. A budget is reserved at admission and settled at recording, so it holds for any number of concurrent callers.

import { RunError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { DiskSpace } from '../../engine/ports/disk-space.js';
import type { Batch } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import {
  recordedBytes,
  StorageAccounts,
  textBytesMax,
  utf8Bytes,
  type StorageAccountIds,
  type StorageAccountKind,
  validateStorageOptions,
  waterMarksOf,
  type StorageOptions,
} from './storage-accounts.js';
import { isOpeningInput } from '../../core/contract/run/entry.js';
import { featureActorId, featureInputKind, loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { SubmissionResult, NewInput, Submission, TreeEngine } from '../../engine/tree-engine.js';

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
  const actor_id = 'actor' in input ? input.actor.actor_id : (featureActorId(input) ?? '');
  return { tree_id, case_id: namedCase, actor_id };
}
