import type { Artifact } from '../contract/artifact-ref.js';
import type { EffectResult, Effect, GatherRequest, SandboxFacts } from '../contract/run/effect.js';
import type { RecordedInput } from '../contract/run/entry.js';
import type { CancelReason } from '../contract/free-text.js';
import type { Interpretation } from '../kernel/interpreter/interpreter.js';
import type { Tree } from '../kernel/tree.js';
import type { RunTermination, Reply } from '../kernel/decision.js';
import type { Clock } from '../ports/clock.js';
import type {
  Batch,
  CommitResult,
  ErasureResult,
  ExternalHeadStore,
  LedgerStore,
  LogHead,
} from '../ports/ledger/ledger-store.js';
import type { Log } from '../ports/log.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Secrets } from '../ports/secrets.js';
import type { CompletedStep } from './trees/completed-step.js';

/** What a new input has in the place of free text (C90): its words are artifacts. */
interface CodedFields {
  readonly cancel: { readonly reason: CancelReason };
  readonly resolve: { readonly note: '' };
}

/** An input before the engine has put the time, the overlay, and the facts that only the store knows, to it. */
export type NewInput = RecordedInput extends infer Input
  ? Input extends RecordedInput
    ? Omit<Input, 'time' | 'seen' | 'overlay' | 'vouch' | keyof CodedFieldsOf<Input>> & CodedFieldsOf<Input>
    : never
  : never;
type CodedFieldsOf<Input extends RecordedInput> = Input['kind'] extends keyof CodedFields
  ? CodedFields[Input['kind']]
  : unknown;

export interface Submission {
  readonly input: NewInput;
  /** The content that the input's references name (`TreeInput.materials`). */
  readonly materials: readonly Artifact[];
  /**
   * True when the caller chose the input id, and may send it again: the store then remembers it. Ids that the engine
   * derives need no memory, since a machine takes an answer only while it waits for it.
   */
  readonly external: boolean;
  /** `TreeInput.checked`. */
  readonly checked?: boolean;
}

export interface SubmissionResult {
  /** The lifecycle has no edge for this input; nothing moved, and the audit says so. */
  readonly refused: boolean;
  /** This input id was committed before; nothing happened now. The seq of that first input. */
  readonly repeat_of: number | null;
}

/** What an engine tells its embedder, always after the commit that made it true. */
export interface EngineListener {
  onReply(tree_id: string, reply: Reply): void;
  onEnded(tree_id: string, ending: RunTermination): void;
  /** The ledger cannot be written: nothing is acknowledged or executed until a restart. Called once per failure. */
  onFailed(error: unknown): void;
  /** A restart has succeeded: inputs are taken again. */
  onRestarted(recovery: Recovery): void;
}

/** What a start or restart found unfinished, and brought to an end. */
export interface Recovery {
  readonly trees: number;
  /** Intents without an outcome, whose outcome was found out now. */
  readonly settled: number;
  readonly interrupted: number;
  /** Trees that do not fold: they stay as they are, and `replay` says where they differ. */
  readonly damaged: number;
}

/** The hands of an engine. `perform` of a local read must answer at once; a throw is an unknown outcome. */
export interface Effects {
  gather(request: GatherRequest): SandboxFacts;
  /** `inCommit`: the present transaction holds the effect's outcome, so nothing may happen outside of it. */
  run(effect: Effect, inCommit: boolean): EffectResult | Promise<EffectResult>;
  settle(effect: Effect): EffectResult | Promise<EffectResult>;
  /** Whether these hands could do it at all. Absent: they can do everything. */
  canRun?(effect: Effect): boolean;
}

/**
 * Puts the inputs of each tree in order, commits what the kernel answers, and then acts on it. It decides nothing else.
 *
 * Guarantees, held by one conformance suite over every engine:
 *  1. One writer a tree; its inputs take effect one after another.
 *  2. Entries, artifacts and marks of one input commit together or not at all.
 *  3. A repeated external input id is a no-op.
 *  4. A command is performed after the commit of its decision (a local read may share that commit), at most once; its
 *     result enters at most once.
 *  5. A timer never fires early.
 *  6. Nothing is acknowledged before it is durable.
 *  7. Sequence numbers have no gap, and terminal runs never move.
 *  8. What a dead process left unfinished is settled by the next `start`, without a human, and timers are armed again.
 *  9. After a commit has failed nothing is acknowledged or performed until `restart`, which settles what the failure
 *     left unfinished, as a start does. An effect that was under way is waited for, and its answer does not enter.
 */
export interface TreeEngine {
  /** @throws LedgerError LEDGER_UNAVAILABLE, RunError RUN_UNKNOWN or CLOSED; nothing was acknowledged then */
  submit(tree_id: string, submission: Submission): Promise<SubmissionResult>;
  /** The tree as it stands, folded into memory if need be; to look at, not to move. Null when there is none. */
  peek(tree_id: string): Promise<Tree | null>;
  /** Shows a tree while nothing is decided. */
  inspect<T>(tree_id: string, work: (tree: Tree | null) => T): Promise<T>;
  /** The recorded step of the proposal at `seq`; null while it is under way, or when no step came of that input. */
  findStep(tree_id: string, run_id: string, seq: number): Promise<CompletedStep | null>;
  /**
   * Destroys the content of a case, while nothing else happens; of its trees only entries are left.
   * @param beforeErase is called when it is certain, before anything is gone
   * @throws RunError CASE_IN_USE while one of them lives; LedgerError
   */
  erase(case_id: string, by: string, beforeErase?: () => Promise<void>): Promise<ErasureResult>;
  /**
   * The head of the log when it holds all that was committed before this call.
   * @throws LedgerError LEDGER_UNAVAILABLE
   */
  head(): Promise<LogHead>;
  /** Whether the ledger could not be written: nothing is recorded or done until a restart. */
  readonly hasFailed: boolean;
  /** Becomes the writer, makes the checks of the embedder, and recovers. Once, before anything else. */
  start(): Promise<Recovery>;
  /** Takes no more inputs, and waits for what is under way, for a while. */
  stop(): Promise<void>;
  /**
   * Opens the ledger anew after a failure, in a new epoch, and recovers as a start does. Callers at the same time share
   * one restart; where nothing has failed, the last recovery is the answer.
   * @throws LedgerError LEDGER_UNAVAILABLE when it fails and may be tried again; any other error when the reason does
   * not pass: another writer, a ledger that was changed, a bug
   */
  restart(): Promise<Recovery>;
}

/** What an engine is made of. */
export interface EngineParts {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly effects: Effects;
  readonly overlay?: OverlaySource;
  /** What sessions need of the home. */
  readonly secrets: Secrets;
  readonly listener: EngineListener;
  /** Runs a task after the present tick, so that all its inputs share a transaction. */
  readonly defer: (task: () => void) => void;
  /** What the embedder checks and makes when this is the writer, before it recovers: a throw ends the start. */
  readonly beforeRecovery?: () => Promise<void>;
  readonly liveTreesMax?: number;
  /** How many entries of a tree lie between two of its snapshots, at least. */
  readonly snapshotEntries?: number;
  readonly commitObserver?: CommitObserver;
  readonly meter?: CommitMeter;
  /** How the machines of its trees are run. Default: the default interpreter. */
  readonly interpretation?: Interpretation;
}

export type EngineFactory = (parts: EngineParts) => TreeEngine;

/** Watches how much of the disk the commits take. Neither call may throw. */
export interface CommitMeter {
  /** This batch will be committed next: room is made for it. */
  prepare(batch: Batch): void;
  /** It is durable. */
  onCommitted(batch: Batch): void;
}

/** Follows what is committed, within the turn and without asking for time. It concerns nobody what becomes of it. */
export interface CommitObserver {
  /**
   * The batch is durable, and no caller has its answer yet. `trees` are those in memory, which stand behind it. The
   * result says where its entries stand in the log, or null while they wait for that.
   */
  onCommitted(batch: Batch, result: CommitResult, trees: (tree_id: string) => Tree | null): void;
  /** This tree goes out of memory. It stands behind all that was committed. */
  onEvict(tree: Tree): void;
}
