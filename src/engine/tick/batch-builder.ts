// The batch of one tick: how it is built, and how it is sent to the store until its outcome is known.

import type { ProposalMark, SealedEntry } from '../../core/contract/run/entry.js';
import { InvariantError, LedgerError } from '../../core/errors.js';
import { referencesOf } from '../../core/contract/run/input.js';
import type { Decision } from '../../kernel/decision.js';
import type {
  Batch,
  AttachedArtifact,
  InputMark,
  StoredSnapshot,
  TreeAppend,
  TreeRecoveryHint,
  CommitResult,
  LedgerStore,
} from '../ports/ledger/ledger-store.js';
import type { CommitMeter } from '../tree-engine.js';

/** What one input adds to a batch. */
export interface BatchContribution {
  readonly tree_id: string;
  readonly decisions: readonly Decision[];
  readonly inputs: readonly InputMark[];
  /** Set for the input that opens the tree. */
  readonly opened: TreeAppend['opened'];
  readonly ended: boolean;
  /** What a later start must know of the tree; null if unchanged. */
  readonly recoveryHint: TreeRecoveryHint | null;
  /** The tree's state before the first input of the batch; null if no snapshot is due. */
  readonly snapshot: StoredSnapshot | null;
}

/** Collects the decisions of one tick into one transaction, with one append per tree. */
export class BatchBuilder {
  readonly #trees = new Map<string, TreeDraft>();
  readonly #proposals = new Map<string, ProposalMark>();

  get isEmpty(): boolean {
    return this.#trees.size === 0;
  }

  /**
   * Adds a whole contribution. @throws InvariantError, with nothing added, if an input's content does not match its
   * references
   */
  add(contribution: BatchContribution): void {
    const { tree_id, decisions } = contribution;
    const hashedArtifacts = decisions.map(hashArtifacts);
    const known = this.#trees.get(tree_id);
    const tree = known ?? new TreeDraft(tree_id);
    if (known === undefined) this.#trees.set(tree_id, tree);
    tree.add(contribution, hashedArtifacts);
    for (const { marks } of decisions) {
      for (const mark of marks) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), mark);
    }
  }

  /** A proposal that this batch has accepted; the store does not know it yet. */
  findProposal(root_run_id: string, proposal_id: string): ProposalMark | null {
    return this.#proposals.get(keyOf(root_run_id, proposal_id)) ?? null;
  }

  /** Whether the batch contains anything of this tree. */
  has(tree_id: string): boolean {
    return this.#trees.has(tree_id);
  }

  /** The seq of the tree's first new entry. @throws InvariantError if the batch has nothing of the tree */
  firstSeq(tree_id: string): number {
    const tree = this.#trees.get(tree_id);
    if (tree === undefined) throw new InvariantError(`the batch has nothing of ${tree_id}`);
    return tree.toAppend().from;
  }

  findInput(tree_id: string, input_id: string): InputMark | null {
    return this.#trees.get(tree_id)?.inputs.find((mark) => mark.input_id === input_id) ?? null;
  }

  build(epoch: number): Batch {
    return { epoch, trees: [...this.#trees.values()].map((tree) => tree.toAppend()) };
  }
}

/** The append of one tree. */
class TreeDraft {
  readonly #tree_id: string;
  readonly #entries: SealedEntry[] = [];
  readonly #artifacts: AttachedArtifact[] = [];
  readonly #proposals = new Map<string, ProposalMark>();
  readonly inputs: InputMark[] = [];
  #opened: TreeAppend['opened'] = null;
  #ended = false;
  #recovery: TreeRecoveryHint | null = null;
  #snapshot: StoredSnapshot | null = null;

  constructor(tree_id: string) {
    this.#tree_id = tree_id;
  }

  add(
    { decisions, inputs, opened, ended, recoveryHint: recovery, snapshot }: BatchContribution,
    hashedArtifacts: readonly (readonly HashedArtifact[])[],
  ): void {
    for (const [index, decision] of decisions.entries()) {
      for (const { artifact, sha256 } of hashedArtifacts[index] ?? []) {
        this.#artifacts.push({ entry: this.#entries.length, artifact, sha256 });
      }
      for (const entry of decision.entries) this.#entries.push(entry);
      for (const mark of decision.marks) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), mark);
    }
    this.inputs.push(...inputs);
    this.#opened ??= opened;
    this.#ended ||= ended;
    this.#recovery = recovery ?? this.#recovery;
    this.#snapshot ??= snapshot;
  }

  toAppend(): TreeAppend {
    return {
      tree_id: this.#tree_id,
      from: this.#entries[0]?.entry.seq ?? 0,
      entries: this.#entries,
      artifacts: this.#artifacts,
      proposals: [...this.#proposals.values()],
      inputs: this.inputs,
      opened: this.#opened,
      ended: this.#ended,
      recoveryHint: this.#recovery,
      snapshot: this.#snapshot,
    };
  }
}

type HashedArtifact = Omit<AttachedArtifact, 'entry'>;

/** Reuses known hashes: the input, which is the first entry, refers to its content in this order. */
function hashArtifacts({ artifacts, entries: [input] }: Decision): readonly HashedArtifact[] {
  if (artifacts.length === 0) return [];
  const references = input?.entry.type === 'input' ? referencesOf(input.entry.body) : [];
  return artifacts.map((artifact, index) => {
    const reference = references[index];
    if (reference === undefined) throw new InvariantError('an input brings content that it does not refer to');
    return { artifact, sha256: reference.hash_sha256 };
  });
}

const keyOf = (root_run_id: string, proposal_id: string): string => `${root_run_id} ${proposal_id}`;

/** Maximum number of times to send one batch. */
const SENDS_MAX = 5;

/** Whether the store could not tell if it has committed. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof LedgerError && error.code === 'LEDGER_COMMIT_UNKNOWN';

/**
 * Commits a batch. If the store cannot tell whether it has committed, sends the same batch again: decisions are never
 * made twice, and the store recognizes a batch that it already has.
 * @throws LedgerError as `commit` does; LEDGER_COMMIT_UNKNOWN after the last send
 */
export async function commitBatch(
  store: Pick<LedgerStore, 'commit'>,
  batch: Batch,
  meter?: CommitMeter,
): Promise<CommitResult> {
  meter?.prepare(batch);
  const result = await sendUntilKnown(() => store.commit(batch));
  meter?.onCommitted(batch);
  return result;
}

/** Sends again while the outcome is unknown. @throws LedgerError as `send` does; the last one too if still unknown */
export async function sendUntilKnown<T>(send: () => Promise<T>): Promise<T> {
  for (let sends = 1; ; sends += 1) {
    try {
      return await send();
    } catch (error) {
      if (sends === SENDS_MAX || !isOutcomeUnknown(error)) throw error;
    }
  }
}
