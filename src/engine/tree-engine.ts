import type { Artifact } from '../core/contract/artifact-ref.js';
import type { EffectResult, Effect, SandboxRequest, SandboxFacts } from '../core/contract/run/effect.js';
import type { DecisionQuery, DecisionReply } from '../core/contract/policy/decision-points.js';
import type { RecordedInput } from '../core/contract/run/entry.js';
import type { CancelReason } from '../core/contract/free-text.js';
import type { Interpretation } from '../kernel/interpreter/interpreter.js';
import type { Tree } from '../kernel/tree.js';
import type { RunTermination } from '../kernel/decision.js';
import type { Clock } from './ports/clock.js';
import type {
  Batch,
  CommitResult,
  ErasureResult,
  ExternalHeadStore,
  LedgerStore,
  LogHead,
} from './ports/ledger/ledger-store.js';
import type { Log } from './ports/log.js';
import type { OverlaySource } from './ports/policy-sources.js';
import type { Secrets } from '../core/contract/secrets.js';
import type { CompletedStep } from './trees/completed-step.js';
import type { TickObserver } from './tick/tick-observer.js';

/** The coded fields that replace free text in new inputs (C90); the text itself becomes an artifact. */
interface CodedFields {
  readonly cancel: { readonly reason: CancelReason };
  readonly resolve: { readonly note: '' };
}

/** An input before the engine adds the timestamp, the overlay and the facts that only the store knows. */
export type NewInput = RecordedInput extends infer Input
  ? Input extends RecordedInput
    ? Omit<Input, 'time' | 'seen' | 'overlay' | 'vouch' | keyof CodedFieldsOf<Input>> & CodedFieldsOf<Input>
    : never
  : never;
type CodedFieldsOf<Input extends RecordedInput> = Input['kind'] extends keyof CodedFields
  ? CodedFields[Input['kind']]
  : unknown;

/** The version of a case's label, with which an input was made. */
export interface CaseLabelVersion {
  readonly case_id: string;
  readonly version: number;
}

export interface Submission {
  readonly input: NewInput;
  /** The content that the input's references name (`TreeInput.materials`). */
  readonly materials: readonly Artifact[];
  /**
   * True if the caller chose the input id and may send it again, so the store must remember the id. Ids that the engine
   * derives need no memory, because a machine takes a result only while it waits for it.
   */
  readonly rememberInputId: boolean;
  /** As `TreeInput.checked`. */
  readonly checked?: boolean;
  /**
   * Whether the input has lost its purpose, e.g. another worker has fired the timer. It is then dropped and reported as
   * refused. Absent: never.
   */
  readonly isObsolete?: (tree: Tree) => boolean;
  /**
   * The input contains the label of a case. If the label has changed since, or may have, nothing is recorded and the
   * submission is rejected with RunError CASE_CHANGED. Absent: it contains none, or no other worker changes the case.
   */
  readonly caseLabel?: CaseLabelVersion;
  /** The caller knows that the input starts no effect, such as a vote on an act that an operator executes. */
  readonly startsNoEffect?: true;
  /** The caller waits for the response to the input: `SubmissionResult.response`. */
  readonly expectsResponse?: true;
}

export interface SubmissionResult {
  /** True if the lifecycle has no transition for this input: no state changed, and an audit event records it. */
  readonly refused: boolean;
  /**
   * The seq of the first input if this input id was committed before (this call then changed nothing); null otherwise.
   */
  readonly repeat_of: number | null;
  /**
   * The response to the input, once it is durable; null if its run ends without one. Often a later input leads to it,
   * such as the result of an effect. Absent if the caller did not expect it, or if this call changed nothing. It
   * rejects with LedgerError LEDGER_UNAVAILABLE if the engine fails before, and with RunError CLOSED if it stops.
   */
  readonly response?: Promise<string | null>;
}

/** Notifications to the embedding service, always after the commit. */
export interface EngineListener {
  /** A run has ended. */
  onEnded?(tree_id: string, ending: RunTermination): void;
  /** The root of a tree has ended. */
  onTreeEnded?(): void;
  /** The ledger cannot be written: nothing is acknowledged or executed until a restart. Called once per failure. */
  onFailed?(error: unknown): void;
  /** A restart has succeeded: the engine accepts inputs again. */
  onRestarted?(recovery: Recovery): void;
}

/** The unfinished work that a start or restart has completed. */
export interface Recovery {
  readonly trees: number;
  /** Intents whose missing outcome was determined now. */
  readonly settled: number;
  readonly interrupted: number;
  /** Trees that do not fold. They stay unchanged, and `replay` reports where they differ. */
  readonly damaged: number;
}

/** Whether an engine accepts the inputs of callers. */
export interface EngineCondition {
  /** `failed`: a write has failed. `recovering`: the ledger is open again, and unfinished work is being settled. */
  readonly state: 'running' | 'failed' | 'recovering';
  /** The code of a failure that no restart removes; null without one. */
  readonly permanentCode: string | null;
  /** How many trees this process has met that only a later version can continue. */
  readonly laterTrees: number;
}

/**
 * Executes effects for an engine. A local read must return synchronously; a throw is an unknown outcome.
 * @see EffectGateway in src/host/effect-gateway.ts, which chooses the executor of each effect. Before it comes
 * SuspendableEffects in effect-runner.ts.
 */
export interface Effects {
  gather(request: SandboxRequest): SandboxFacts;
  /** Asks a decision point. A throw is no answer, which denies. */
  ask(query: DecisionQuery): Promise<DecisionReply>;
  /**
   * `inCommit`: the current transaction contains the effect's outcome, so the effect must change nothing outside it.
   */
  run(effect: Effect, inCommit: boolean): EffectResult | Promise<EffectResult>;
  settle(effect: Effect): EffectResult | Promise<EffectResult>;
  /** Whether this process can run the effect at all. */
  canRun(effect: Effect): boolean;
  /**
   * Whether other processes execute all effects. Then this one accepts only inputs that cause none, and leaves timers
   * and the leases of workers that are gone to the others.
   */
  readonly isElsewhere: boolean;
  /** Measures the usage of a case's sandbox again when it is requested next: another process may have changed it. */
  forgetUsage(case_id: string): void;
}

/**
 * Orders the inputs of each tree, commits the kernel's decisions, and then acts on them. It decides nothing else.
 *
 * @see LedgerEngine in ledger-engine.ts, the implementation, and AdmittedEngine in
 * src/runtime/storage/storage-guard.ts, the same behind the storage guard
 *
 * Guarantees, which one conformance suite tests for every engine:
 *  1. A tree has one writer; its inputs take effect one after another.
 *  2. Entries, artifacts and marks of one input commit together or not at all.
 *  3. A repeated input id of a caller is a no-op.
 *  4. A command runs at most once, after the commit of its decision (a local read may share that commit). Its result
 *     enters at most once.
 *  5. A timer never fires early.
 *  6. Nothing is acknowledged before it is durable.
 *  7. Sequence numbers have no gap, and terminal runs never change.
 *  8. The next `start` settles what a dead process left unfinished, without a human, and sets timers again.
 *  9. After a failed commit nothing is acknowledged or executed until `restart`, which settles unfinished work as a
 *     start does. It waits for effects in flight, and discards their results.
 */
export interface TreeEngine {
  /** @throws LedgerError LEDGER_UNAVAILABLE, RunError RUN_UNKNOWN or CLOSED; nothing was acknowledged then */
  submit(tree_id: string, submission: Submission): Promise<SubmissionResult>;
  /** The current tree, folded into memory if necessary, for reading only; null if it does not exist. */
  peek(tree_id: string): Promise<Tree | null>;
  /** Calls `work` with a tree while nothing is being decided. */
  inspect<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T>;
  /** The recorded step of the proposal at `seq`; null while it is pending, or if the input caused no step. */
  findStep(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null>;
  /**
   * The same, once the step is recorded: waits while it is in flight, in this process or another one.
   * @returns null if the run has ended without it, or the input caused no step
   * @throws RunError CLOSED, LedgerError LEDGER_UNAVAILABLE
   */
  awaitStep(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null>;
  /**
   * Erases the content of a case with exclusive access; only entries of its trees remain.
   * @param beforeErase is called when no check can refuse any more, before anything is erased
   * @throws RunError CASE_IN_USE while a tree of the case is live; LedgerError
   */
  erase(case_id: string, by: string, beforeErase?: () => Promise<void>): Promise<ErasureResult>;
  /** Calls `work` while nothing is decided or committed. @throws LedgerError LEDGER_UNAVAILABLE */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /**
   * The head of the log once it includes everything committed before this call.
   * @throws LedgerError LEDGER_UNAVAILABLE
   */
  head(): Promise<LogHead>;
  /**
   * Waits until the entries that the tree has now are in the log, and the head file has a head that covers them.
   * @returns that head; null if it takes longer than `timeoutMs`, or the ledger has failed
   */
  waitUntilIntegrated(tree_id: string, timeoutMs: number): Promise<LogHead | null>;
  /** The version of a case's label, for `Submission.caseLabel`. Null if no other worker writes to the ledger. */
  labelVersion(case_id: string): Promise<number | null>;
  /** Whether a ledger write has failed: nothing is recorded or executed until a restart. */
  readonly hasFailed: boolean;
  /** The same with more detail. */
  readonly condition: EngineCondition;
  /** Becomes the writer, runs the checks of the embedding service, and recovers. Call it once, first. */
  start(): Promise<Recovery>;
  /** Accepts no more inputs, and waits a limited time for work in flight. */
  stop(): Promise<void>;
  /**
   * Opens the ledger again after a failure, in a new epoch, and recovers as a start does. Concurrent callers share one
   * restart. Without a failure it returns the last recovery.
   * @throws LedgerError LEDGER_UNAVAILABLE if it fails and may be retried; any other error is permanent: another
   * writer, a changed ledger, a bug
   */
  restart(): Promise<Recovery>;
}

/** The parts that an engine is built from. */
export interface EngineParts {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly effects: Effects;
  readonly overlay?: OverlaySource;
  /** The secrets of the home that sessions need. */
  readonly secrets: Secrets;
  /** In the order in which they are notified. The engine reads this array at each event: it may change. */
  readonly listeners?: readonly EngineListener[];
  /** Runs a task after the current tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /**
   * Checks and setup of the embedding service, once this process is the writer and before it recovers. A throw aborts
   * the start.
   */
  readonly beforeRecovery?: () => Promise<void>;
  readonly liveTreesMax?: number;
  /** Minimum number of a tree's entries between two snapshots. */
  readonly snapshotEntries?: number;
  readonly commitObserver?: CommitObserver;
  readonly meter?: CommitMeter;
  readonly tickObserver?: TickObserver;
  /** How trees are interpreted. Default: the default interpreter. */
  readonly interpretation?: Interpretation;
}

export type EngineFactory = (parts: EngineParts) => TreeEngine;

/** Measures the disk space of commits. Neither method may throw. */
export interface CommitMeter {
  /** Called before the commit of this batch, to reserve space. */
  prepare(batch: Batch): void;
  /** Called when the batch is durable. */
  onCommitted(batch: Batch): void;
}

/** Follows commits, synchronously. Its errors must not affect the engine. */
export interface CommitObserver {
  /**
   * The batch is durable, and no caller has its response yet. `trees` returns trees in memory, with this batch applied.
   * The result gives the position of its entries in the log, or null until they are integrated.
   */
  onCommitted(batch: Batch, result: CommitResult, trees: (tree_id: string) => Tree | null): void;
  /** This tree leaves memory. All its commits have been applied to it. */
  onEvict(tree: Tree): void;
}
