import type { ProposalMark, SealedEntry } from '../contract/entry.js';
import { InvariantError } from '../errors.js';
import { referencesOf } from '../kernel/fold.js';
import type { Decision } from '../kernel/input.js';
import { extend } from '../ledger/merkle.js';
import type { Batch, BroughtArtifact, InputMark, LogHead, TreeMark } from '../ports/ledger-store.js';

/** What joins a batch together. */
export interface Joining {
  readonly decisions: readonly Decision[];
  readonly trees: readonly TreeMark[];
  readonly inputs: readonly InputMark[];
}

/** Gathers the decisions of one tick into one transaction. */
export class BatchBuilder {
  readonly #entries: SealedEntry[] = [];
  readonly #artifacts: BroughtArtifact[] = [];
  readonly #proposals = new Map<string, ProposalMark>();
  readonly #inputs: InputMark[] = [];
  readonly #trees: TreeMark[] = [];

  get empty(): boolean {
    return this.#entries.length === 0;
  }

  /** Takes in all of it, or, @throws InvariantError for an input whose content it does not refer to, nothing. */
  join({ decisions, trees, inputs }: Joining): void {
    const brought = decisions.map(broughtBy);
    for (const [place, decision] of decisions.entries()) {
      for (const { artifact, sha256 } of brought[place] ?? []) {
        this.#artifacts.push({ entry: this.#entries.length, artifact, sha256 });
      }
      for (const entry of decision.entries) this.#entries.push(entry);
      for (const mark of decision.marks) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), mark);
    }
    this.#trees.push(...trees);
    this.#inputs.push(...inputs);
  }

  /** What this batch itself has accepted: the store does not know it yet. */
  proposal(root_run_id: string, proposal_id: string): ProposalMark | null {
    return this.#proposals.get(keyOf(root_run_id, proposal_id)) ?? null;
  }

  input(tree_id: string, input_id: string): InputMark | null {
    return this.#inputs.find((mark) => mark.tree_id === tree_id && mark.input_id === input_id) ?? null;
  }

  build(epoch: number, head: LogHead): Batch {
    return {
      epoch,
      from: head.size,
      entries: this.#entries,
      artifacts: this.#artifacts,
      proposals: [...this.#proposals.values()],
      inputs: this.#inputs,
      trees: this.#trees,
      head: extend(
        head,
        this.#entries.map((entry) => entry.leaf_hash),
      ),
    };
  }
}

/** The hashes are known: the input, which is the first entry, refers to its content in this order. */
function broughtBy({ artifacts, entries: [input] }: Decision): readonly Omit<BroughtArtifact, 'entry'>[] {
  if (artifacts.length === 0) return [];
  const references = input?.entry.type === 'input' ? referencesOf(input.entry.body) : [];
  return artifacts.map((artifact, place) => {
    const reference = references[place];
    if (reference === undefined) throw new InvariantError('an input brings content that it does not refer to');
    return { artifact, sha256: reference.hash_sha256 };
  });
}

const keyOf = (root_run_id: string, proposal_id: string): string => `${root_run_id} ${proposal_id}`;
