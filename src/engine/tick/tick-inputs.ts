// The inputs that a tick decides: what completes each one, the submissions of the engine itself, and the stored marks
// that tell whether an input is a repeat.

import { LedgerError, InvariantError } from '../../core/errors.js';
import type {
  InputMark,
  LedgerStore,
  MarkKey,
  ProposalKey,
  ProposalMark,
  MarkOf,
  TreeEntry,
} from '../ports/ledger/ledger-store.js';
import { type Tree, findFactsRequest, storedPrefix } from '../../kernel/tree.js';
import type { LiveTrees } from '../trees/live-trees.js';
import type { QueuedInput } from './input-outcome.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { hashText } from '../../core/contract/free-text.js';
import { loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type {
  ProposalInput,
  RecordedInput,
  SeenProposal,
  FactsInput,
  ResultInput,
} from '../../core/contract/run/entry.js';
import { prefixMember } from '../../core/contract/run/input.js';
import type { TreeInput, Command } from '../../kernel/decision.js';
import { featureOf } from '../../kernel/tree-feature.js';
import type { Secrets } from '../../core/contract/secrets.js';
import type { BatchBuilder } from './batch-builder.js';
import { findCompletedStep } from '../trees/completed-step.js';
import type { Submission } from '../tree-engine.js';
import { nameInTree } from '../../core/contract/entry-name.js';
import type { Effect, SandboxAmount, SandboxFacts } from '../../core/contract/run/effect.js';
import type { DecisionFact, DecisionQuery } from '../../core/contract/policy/decision-points.js';
import { toUnanswered, type EffectOutcome } from '../effect-runner.js';

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
  switch (input.kind) {
    case 'proposal':
      return completeProposal(incomplete, input);
    // No feature decides these two.
    case 'facts':
    case 'result':
      return withTimestamp(submission, time, overlay);
    default: {
      const loading = loadFeatureOf(input);
      if (loading !== null) await loading;
      if (!('feature' in input)) return withTimestamp(submission, time, overlay);
      const completed = featureOf(input)?.complete?.(input as never, tree, { overlay, secrets }) ?? {};
      return { recorded: { ...input, time, ...completed } as RecordedInput, materials, checked };
    }
  }
}

async function completeProposal(
  incomplete: IncompleteInput,
  { run_id, input_id, payload, tokens, prompt }: UntimedProposal,
): Promise<TreeInput> {
  const { tree, submission, time, overlay } = incomplete;
  const { materials, checked = false } = submission;
  const seen = await lookUpProposal(incomplete, run_id);
  const prefix = storedPrefix(materials[0], tree.policy);
  const recorded: ProposalInput = {
    kind: 'proposal',
    run_id,
    input_id,
    payload,
    ...prefixMember(prefix),
    time,
    seen: seen?.seen ?? null,
    tokens,
    overlay,
    ...(prompt === undefined ? {} : { prompt }),
  };
  const completeMaterials = prefix === null ? materials : [prefix, ...materials.slice(1)];
  return { recorded, materials: seen?.response ? [...completeMaterials, seen.response] : completeMaterials, checked };
}

type UntimedProposal = Extract<Submission['input'], { readonly kind: 'proposal' }>;

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

/** Adds the timestamp to a submission that needs nothing else; proposals need more (`completeInput`). */
export function withTimestamp(
  { input, materials, checked = false }: Submission,
  time: string,
  overlay: OverlayFact | null,
): TreeInput {
  switch (input.kind) {
    case 'proposal':
      throw new InvariantError(`an input of kind ${input.kind} needs more than a timestamp`);
    case 'facts':
      return { recorded: factsInput(input, time), materials, checked };
    case 'result':
      return { recorded: resultInput(input, time), materials, checked };
    case 'start_agent':
    case 'start_run':
    case 'vote':
    case 'wake':
      return { recorded: { ...input, time, overlay }, materials, checked };
    default:
      return { recorded: { ...input, time } as RecordedInput, materials, checked };
  }
}

// Spelled out because it is hot: a spread object gets its own hidden class.

function factsInput(input: UntimedInput<FactsInput>, time: string): FactsInput {
  const { run_id, input_id, facts, reserved, counters, decisions } = input;
  if (counters !== undefined || decisions !== undefined) return { ...input, time };
  return reserved === undefined
    ? { kind: 'facts', run_id, input_id, facts, time }
    : { kind: 'facts', run_id, input_id, facts, reserved, time };
}

function resultInput(input: UntimedInput<ResultInput>, time: string): ResultInput {
  const { run_id, input_id, status, cause, result, explanation, settled } = input;
  return explanation === undefined
    ? { kind: 'result', run_id, input_id, status, cause, result, settled, time }
    : { kind: 'result', run_id, input_id, status, cause, result, explanation, settled, time };
}

type UntimedInput<Input> = Omit<Input, 'time'>;

// The submissions of the engine itself.

/** The input of a timer that fires. */
export const wakeSubmission = (run_id: string, at: string): Submission => ({
  input: { kind: 'wake', run_id, input_id: `${run_id}/wake@${at}` },
  materials: [],
  rememberInputId: false,
});

/** The same, unless another worker has fired the timer or moved it. */
export const sharedWakeSubmission = (run_id: string, at: string): Submission => ({
  ...wakeSubmission(run_id, at),
  isObsolete: ({ timers }) => !timers.some((timer) => timer.run_id === run_id && timer.at === at),
});

/** The result of a gather command. */
export const factsSubmission = (command: GatherCommand, facts: SandboxFacts): Submission => ({
  input: { kind: 'facts', run_id: command.run_id, input_id: `${command.run_id}/facts`, facts },
  materials: [],
  rememberInputId: false,
  checked: true,
});

/** Local reads. Effects, and questions to decision points, wait until the decision is durable. */
export const isAnsweredInTick = (command: Command): boolean =>
  command.kind === 'gather' ? command.request.decisions === undefined : command.in_commit;

type GatherCommand = Extract<Command, { kind: 'gather' }>;

/** The id of the input with the answers of decision points: each step has its own. */
export const answersId = ({ request }: GatherCommand): string => `${request.mediated_run_id ?? ''}/facts`;

/** The answers of decision points. The facts of the sandbox are gathered when the input is decided. */
export const decisionsSubmission = (command: GatherCommand, decisions: readonly DecisionFact[]): Submission => ({
  input: {
    kind: 'facts',
    run_id: command.run_id,
    input_id: answersId(command),
    facts: { paths: [], usage: null },
    decisions: [...decisions],
  },
  materials: [],
  rememberInputId: false,
  checked: true,
  // Another worker may have taken this one for gone, and the run may already ask about its next step.
  isObsolete: (tree) => {
    const request = findFactsRequest(tree, command.run_id);
    const isSameStep = request?.mediated_run_id === command.request.mediated_run_id;
    return !isSameStep || !areAnswersTo(request?.decisions ?? [], decisions);
  },
});

const areAnswersTo = (queries: readonly DecisionQuery[], decisions: readonly DecisionFact[]): boolean =>
  queries.length === decisions.length && queries.every(({ body }, at) => decisions[at]?.request_hash === sha256(body));

/** The same facts, with the growth that earlier decisions may still add to the usage. */
export function withReserved(submission: Submission, reserved: SandboxAmount): Submission {
  const { input } = submission;
  if (input.kind !== 'facts' || (reserved.bytes === 0 && reserved.files === 0)) return submission;
  return { ...submission, input: { ...input, reserved } };
}

/** Decision points that are not asked, because the process that had to ask them is gone: the step is denied. */
export const unansweredSubmission = (command: GatherCommand): Submission =>
  decisionsSubmission(command, (command.request.decisions ?? []).map(toUnanswered));

/** The result of a perform command. The result and the words of the tool become artifacts that the input refers to. */
export function resultSubmission(effect: Effect, outcome: EffectOutcome, settled: boolean): Submission {
  const { run_id } = effect;
  const json = resultJson(outcome, effect);
  const artifact = json === null ? null : toArtifact('result', effect, json);
  const words = explanationOf(outcome, effect);
  const explanation = words === null ? null : toArtifact('explanation', effect, words);
  return {
    input: {
      kind: 'result',
      run_id,
      input_id: `${run_id}/result`,
      status: outcome.status,
      cause: outcome.status === 'failed' ? outcome.cause : null,
      result: artifact === null ? null : artifactRef(artifact),
      ...(explanation === null ? {} : { explanation: artifactRef(explanation) }),
      settled,
    },
    materials: [artifact, explanation].filter((material) => material !== null),
    rememberInputId: false,
    checked: true,
  };
}

/** S4-65: partial outputs of a failure are recorded only if the lane permits it. */
function resultJson(outcome: EffectOutcome, { partial_outputs }: Effect): string | null {
  if (outcome.status === 'done') return outcome.json;
  return outcome.status === 'failed' && partial_outputs ? outcome.partial : null;
}

/** C94: the words of a tool are recorded only if its agent sees them. */
const explanationOf = (outcome: EffectOutcome, { explained }: Effect): string | null =>
  outcome.status === 'failed' && explained === true ? (outcome.explanation ?? null) : null;

const toArtifact = (kind: 'result' | 'explanation', { case_id }: Effect, text: string): Artifact => ({
  kind,
  case_id,
  bytes: Buffer.from(text),
});

// The lookup of marks.

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
