// The engine of one process: live trees in memory, one store, and one transaction for all inputs of an event-loop tick.
// A `LedgerWriter` decides whether this process is the only writer of the ledger or one of several.
//
// The path of an input: `submit`, `#enqueue`, `#runTick`, `#processTick`, `#reply`, and `#startEffect`, which submits
// the result of the effect.
//
// Invariants:
//   E1. One tick runs at a time. It decides and commits, and only then replies and starts effects. One of several
//       workers decides the next tick, of other trees, while a commit is in flight. Ticks end in their order.
//   E2. A failed commit stops the engine: it acknowledges nothing of that batch or of a later one, and runs no more
//       effects (D2), until a restart has opened the ledger again with empty memory.
//   E3. This process runs a command once. If the commit after a local read fails, no caller receives its result (C78).
//   E4. An input on which a tree fails leaves nothing behind: the engine folds the tree again as it was before.
//   E5. A restart begins when nothing of the failed epoch is in flight, so no effect runs while it is being settled.
//       The engine accepts the inputs of recovery and timers while it still rejects those of callers.
//   E6. If another worker has extended a tree, nothing of that tree was committed: the engine folds the tree again and
//       decides the same inputs again. No callback or effect of the lost decision runs.

import { InvariantError, type RunError, type LedgerError } from '../core/errors.js';
import type { Decision, RunTermination, Reply } from '../kernel/decision.js';
import type { Tree } from '../kernel/tree.js';
import type { ErasureResult, LogHead, LedgerStore } from './ports/ledger/ledger-store.js';
import type { GrownTree } from './ports/ledger/shared-store.js';
import { checkExternalHead } from '../core/ledger/verification/check-external-head.js';
import { EffectRunner, type EffectOutcome, type SuspendableEffects, type SuspendableParts } from './effect-runner.js';
import { HeadWriter } from './head-writer.js';
import { InputQueue, LIMITS, QUEUE_MAX, SHARED_LIMITS, ParkedInputs } from './tick/input-queue.js';
import { type LiveTrees, openLiveTrees } from './trees/live-trees.js';
import type { Reservations } from './reservations/quota-reservations.js';
import { StepLookup } from './trees/step-lookup.js';
import {
  queueFullError,
  closedError,
  ledgerUnavailableError,
  executionSuspendedError,
  sandboxElsewhereError,
  effectsInFlightError,
  caseInUseError,
} from './engine-errors.js';
import { decisionsSubmission, resultSubmission, sharedWakeSubmission, wakeSubmission } from './tick/tick-inputs.js';
import { type InputOutcome, type IssuedCommand, type QueuedInput, lostInputs } from './tick/input-outcome.js';
import { Tick, type TickOptions, Timestamps } from './tick/tick.js';
import { DRAIN_MS, Timers, waitAtMost, type LoadedTimers } from './timers.js';
import type {
  SubmissionResult,
  Recovery,
  Submission,
  TreeEngine,
  NewInput,
  EngineCondition,
  EngineListener,
  EngineParts,
} from './tree-engine.js';
import type { CommittedTick, IntegrationWaiting, LedgerWriter, SharedEngineAccess } from './writers/ledger-writer.js';
import { findPermanentFailure } from './failures.js';

const NO_TREES: ReadonlySet<string> = new Set();
const NOTHING = Promise.resolve(null);

export class LedgerEngine implements TreeEngine {
  readonly #options: SuspendableParts;
  readonly #listeners: readonly EngineListener[];
  readonly #writer: LedgerWriter;
  readonly #effectRunner: EffectRunner;
  readonly #trees: LiveTrees;
  readonly #timers: Timers;
  readonly #reservations: Reservations;
  readonly #tickOptions: TickOptions;
  readonly #queue: InputQueue;
  readonly #restarts = new Restarts();
  /** What waits until the step of another input has ended. */
  readonly #parked: ParkedInputs;
  readonly #responses = new PendingResponses();
  readonly #steps: StepLookup;
  /** Heads of the current epoch; null before the start. */
  #heads: HeadWriter | null = null;
  /** Null for the only writer. */
  readonly #integrations: IntegrationWaiting | null;
  /** Resolves when the tick that was decided last has ended. */
  #lastTick: Promise<void> = Promise.resolve();
  #stopped = false;
  readonly #timestamps: Timestamps;

  constructor(options: SuspendableParts, writer: LedgerWriter) {
    this.#options = options;
    this.#listeners = options.listeners ?? [];
    this.#timestamps = new Timestamps(options.clock);
    this.#writer = writer;
    this.#reservations = writer.reservations;
    this.#effectRunner = new EffectRunner(options.effects, this.#reservations);
    const limits = writer.sharesTrees ? SHARED_LIMITS : LIMITS;
    this.#queue = new InputQueue({ limits, defer: options.defer });
    this.#parked = new ParkedInputs(options.clock, (item) => this.#push(item));
    this.#trees = openLiveTrees(options, writer.treeLengths);
    this.#steps = new StepLookup({
      ...{ store: options.store, queue: this.#queue, trees: this.#trees, parked: this.#parked },
      refresh: (tree_id) => this.#refresh([tree_id]),
      refusal: () => (this.#stopped ? closedError() : this.#restarts.unavailability),
    });
    this.#timers = new Timers(options.clock, {
      // If the timer is too late for its run, the lifecycle refuses the input. A failed engine has no timers.
      fire: (tree_id, run_id, at) => this.#fire(tree_id, run_id, at),
      load: (tree_ids) => this.#timersOf(tree_ids),
    });
    const confirm = (): Promise<LogHead | null> => (this.hasFailed ? NOTHING : (this.#heads?.confirm() ?? NOTHING));
    this.#integrations = writer.createWaiters?.(confirm) ?? null;
    this.#tickOptions = {
      store: options.store,
      trees: this.#trees,
      ...{ effectRunner: this.#effectRunner, reservations: this.#reservations, ledgerFacts: writer.ledgerFacts },
      ...{ secrets: options.secrets, observer: options.tickObserver, overlay: options.overlay },
      timestamps: this.#timestamps,
      sharesTrees: writer.sharesTrees,
      parked: writer.sharesTrees ? this.#parked : null,
    };
  }

  submit(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    if (this.#stopped) return Promise.reject(closedError());
    if (this.hasFailed) return Promise.reject(ledgerUnavailableError(this.#restarts.rejectionCause));
    const isFull = this.#queue.size >= QUEUE_MAX;
    const refused = refuseInput(this.#options.effects, submission) ?? (isFull ? queueFullError(QUEUE_MAX) : null);
    return refused === null ? this.#enqueue(tree_id, submission) : Promise.reject(refused);
  }

  #enqueue(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    return new Promise((resolve, reject) => {
      const queuedAt = this.#options.tickObserver?.now() ?? 0;
      if (this.#restarts.failure !== null) reject(ledgerUnavailableError(this.#restarts.failure));
      else this.#push({ tree_id, submission, resolve, reject, queuedAt });
    });
  }

  #push(item: QueuedInput): void {
    this.#queue.push(item);
    this.#queue.scheduleTick(this.#runTick);
  }

  /** Runs one tick: all inputs of one turn of the event loop. Never rejects: a failure stops the engine (E2). */
  readonly #runTick = async (items: readonly QueuedInput[]): Promise<void> => {
    this.#lastTick = this.#tryTick(items, this.#lastTick);
    await this.#lastTick;
    this.#queue.endTick(items);
    this.#evict();
    this.#queue.scheduleTick(this.#runTick);
  };

  async #tryTick(items: readonly QueuedInput[], before: Promise<void>): Promise<void> {
    let tick: Tick | null = null;
    try {
      tick = new Tick(this.#tickOptions, items);
      await this.#processTick(tick, before);
    } catch (error) {
      if (tick !== null) await this.#writer.unlock(tick, error);
      this.#fail(error, items);
    }
  }

  /** One transaction: looks up and decides all inputs, commits what they decide, then replies and starts effects. */
  async #processTick(tick: Tick, before: Promise<void>): Promise<void> {
    this.#refuseFailed();
    const locking = this.#writer.lockContested(tick);
    if (locking !== null) await locking;
    await tick.lookUp();
    await tick.decide();
    this.#refuseFailed();
    const committing = this.#writer.commit(tick);
    if (locking === null) this.#queue.allowNextTick(tick.items);
    const committed = await committing;
    tick.markCommitted();
    // E1. Ticks end in their order.
    await before;
    this.#refuseFailed();
    if (committed !== null) this.#publishCommit(tick, committed);
    this.#queue.postpone(tick.postponed);
    const overtaken = committed?.overtaken ?? NO_TREES;
    if (overtaken.size > 0) await this.#catchUp(tick, overtaken);
    const durable = tick.outcomes.filter(({ tree_id }) => !overtaken.has(tree_id));
    tick.report(durable);
    for (const outcome of durable) this.#reply(outcome);
    for (const { issued } of durable) for (const command of issued) this.#startEffect(command, committed?.sentAt);
    this.#parked.release(durable.map(({ tree_id }) => tree_id));
  }

  /** E2. The only writer has one tick at a time, so its own failure ends the tick. */
  #refuseFailed(): void {
    const { failure } = this.#restarts;
    if (this.#writer.sharesTrees && failure !== null) throw ledgerUnavailableError(failure);
  }

  #publishCommit({ outcomes }: Tick, { batch, result }: CommittedTick): void {
    if (this.#heads === null) throw new InvariantError('the engine was not started');
    if (batch.trees.length === 0) return;
    this.#options.commitObserver?.onCommitted(batch, result, this.#trees.peek);
    const shouldWrite = outcomes.some(({ checkpoint }) => checkpoint);
    this.#heads.onCommitted(result, shouldWrite);
  }

  /** E6. Folds the trees again, with the entries of the other worker, and decides the inputs of this tick again. */
  async #catchUp(tick: Tick, overtaken: ReadonlySet<string>): Promise<void> {
    for (const tree_id of overtaken) {
      this.#reservations.forget(tree_id);
      const since = tick.batch.firstSeq(tree_id);
      this.#report(tree_id, await this.#trees.foldAgain(tree_id, since));
    }
    this.#queue.postpone(lostInputs(tick.outcomes, overtaken));
    this.#parked.release([...overtaken]);
  }

  /** Answers the submitter of an input that is durable. */
  #reply({ item, tree_id, decisions, result }: InputOutcome): void {
    const { input, expectsResponse } = item.submission;
    const isNew = !result.refused && result.repeat_of === null;
    // Before the decisions are reported: they may have the response.
    const response = expectsResponse === true && isNew ? this.#responses.add(input.run_id, input.input_id) : undefined;
    this.#report(tree_id, decisions);
    for (const decision of decisions) {
      for (const rejection of explainedRejections(decision)) {
        this.#options.log.info('a proposal does not match its schema', rejection);
      }
    }
    item.resolve(response === undefined ? result : { ...result, response });
  }

  /** Reports decisions to callers and timers of this process. If another worker has made them, it runs the effects. */
  #report(tree_id: string, decisions: readonly Decision[]): void {
    for (const { replies, ended, timers } of decisions) {
      for (const reply of replies) this.#responses.resolve(reply);
      for (const ending of ended) this.#reportEnd(tree_id, ending);
      if (timers.length > 0) this.#timers.set(tree_id, timers);
    }
  }

  #reportEnd(tree_id: string, ending: RunTermination): void {
    this.#timers.clearRun(ending.run_id);
    const endsTree = ending.run_id === tree_id;
    // Every later input would be refused. A later request for the tree folds it again.
    if (endsTree) this.#trees.drop(tree_id);
    this.#responses.endRun(ending.run_id);
    for (const listener of this.#listeners) {
      listener.onEnded?.(tree_id, ending);
      if (endsTree) listener.onTreeEnded?.();
    }
  }

  /**
   * Runs an effect, or sends queries to decision points, once it is permitted.
   * @param sentAt when its commit was sent
   */
  #startEffect(issued: IssuedCommand, sentAt = -Infinity): void {
    const permission = this.#writer.permitEffect(sentAt);
    if (permission === null) {
      this.#runEffect(issued);
      return;
    }
    const before = this.#epoch;
    // The permission may come after the engine has failed, when a restart settles the effect.
    const isOver = (): boolean => before === null || before !== this.#epoch;
    permission.then(
      () => (isOver() ? undefined : this.#runEffect(issued)),
      // Without permission another worker may settle the effect. A restart settles it if no other worker does.
      (error: unknown) => (isOver() ? undefined : this.#fail(error)),
    );
  }

  /** The result is an input again. */
  #runEffect({ tree_id, command }: IssuedCommand): void {
    if (command.kind === 'gather') {
      const asking = this.#effectRunner.ask(command.request);
      void asking.then((decisions) => this.#record(tree_id, decisionsSubmission(command, decisions)));
      return;
    }
    const { effect } = command;
    const record = (outcome: EffectOutcome): void => this.#record(tree_id, resultSubmission(effect, outcome, false));
    const outcome = this.#effectRunner.run(effect);
    if (outcome instanceof Promise) void outcome.then(record);
    else record(outcome);
  }

  /** What was executed must be recorded. If that fails, the engine stops and the next start settles the intent. */
  #record(tree_id: string, submission: Submission): void {
    this.#enqueue(tree_id, submission).catch((error: unknown) => this.#fail(error));
  }

  readonly peek = (tree_id: string): Promise<Tree | null> => this.inspect(tree_id, (tree) => tree);

  inspect<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T> {
    if (this.hasFailed) return Promise.reject(ledgerUnavailableError(this.#restarts.rejectionCause));
    return this.#inspect(tree_id, work);
  }

  readonly findStep: TreeEngine['findStep'] = (...step) => this.#steps.find(...step);
  readonly awaitStep: TreeEngine['awaitStep'] = (...step) => this.#steps.wait(...step);

  erase(case_id: string, by: string, beforeErase?: () => Promise<void>): Promise<ErasureResult> {
    const erasure = { case_id, by, time: () => this.#timestamps.now(), beforeErase };
    return this.exclusively(() => eraseCaseContent(this.#options.store, this.#trees, erasure));
  }

  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (this.#stopped) throw closedError();
    return this.#queue.runExclusive(async () => {
      if (this.#restarts.rejectionCause !== null) throw ledgerUnavailableError(this.#restarts.rejectionCause);
      return work();
    });
  }

  async head(): Promise<LogHead> {
    await this.#heads?.waitUntilIntegrated();
    if (this.#restarts.rejectionCause !== null) throw ledgerUnavailableError(this.#restarts.rejectionCause);
    return this.#options.store.head();
  }

  readonly waitUntilIntegrated: TreeEngine['waitUntilIntegrated'] = (tree_id, timeoutMs) =>
    this.#integrations?.wait(tree_id, timeoutMs) ?? this.#confirmOwn(timeoutMs);

  async #confirmOwn(timeoutMs: number): Promise<LogHead | null> {
    const confirmed = this.hasFailed ? NOTHING : (this.#heads?.confirmOwn() ?? NOTHING);
    return (await waitAtMost(this.#options.clock, timeoutMs, confirmed)) ? confirmed : null;
  }

  readonly labelVersion = async (case_id: string): Promise<number | null> =>
    (await this.#writer.labelVersion?.(case_id)) ?? null;

  get hasFailed(): boolean {
    return this.#restarts.rejectionCause !== null;
  }

  get condition(): TreeEngine['condition'] {
    return { ...this.#restarts.condition, laterTrees: this.#trees.later.count };
  }

  #inspect<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T> {
    // Never during a tick: the tree may have uncommitted decisions, or be folded twice.
    return this.#queue.runExclusive(async () => {
      if (this.#restarts.unavailability !== null) throw this.#restarts.unavailability;
      if (this.#writer.sharesTrees) await this.#refresh([tree_id]);
      const inspected = work(await this.#trees.get(tree_id));
      this.#evict();
      return inspected;
    });
  }

  #timersOf(tree_ids: readonly string[]): Promise<LoadedTimers> {
    return this.#queue.runExclusive(async () => {
      if (this.#stopped || this.#restarts.failure !== null) return new Map<string, null>();
      const timers = await this.#trees.timersOf(tree_ids, this.#options.log);
      this.#evict();
      return timers;
    });
  }

  #fire(tree_id: string, run_id: string, at: string): Promise<unknown> {
    // A timer may start an effect. A worker that can execute it claims the tree when its timer is due.
    if (this.#options.effects.isElsewhere) return NOTHING;
    const createWake = this.#writer.sharesTrees ? sharedWakeSubmission : wakeSubmission;
    return this.#submitOwn(tree_id, createWake(run_id, at));
  }

  /** Submits an input of the engine itself, which is accepted during recovery too. */
  #submitOwn(tree_id: string, submission: Submission): Promise<SubmissionResult> {
    return this.#stopped ? Promise.reject(closedError()) : this.#enqueue(tree_id, submission);
  }

  #evict(): void {
    this.#trees.evict(({ tree_id, pending }) => pending.length > 0 || this.#queue.isProcessing(tree_id));
  }

  /** Adds what other workers have appended to these trees. */
  async #refresh(tree_ids: readonly string[]): Promise<void> {
    for (const [tree_id, decisions] of await this.#trees.refresh(tree_ids)) {
      this.#report(tree_id, decisions);
      this.#parked.release([tree_id]);
    }
  }

  start(): Promise<Recovery> {
    return this.#becomeWriter(() => Promise.resolve());
  }

  restart(): Promise<Recovery> {
    if (this.#stopped) return Promise.reject(closedError());
    return this.#restarts.runOnce(() => this.#restart());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timers.clear();
    this.#writer.stop();
    await waitAtMost(this.#options.clock, DRAIN_MS, this.#restarts.waitUntilIdle());
    // Wait a limited time for effects in flight. The next start settles those that are not recorded by then.
    await waitAtMost(this.#options.clock, DRAIN_MS, this.#effectRunner.waitUntilIdle());
    await this.#queue.waitUntilIdle();
    this.#parked.rejectAll(closedError());
    this.#responses.rejectAll(closedError());
    // Inputs recorded meanwhile may have set timers.
    this.#timers.clear();
    await this.#heads?.stop(() => this.#restarts.failure !== null);
  }

  /** Becomes the writer, with empty memory, and recovers. */
  async #becomeWriter(reopenStores: () => Promise<void>): Promise<Recovery> {
    const { store, externalHeadStore, beforeRecovery, effects } = this.#options;
    const before = this.#heads?.head ?? null;
    const heads: HeadWriter = new HeadWriter({
      store,
      externalHeadStore,
      known: before,
      createLeader: this.#writer.createLeader,
      // Ignore the failure of an earlier epoch.
      onFailed: (error) => (heads === this.#heads ? this.#fail(error) : undefined),
    });
    await this.#queue.runExclusive(async () => {
      await reopenStores();
      this.#trees.clear();
      this.#effectRunner.startEpoch();
      await this.#writer.acquire();
      await effects.readSuspension(store);
      this.#heads = heads;
      if (!this.#stopped) this.#responses.accept();
    });
    // Nothing that this process has acknowledged may be missing, even if no head file covers it yet.
    if (before !== null) await checkExternalHead(store, { read: () => Promise.resolve(before) });
    await beforeRecovery?.();
    if (this.#stopped) throw closedError();
    await this.#queue.runExclusive(() => heads.start());
    this.#restarts.beginRecovery();
    return this.#restarts.completeRecovery(await this.#writer.recover(this.#access));
  }

  async #restart(): Promise<Recovery> {
    const { externalHeadStore, store } = this.#options;
    const parts = { queue: this.#queue, effectRunner: this.#effectRunner, heads: this.#heads, writer: this.#writer };
    await waitForQuiescence({ ...this.#options, ...parts }, this.#restarts.failure);
    try {
      const recovery = await this.#becomeWriter(async () => {
        if (this.#stopped) throw closedError();
        await externalHeadStore.reopen();
        await store.reopen();
      });
      if (this.hasFailed) throw ledgerUnavailableError(this.#restarts.failure);
      for (const listener of this.#listeners) listener.onRestarted?.(recovery);
      return recovery;
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** The engine as recovery and a shared writer use it. */
  readonly #access: SharedEngineAccess = {
    submit: (tree_id, submission) => this.#submitOwn(tree_id, submission),
    peek: (tree_id) => this.#inspect(tree_id, (tree) => tree),
    load: (tree_ids) => this.#queue.runExclusive(() => this.#trees.load(tree_ids)),
    reserve: (tree) => this.#reservations.restore(tree),
    arm: ({ tree_id, timers }) => this.#timers.set(tree_id, timers),
    armLater: (tree_id, at) => this.#timers.setLater(tree_id, at),
    refreshAll: () =>
      this.#queue.runExclusive(async () => {
        await this.#refresh([...this.#trees.ids]);
        this.#parked.releaseUnless((tree_id) => this.#trees.peek(tree_id) !== null);
      }),
    refreshGrown: (trees) => {
      const isBehind = ({ tree_id, length }: GrownTree): boolean =>
        (this.#trees.peek(tree_id)?.head.seq ?? length) < length;
      if (!trees.some(isBehind)) return Promise.resolve();
      return this.#queue.runExclusive(() => this.#refresh(trees.filter(isBehind).map(({ tree_id }) => tree_id)));
    },
    refreshLocked: (tree_ids) => this.#refresh(tree_ids),
    laterTrees: () => this.#trees.later.ids,
    fireDue: (tree_ids) => this.#timers.loadNow(tree_ids),
    fail: (error) => this.#fail(error),
  };

  /** Identifies the epoch; null while the engine has failed. */
  get #epoch(): HeadWriter | null {
    return this.#restarts.failure === null ? this.#heads : null;
  }

  /** Stops all work until a restart. `inputs` are no longer in the queue. */
  #fail(error: unknown, inputs: readonly QueuedInput[] = []): void {
    if (this.#restarts.failure === null) {
      // Do this first: a rejected caller may ask at once whether the engine has failed.
      const isFirst = this.#restarts.fail(error);
      this.#effectRunner.halt();
      this.#writer.stop();
      this.#options.store.records?.abandon();
      this.#timers.clear();
      const failure = ledgerUnavailableError(error);
      if (isFirst) for (const listener of this.#listeners) listener.onFailed?.(failure);
    }
    // Also after the first failure: a tick that was being decided may have left inputs for later.
    for (const item of [...inputs, ...this.#queue.drain()]) item.reject(ledgerUnavailableError(error));
    this.#parked.rejectAll(ledgerUnavailableError(error));
    this.#responses.rejectAll(ledgerUnavailableError(error));
  }
}

/** C94: the rejections of a decision that name a field and a constraint. */
const explainedRejections = ({ entries }: Decision): readonly Readonly<Record<string, unknown>>[] =>
  entries.flatMap(({ entry: { type, body } }) => {
    if (type !== 'step_trace' || body.explanation === undefined) return [];
    const { run_id, step_index, error_code, rule_id, explanation } = body;
    return [{ run_id, step_index, error_code, rule_id, explanation }];
  });

/** Inputs that start no effect: they start or end runs, or record a report, a reading, a restore or a rotation. */
const WITHOUT_EFFECTS: ReadonlySet<NewInput['kind']> = new Set([
  'open',
  'start_agent',
  'end',
  'cancel',
  'interrupt',
  'access',
  'report',
  'restore',
  'rotate_key',
]);

/** Also accepted after a restore: people find out what has happened. */
const WHILE_SUSPENDED: ReadonlySet<NewInput['kind']> = new Set([...WITHOUT_EFFECTS, 'resolve']);

/**
 * @returns why a process that executes no effects does not accept this input; null if it does. Its ledger was restored,
 * or its sandbox is elsewhere.
 */
function refuseInput(
  effects: SuspendableEffects,
  { input, startsNoEffect }: Pick<Submission, 'input' | 'startsNoEffect'>,
): RunError | null {
  const { kind } = input;
  // The command of an operator executes the act of such a run.
  if (startsNoEffect === true || (input.kind === 'start_run' && input.run_kind === 'tool_gateway')) return null;
  if (effects.isSuspended) return WHILE_SUSPENDED.has(kind) ? null : executionSuspendedError();
  return effects.isElsewhere && !WITHOUT_EFFECTS.has(kind) ? sandboxElsewhereError() : null;
}

interface PendingResponse {
  readonly resolve: (response: string | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The responses that submitters of this process wait for. A later decision may have one: about the result of an effect,
 * about a timer, or of another worker. A failure rejects them all, and those that are added after it, until the next
 * epoch. So recovery finds none.
 */
export class PendingResponses {
  /** By run, then by input. */
  readonly #runs = new Map<string, Map<string, PendingResponse>>();

  /** What rejected all; null while the engine works. */
  #failure: { readonly error: unknown } | null = null;

  /** @returns the response; null if the run ends without one */
  add(run_id: string, input_id: string): Promise<string | null> {
    const response = new Promise<string | null>((resolve, reject) => {
      const pending = { resolve, reject };
      if (this.#failure !== null) {
        pending.reject(this.#failure.error);
        return;
      }
      const others = this.#runs.get(run_id);
      if (others === undefined) this.#runs.set(run_id, new Map([[input_id, pending]]));
      else others.set(input_id, pending);
    });
    response.catch(() => undefined);
    return response;
  }

  resolve({ run_id, input_id, response }: Reply): void {
    const pending = this.#runs.get(run_id);
    pending?.get(input_id)?.resolve(response);
    pending?.delete(input_id);
    if (pending?.size === 0) this.#runs.delete(run_id);
  }

  endRun(run_id: string): void {
    for (const { resolve } of this.#runs.get(run_id)?.values() ?? []) resolve(null);
    this.#runs.delete(run_id);
  }

  rejectAll(error: unknown): void {
    this.#failure = { error };
    for (const pending of this.#runs.values()) for (const { reject } of pending.values()) reject(error);
    this.#runs.clear();
  }
  /** Begins an epoch: responses can be added again. */
  accept(): void {
    this.#failure = null;
  }
}

interface FailedEpoch extends Pick<EngineParts, 'clock' | 'defer'> {
  readonly queue: InputQueue;
  readonly effectRunner: EffectRunner;
  readonly heads: HeadWriter | null;
  readonly writer: Pick<LedgerWriter, 'waitUntilIdle'>;
}

/**
 * Waits until nothing of a failed epoch is in flight: callers are rejected, and every effect has ended.
 * @throws LedgerError LEDGER_UNAVAILABLE if an effect takes too long
 */
async function waitForQuiescence(
  { clock, defer, queue, effectRunner, heads, writer }: FailedEpoch,
  failure: unknown,
): Promise<void> {
  await new Promise<void>((done) => defer(done));
  // A poll that goes on in the next epoch would settle effects by what it knew of their trees in this one.
  if (!(await waitAtMost(clock, DRAIN_MS, writer.waitUntilIdle()))) throw effectsInFlightError(failure);
  await queue.waitUntilIdle();
  if (!(await waitAtMost(clock, DRAIN_MS, effectRunner.waitUntilIdle()))) throw effectsInFlightError(failure);
  await heads?.waitUntilIdle();
}

type RestartCondition = Omit<EngineCondition, 'laterTrees'>;

const RUNNING: RestartCondition = { state: 'running', permanentCode: null };
const RECOVERING: RestartCondition = { state: 'recovering', permanentCode: null };

/** Tracks the failure of an engine and its restart. */
class Restarts {
  #failure: unknown = null;
  #rejectionCause: unknown = null;
  #recovery: Recovery | null = null;
  #pendingRestart: Promise<Recovery> | null = null;

  /** The error that ended the current epoch, or null. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Why the engine rejects callers, or null: the failure, until a restart has recovered from it. */
  get rejectionCause(): unknown {
    return this.#rejectionCause;
  }

  /** The error for callers that read trees; null while the ledger is open. */
  get unavailability(): LedgerError | null {
    return this.#failure === null ? null : ledgerUnavailableError(this.#failure);
  }

  get condition(): RestartCondition {
    if (this.#rejectionCause === null) return RUNNING;
    // The failure is cleared when the ledger is open again, and the cause when recovery has ended.
    if (this.#failure === null) return RECOVERING;
    return { state: 'failed', permanentCode: findPermanentFailure(this.#rejectionCause)?.code ?? null };
  }

  /** @returns whether this is the first failure */
  fail(error: unknown): boolean {
    const isFirst = this.#rejectionCause === null;
    this.#failure = error;
    this.#rejectionCause = error;
    return isFirst;
  }

  /** Accepts inputs of recovery from now on, and clears the failure. */
  beginRecovery(): void {
    this.#failure = null;
  }

  /** Accepts inputs of callers from now on, unless a new failure has happened. */
  completeRecovery(recovery: Recovery): Recovery {
    this.#recovery = recovery;
    if (this.#failure === null) this.#rejectionCause = null;
    return recovery;
  }

  /** Runs `work` after a transient failure. Concurrent callers share one attempt. */
  runOnce(work: () => Promise<Recovery>): Promise<Recovery> {
    this.#pendingRestart ??= this.#attemptRestart(work).finally(() => {
      this.#pendingRestart = null;
    });
    return this.#pendingRestart;
  }

  /** Resolves when no restart is in flight, whatever its result. */
  async waitUntilIdle(): Promise<void> {
    await this.#pendingRestart?.catch(() => undefined);
  }

  async #attemptRestart(work: () => Promise<Recovery>): Promise<Recovery> {
    if (this.#rejectionCause === null) {
      if (this.#recovery === null) throw new InvariantError('the engine was not started');
      return this.#recovery;
    }
    const permanentFailure = findPermanentFailure(this.#rejectionCause);
    if (permanentFailure !== null) throw permanentFailure;
    try {
      return await work();
    } catch (error) {
      // A permanent failure during a restart is not retried.
      if (findPermanentFailure(error) !== null) this.#rejectionCause = error;
      throw error;
    }
  }
}

interface CaseErasure {
  readonly case_id: string;
  readonly by: string;
  readonly time: () => string;
  /** Called before anything is erased, once no check can refuse any more. */
  readonly beforeErase: (() => Promise<void>) | undefined;
}

/**
 * Erases the content of a case (D14). The caller must keep everything else away from the trees.
 * @throws RunError CASE_IN_USE while a tree of the case is live
 */
async function eraseCaseContent(store: LedgerStore, trees: LiveTrees, erasure: CaseErasure): Promise<ErasureResult> {
  const { case_id, by, time, beforeErase } = erasure;
  const found = await store.treesOf(case_id);
  const living = found.find(({ ended }) => !ended);
  if (living !== undefined) throw caseInUseError(case_id, living.tree_id);
  const tree_ids = found.map(({ tree_id }) => tree_id);
  await beforeErase?.();
  for (const tree_id of tree_ids) trees.drop(tree_id);
  return store.erase({ case_id, tree_ids, at: time(), by });
}
