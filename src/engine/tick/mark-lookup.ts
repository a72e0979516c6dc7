// What a tick looks up before it decides: the marks of its inputs, and with them the facts that complete each input.

import { LedgerError } from '../../core/errors.js';
import type {
  InputMark,
  LedgerStore,
  MarkKey,
  ProposalKey,
  ProposalMark,
  MarkOf,
  TreeEntry,
} from '../ports/ledger/ledger-store.js';
import { type Tree, storedPrefix } from '../../kernel/tree.js';
import type { LiveTrees } from '../trees/live-trees.js';
import type { QueuedInput } from './input-outcome.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { hashText } from '../../core/contract/free-text.js';
import { loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type { ProposalInput, RecordedInput, SeenProposal } from '../../core/contract/run/entry.js';
import { prefixMember } from '../../core/contract/run/input.js';
import type { TreeInput } from '../../kernel/decision.js';
import { featureOf } from '../../kernel/tree-feature.js';
import type { Secrets } from '../../core/contract/secrets.js';
import type { BatchBuilder } from './batch-builder.js';
import { findCompletedStep } from '../trees/completed-step.js';
import { withTimestamp } from './submissions.js';
import type { Submission } from '../tree-engine.js';
import { nameInTree } from '../../core/contract/entry-name.js';

/** A mark to query, and the input that needs it. */
interface MarkQuery {
  readonly item: QueuedInput;
  readonly key: MarkKey;
  readonly onFound: (mark: InputMark | ProposalMark | null) => void;
}

/**
 * The stored marks for the inputs of one tick. It looks them up together: one query for trees in memory, and another
 * for trees that must be folded first to find the ids of their proposals.
 */
export class MarkLookup {
  readonly #store: Pick<LedgerStore, 'marks' | 'tree'>;
  readonly #trees: LiveTrees;
  readonly #inputs = new Map<QueuedInput, InputMark>();
  /** Null for an invalid proposal, which has no id. */
  readonly #proposals = new Map<QueuedInput, { readonly key: ProposalKey; mark: ProposalMark | null } | null>();

  /** Errors that prevented the lookup of an input's marks. */
  readonly #failed = new Map<QueuedInput, unknown>();

  constructor(store: Pick<LedgerStore, 'marks' | 'tree'>, trees: LiveTrees) {
    this.#store = store;
    this.#trees = trees;
  }

  /** Looks up everything that is known before the first input is decided. */
  async lookUpAll(items: readonly QueuedInput[]): Promise<void> {
    const queries: MarkQuery[] = [];
    const unloaded: QueuedInput[] = [];
    for (const item of items) {
      const { tree_id, submission } = item;
      const { input, rememberInputId } = submission;
      if (rememberInputId) {
        const onFound = (mark: InputMark | ProposalMark | null): void => {
          if (mark !== null && 'input_id' in mark) this.#inputs.set(item, mark);
        };
        queries.push({ item, key: { tree_id, input_id: input.input_id }, onFound });
      }
      if (input.kind !== 'proposal') continue;
      const tree = this.#trees.peek(tree_id);
      if (tree === null) unloaded.push(item);
      else this.#addQuery(tree, item, queries);
    }
    await this.#findAll(queries);
    await this.#lookUpUnloaded(unloaded.filter((item) => !this.#inputs.has(item)));
  }

  /** The mark of an earlier input with the same id. @throws the error that prevented its lookup */
  findInput(item: QueuedInput): InputMark | null {
    if (this.#failed.has(item)) throw this.#failed.get(item);
    return this.#inputs.get(item) ?? null;
  }

  /**
   * The deduplication key of a proposal, and its stored mark.
   * @param isNew whether this tick opened the tree, so that the store does not know it
   */
  async findProposal(tree: Tree, item: QueuedInput, isNew: boolean): Promise<FoundProposal | null> {
    const known = this.#proposals.get(item);
    if (known !== undefined) return known;
    const queries: MarkQuery[] = [];
    this.#addQuery(tree, item, queries);
    if (!isNew) await this.#find(queries);
    return this.#proposals.get(item) ?? null;
  }

  /** An input of a tree that cannot be folded is rejected in its turn. */
  async #lookUpUnloaded(items: readonly QueuedInput[]): Promise<void> {
    if (items.length === 0) return;
    const queries: MarkQuery[] = [];
    for (const item of items) {
      const tree = await this.#trees.get(item.tree_id).catch(() => null);
      if (tree !== null) this.#addQuery(tree, item, queries);
    }
    await this.#findAll(queries);
  }

  /** Adds the query for a proposal's mark, if its run is known already. */
  #addQuery(tree: Tree, item: QueuedInput, queries: MarkQuery[]): void {
    const { input, materials } = item.submission;
    const [payload] = materials;
    const run = input.kind === 'proposal' ? tree.run(input.run_id)?.context : undefined;
    if (run === undefined || payload === undefined || tree.policy === null) return;
    const proposal_id = tree.proposalKey(payload.bytes);
    if (proposal_id === null) {
      this.#proposals.set(item, null);
      return;
    }
    const proposal: { key: ProposalKey; mark: ProposalMark | null } = {
      key: { root_run_id: run.root_run_id, proposal_id },
      mark: null,
    };
    this.#proposals.set(item, proposal);
    const onFound = (mark: InputMark | ProposalMark | null): void => {
      if (mark !== null && 'proposal_id' in mark) proposal.mark = mark;
    };
    queries.push({ item, key: proposal.key, onFound });
  }

  /** A failed read is an error only for the inputs that need it. */
  async #findAll(queries: readonly MarkQuery[]): Promise<void> {
    try {
      await this.#find(queries);
    } catch (error) {
      // Look each one up alone, so that only the input with the tampered mark fails.
      const shouldSplit = error instanceof LedgerError && error.code === 'LEDGER_TAMPERED' && queries.length > 1;
      if (shouldSplit) for (const query of queries) await this.#findAll([query]);
      else for (const { item } of queries) this.#failed.set(item, error);
    }
  }

  async #find(queries: readonly MarkQuery[]): Promise<void> {
    if (queries.length === 0) return;
    const marks = await checkedMarks(
      this.#store,
      queries.map(({ key }) => key),
    );
    for (const [index, { onFound }] of queries.entries()) onFound(marks[index] ?? null);
  }
}

interface FoundProposal {
  readonly key: ProposalKey;
  /** The stored mark, or null. */
  readonly mark: ProposalMark | null;
}

interface IncompleteInput {
  readonly tree: Tree;
  readonly submission: Submission;
  readonly time: string;
  readonly overlay: OverlayFact | null;
  readonly batch: BatchBuilder;
  readonly item: QueuedInput;
  readonly marks: MarkLookup;
  /** Whether this tick has opened the tree. */
  readonly isNewTree: boolean;
  readonly store: LedgerStore;
  readonly secrets: Secrets;
}

/**
 * Completes an input: adds the timestamp, for a proposal the stored mark of its id (C19), and for an input of a feature
 * what only this process knows, such as values that need this home's keys (D10).
 */
export async function completeInput(incomplete: IncompleteInput): Promise<TreeInput> {
  const { tree, submission, time, overlay, secrets } = incomplete;
  const { input, materials, checked = false } = submission;
  const loading = loadFeatureOf(input);
  if (loading !== null) await loading;
  if ('feature' in input) {
    const completed = featureOf(input)?.complete?.(input as never, tree, { overlay, secrets }) ?? {};
    return { recorded: { ...input, time, ...completed } as RecordedInput, materials, checked };
  }
  if (input.kind !== 'proposal') return withTimestamp(submission, time, overlay);
  const seen = await lookUpProposal(incomplete, input.run_id);
  const prefix = storedPrefix(materials[0], tree.policy);
  const recorded: ProposalInput = {
    kind: 'proposal',
    run_id: input.run_id,
    input_id: input.input_id,
    payload: input.payload,
    ...prefixMember(prefix),
    time,
    seen: seen?.seen ?? null,
    tokens: input.tokens,
    overlay,
    ...(input.prompt === undefined ? {} : { prompt: input.prompt }),
  };
  const completeMaterials = prefix === null ? materials : [prefix, ...materials.slice(1)];
  return { recorded, materials: seen?.response ? [...completeMaterials, seen.response] : completeMaterials, checked };
}

interface EarlierProposal {
  readonly seen: SeenProposal;
  readonly response: Artifact | null;
}

async function lookUpProposal(
  { tree, submission, item, marks, isNewTree, batch, store }: IncompleteInput,
  run_id: string,
): Promise<EarlierProposal | null> {
  const { policy } = tree;
  const run = tree.run(run_id)?.context;
  const [payload] = submission.materials;
  if (policy === null || run === undefined || payload === undefined) return null;
  const found = await marks.findProposal(tree, item, isNewTree);
  if (found === null) return null;
  const mark = batch.findProposal(found.key.root_run_id, found.key.proposal_id) ?? found.mark;
  if (mark === null) return null;
  const isReplay =
    policy.knobs.duplicate_proposal_ids === 'replay' &&
    mark.run_id === run_id &&
    mark.payload_sha256 === sha256(payload.bytes);
  const step = isReplay ? await findCompletedStep(tree, run_id, mark.seq, store) : null;
  if (step === null) return { seen: toSeenProposal(mark), response: null };
  const response: Artifact = { kind: 'response', case_id: run.case_id, bytes: Buffer.from(step.response) };
  const { outcome, error_code } = step.trace;
  return { seen: { ...toSeenProposal(mark), outcome, error_code, response: artifactRef(response) }, response };
}

const toSeenProposal = ({ step_index, run_id, payload_sha256 }: ProposalMark): SeenProposal => ({
  step_index,
  run_id,
  payload_sha256,
  outcome: null,
  error_code: null,
  response: null,
});

const cachedOverlays = new WeakMap<OverlayFact, OverlayFact>();

/**
 * Converts the emergency overlay to the form that inputs record: with its rules, but without the operator's free text,
 * which stays in its file (C90).
 * @returns the same object for the same fact, so that its text is serialized once
 */
export function toRecordedOverlay(fact: OverlayFact | null): OverlayFact | null {
  if (fact === null || fact.epoch === null) return fact;
  const recorded = cachedOverlays.get(fact) ?? {
    epoch: fact.epoch,
    rules: fact.rules.map((rule) => ({ ...rule, reason: hashText(rule.reason) })),
  };
  cachedOverlays.set(fact, recorded);
  return recorded;
}

// Marks decide which request is a repeat, and which step answers it. They are rows next to the entries, so each mark
// that is found is compared with the entry that it names.

/** What a mark says of its entry, and of the trace of its step. */
interface MarkedEntry {
  readonly kind?: unknown;
  readonly input_id?: unknown;
  readonly run_id?: unknown;
  readonly payload?: { readonly hash_sha256?: unknown };
  readonly step_index?: unknown;
}

/** As `LedgerStore.marks`. @throws LedgerError LEDGER_TAMPERED for a mark that differs from its entry */
export async function checkedMarks<Key extends MarkKey>(
  store: Pick<LedgerStore, 'marks' | 'tree'>,
  keys: readonly Key[],
): Promise<readonly (MarkOf<Key> | null)[]> {
  const marks = await store.marks(keys);
  for (const mark of marks) if (mark !== null) await checkMark(store, mark);
  return marks;
}

async function checkMark(store: Pick<LedgerStore, 'tree'>, mark: InputMark | ProposalMark): Promise<void> {
  const tree_id = 'input_id' in mark ? mark.tree_id : (mark.root_run_id.split('.', 1)[0] ?? '');
  if (await isOfItsEntry(store, tree_id, mark)) return;
  const message = `a mark names entry ${nameInTree(tree_id, mark.seq)}, which is of another request: run \`turnpike ledger verify\``;
  throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
}

/** The marks of archived trees stay, and their entries are in files. */
async function isOfItsEntry(
  store: Pick<LedgerStore, 'tree'>,
  tree_id: string,
  mark: InputMark | ProposalMark,
): Promise<boolean> {
  try {
    let isFirst = true;
    for await (const entry of store.tree(tree_id, mark.seq)) {
      if (!isFirst && entry.type !== 'step_trace') continue;
      const body = bodyOf(entry);
      if (isFirst && entry.type !== 'input') return false;
      if ('input_id' in mark) return body.input_id === mark.input_id;
      if (isFirst && !isProposalOf(body, mark)) return false;
      // A run has one step at a time, so its next trace is that of the proposal.
      if (!isFirst && body.run_id === mark.run_id) return body.step_index === mark.step_index;
      isFirst = false;
    }
    // Without a trace, the step of a proposal is in flight.
    return !isFirst;
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_ARCHIVED') return true;
    throw error;
  }
}

const isProposalOf = ({ kind, run_id, payload }: MarkedEntry, mark: ProposalMark): boolean =>
  kind === 'proposal' && run_id === mark.run_id && payload?.hash_sha256 === mark.payload_sha256;

const bodyOf = ({ text }: TreeEntry): MarkedEntry => (JSON.parse(text) as { readonly body: MarkedEntry }).body;
