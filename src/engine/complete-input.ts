import { artifactRef, type Artifact } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import type { OverlayFact } from '../contract/overlay.js';
import type { ProposalInput, ProposalMark, SeenProposal } from '../contract/entry.js';
import { prefixMember } from '../contract/payload-prefix.js';
import type { TreeInput } from '../kernel/input.js';
import { storedPrefix } from '../kernel/payload-limit.js';
import type { Tree } from '../kernel/tree.js';
import type { LedgerStore } from '../ports/ledger-store.js';
import type { Secrets } from '../ports/secrets.js';
import type { BatchBuilder } from './batch.js';
import type { FoundProposal } from './mark-lookup.js';
import { recallStep } from './recall-step.js';
import { timed } from './submissions.js';
import type { Submission } from './tree-engine.js';

interface Incomplete {
  readonly tree: Tree;
  readonly submission: Submission;
  readonly time: string;
  readonly overlay: OverlayFact | null;
  readonly batch: BatchBuilder;
  /** Finds out what the store remembers of a proposal. */
  readonly proposal: () => Promise<FoundProposal | null>;
  readonly store: LedgerStore;
  readonly secrets: Secrets;
}

/**
 * Puts the time to an input, to a proposal what the store remembers of its id (C19), and to a command of a session what
 * only the keys of this home can say (D10).
 */
export async function completeInput(incomplete: Incomplete): Promise<TreeInput> {
  const { tree, submission, time, overlay, secrets } = incomplete;
  const { input, materials, checked = false } = submission;
  if (input.kind === 'session') {
    const vouch = tree.vouch(input.command.name, secrets);
    return { recorded: { ...input, time, overlay, vouch }, materials, checked };
  }
  if (input.kind !== 'proposal') return timed(submission, time, overlay);
  const seen = await lookUp(incomplete, input.run_id);
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
  const brought = prefix === null ? materials : [prefix, ...materials.slice(1)];
  return { recorded, materials: seen?.response ? [...brought, seen.response] : brought, checked };
}

interface Seen {
  readonly seen: SeenProposal;
  readonly response: Artifact | null;
}

async function lookUp({ tree, submission, batch, proposal, store }: Incomplete, run_id: string): Promise<Seen | null> {
  const { policy } = tree;
  const run = tree.run(run_id)?.context;
  const [payload] = submission.materials;
  if (policy === null || run === undefined || payload === undefined) return null;
  const found = await proposal();
  if (found === null) return null;
  const mark = batch.proposal(found.key.root_run_id, found.key.proposal_id) ?? found.mark;
  if (mark === null) return null;
  const again =
    policy.knobs.duplicate_proposal_ids === 'replay' &&
    mark.run_id === run_id &&
    mark.payload_sha256 === sha256(payload.bytes);
  const step = again ? await recallStep(tree, run_id, mark.seq, store) : null;
  if (step === null) return { seen: known(mark), response: null };
  const response: Artifact = { kind: 'response', case_id: run.case_id, bytes: Buffer.from(step.response) };
  const { outcome, error_code } = step.trace;
  return { seen: { ...known(mark), outcome, error_code, response: artifactRef(response) }, response };
}

const known = ({ step_index, run_id, payload_sha256 }: ProposalMark): SeenProposal => ({
  step_index,
  run_id,
  payload_sha256,
  outcome: null,
  error_code: null,
  response: null,
});
