import type { Artifact } from '../contract/artifact-ref.js';
import type { EffectResult, Effect, GatherRequest, SandboxFacts } from '../contract/effect.js';
import type { RecordedInput } from '../contract/entry.js';
import type { Tree } from '../kernel/tree.js';
import type { Ending, Reply } from '../kernel/input.js';
import type { Batch, CommitResult } from '../ports/ledger-store.js';

/** An input before the engine has put the time, the overlay, and the facts that only the store knows, to it. */
export type NewInput = RecordedInput extends infer Input
  ? Input extends RecordedInput
    ? Omit<Input, 'time' | 'seen' | 'overlay' | 'vouch'>
    : never
  : never;

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

export interface Committed {
  /** The lifecycle has no edge for this input; nothing moved, and the audit says so. */
  readonly refused: boolean;
  /** This input id was committed before; nothing happened now. The seq of that first input. */
  readonly repeat_of: number | null;
}

/** What an engine tells its embedder, always after the commit that made it true. */
export interface EngineListener {
  reply(tree_id: string, reply: Reply): void;
  ended(tree_id: string, ending: Ending): void;
  /** The ledger cannot be written: nothing will be acknowledged, or done, any more. */
  failed(error: unknown): void;
}

/** The hands of an engine. `perform` of a local read must answer at once; a throw is an unknown outcome. */
export interface Effects {
  gather(request: GatherRequest): SandboxFacts;
  /** `inCommit`: the present transaction holds the effect's outcome, so nothing may happen outside of it. */
  perform(effect: Effect, inCommit: boolean): EffectResult | Promise<EffectResult>;
  settle(effect: Effect): EffectResult | Promise<EffectResult>;
  /** Whether these hands could do it at all. Absent: they can do everything. */
  knows?(effect: Effect): boolean;
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
 *  8. What a dead process left unfinished is settled by the next `start`, without a human.
 */
export interface TreeEngine {
  /** @throws LedgerError LEDGER_UNAVAILABLE, RunError RUN_UNKNOWN or CLOSED; nothing was acknowledged then */
  submit(tree_id: string, submission: Submission): Promise<Committed>;
  /** The tree as it stands, folded into memory if need be; to look at, not to move. Null when there is none. */
  peek(tree_id: string): Promise<Tree | null>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Follows what is committed, within the turn and without asking for time. It concerns nobody what becomes of it. */
export interface CommitFollower {
  /**
   * This is durable, and nobody was told yet. `trees` are those in memory, which stand behind it. The result says where
   * its entries stand in the log, or null while they wait for that.
   */
  committed(batch: Batch, result: CommitResult, trees: (tree_id: string) => Tree | null): void;
  /** This tree goes out of memory. It stands behind all that was committed. */
  leaving(tree: Tree): void;
}
