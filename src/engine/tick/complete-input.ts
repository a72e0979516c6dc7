import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { hashText } from '../../core/contract/free-text.js';
import { sha256 } from '../../core/contract/hash.js';
import { loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type { ProposalInput, ProposalMark, RecordedInput, SeenProposal } from '../../core/contract/run/entry.js';
import { prefixMember } from '../../core/contract/run/payload-prefix.js';
import type { TreeInput } from '../../kernel/decision.js';
import { storedPrefix } from '../../kernel/payload-limit.js';
import type { Tree } from '../../kernel/tree.js';
import { featureOf } from '../../kernel/tree-feature.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';
import type { Secrets } from '../../core/contract/secrets.js';
import type { BatchBuilder } from './batch-builder.js';
import type { QueuedInput } from './input-outcome.js';
import type { MarkLookup } from './mark-lookup.js';
import { findCompletedStep } from '../trees/completed-step.js';
import { withTimestamp } from './submissions.js';
import type { Submission } from '../tree-engine.js';

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
