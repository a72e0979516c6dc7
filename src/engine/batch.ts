import type { ProposalMark, SealedEntry } from '../contract/entry.js';
import { InvariantError } from '../errors.js';
import { referencesOf } from '../kernel/fold.js';
import type { Decision } from '../kernel/input.js';
import type { Batch, BroughtArtifact, InputMark, TreeAppend } from '../ports/ledger-store.js';

/** What one input of a tree adds to a batch. */
export interface Joining {
  readonly tree_id: string;
  readonly decisions: readonly Decision[];
  readonly inputs: readonly InputMark[];
  /** Of the input that opens the tree. */
  readonly opened: TreeAppend['opened'];
  readonly ended: boolean;
}

/** Gathers the decisions of one tick into one transaction: an append for each tree. */
export class BatchBuilder {
  readonly #trees = new Map<string, TreeDraft>();
  readonly #proposals = new Map<string, ProposalMark>();

  get empty(): boolean {
    return this.#trees.size === 0;
  }

  /** Takes in all of it, or, @throws InvariantError for an input whose content it does not refer to, nothing. */
  join(joining: Joining): void {
    const { tree_id, decisions } = joining;
    const brought = decisions.map(broughtBy);
    const known = this.#trees.get(tree_id);
    const tree = known ?? new TreeDraft(tree_id);
    if (known === undefined) this.#trees.set(tree_id, tree);
    tree.join(joining, brought);
    for (const { marks } of decisions) {
      for (const mark of marks) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), mark);
    }
  }

  /** What this batch itself has accepted: the store does not know it yet. */
  proposal(root_run_id: string, proposal_id: string): ProposalMark | null {
    return this.#proposals.get(keyOf(root_run_id, proposal_id)) ?? null;
  }

  input(tree_id: string, input_id: string): InputMark | null {
    return this.#trees.get(tree_id)?.inputs.find((mark) => mark.input_id === input_id) ?? null;
  }

  build(epoch: number): Batch {
    return { epoch, trees: [...this.#trees.values()].map((tree) => tree.append()) };
  }
}

/** What one tree gets in a batch. */
class TreeDraft {
  readonly #tree_id: string;
  readonly #entries: SealedEntry[] = [];
  readonly #artifacts: BroughtArtifact[] = [];
  readonly #proposals = new Map<string, ProposalMark>();
  readonly inputs: InputMark[] = [];
  #opened: TreeAppend['opened'] = null;
  #ended = false;

  constructor(tree_id: string) {
    this.#tree_id = tree_id;
  }

  join({ decisions, inputs, opened, ended }: Joining, brought: readonly (readonly Brought[])[]): void {
    for (const [place, decision] of decisions.entries()) {
      for (const { artifact, sha256 } of brought[place] ?? []) {
        this.#artifacts.push({ entry: this.#entries.length, artifact, sha256 });
      }
      for (const entry of decision.entries) this.#entries.push(entry);
      for (const mark of decision.marks) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), mark);
    }
    this.inputs.push(...inputs);
    this.#opened ??= opened;
    this.#ended ||= ended;
  }

  append(): TreeAppend {
    const from = this.#entries[0]?.entry.seq ?? 0;
    return {
      tree_id: this.#tree_id,
      from,
      entries: this.#entries,
      artifacts: this.#artifacts,
      proposals: [...this.#proposals.values()],
      inputs: this.inputs,
      opened: this.#opened,
      ended: this.#ended,
      rest: from === 0 ? { unfinished: true, wake_at: null } : null,
    };
  }
}

type Brought = Omit<BroughtArtifact, 'entry'>;

/** The hashes are known: the input, which is the first entry, refers to its content in this order. */
function broughtBy({ artifacts, entries: [input] }: Decision): readonly Brought[] {
  if (artifacts.length === 0) return [];
  const references = input?.entry.type === 'input' ? referencesOf(input.entry.body) : [];
  return artifacts.map((artifact, place) => {
    const reference = references[place];
    if (reference === undefined) throw new InvariantError('an input brings content that it does not refer to');
    return { artifact, sha256: reference.hash_sha256 };
  });
}

const keyOf = (root_run_id: string, proposal_id: string): string => `${root_run_id} ${proposal_id}`;
