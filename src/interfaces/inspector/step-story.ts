// One step of an agent run: its response, and the entries that record it.

import { parseOwnJson } from '../../core/contract/json.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import type { RunCreated } from '../../core/contract/run/entry.js';
import type { StepStory } from '../../core/contract/inspection/inspection.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import { LedgerError, PolicyError } from '../../core/errors.js';
import { loadCompletedStep } from '../../engine/trees/completed-step.js';
import { isUnsupported, loadPinnedFeatures, requiredPolicyOf } from '../../kernel/pinned-policy.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { EntryPlace, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { LedgerView } from './ledger-view.js';

/** The indexes of the entries of a step. */
interface StepEntries {
  readonly proposal: StoredEntry;
  readonly trace: { readonly log_index: number; readonly body: StepTrace } | null;
  /** The decisions on runs of this agent since the proposal, by run id. */
  readonly decisions: ReadonlyMap<string, number>;
  readonly exposure: RunCreated['exposure'];
}

export interface StoryOptions {
  readonly ledger: LedgerView;
  readonly pause: () => Promise<void> | undefined;
  /** The entries of the creation of the run and of the proposal, from its course; null if unknown. */
  readonly places: { readonly created: number; readonly proposal: number } | null;
}

/** @returns null for a step that does not exist */
export async function readStepStory(run_id: string, step: number, options: StoryOptions): Promise<StepStory | null> {
  const found = await findStepEntries(run_id, step, options);
  if (found === null) return null;
  const { proposal, trace, decisions } = found;
  const mediatedRunId = trace?.body.mediated_run_id ?? null;
  const decision = trace === null ? ([...decisions.values()].at(-1) ?? null) : null;
  return {
    run_id,
    step,
    proposal: proposal.log_index,
    trace: trace?.log_index ?? null,
    response: trace === null ? null : await rebuildStepResponse(run_id, found, options.ledger),
    decision:
      trace === null ? decision : mediatedRunId === null ? trace.log_index : (decisions.get(mediatedRunId) ?? null),
    ...(trace?.body.explanation === undefined ? {} : { explanation: trace.body.explanation }),
  };
}

/** Finds the entries of a step. For a tree that cannot be folded, it scans the entries from the first one. */
async function findStepEntries(
  run_id: string,
  step: number,
  { ledger, pause, places }: StoryOptions,
): Promise<StepEntries | null> {
  const created = places === null ? null : await entryAt(ledger, places.created);
  const from = places === null ? null : await entryAt(ledger, places.proposal);
  let exposure = created === null ? null : (bodyOf(created) as RunCreated).exposure;
  let proposal = from;
  const decisions = new Map<string, number>();
  for await (const entry of ledger.tree(rootRunIdOf(run_id), from?.seq ?? 0)) {
    await pause();
    if (!entry.text.includes(run_id)) continue;
    if (entry.type === 'run_created') {
      const body = bodyOf(entry) as RunCreated;
      if (body.run_id === run_id) exposure = body.exposure;
    } else if (entry.type === 'input' && isProposalOf(entry, run_id)) {
      proposal = places === null ? entry : proposal;
      if (places === null) decisions.clear();
    } else if (entry.type === 'audit_event') {
      const body = bodyOf(entry) as AuditEvent;
      const isOne = body.action_type === 'authz_decision' && body.parent_run_id === run_id;
      if (isOne && !decisions.has(body.run_id)) decisions.set(body.run_id, entry.log_index);
    } else if (entry.type === 'step_trace' && proposal !== null) {
      const body = bodyOf(entry) as StepTrace;
      const trace = { log_index: entry.log_index, body };
      if (body.run_id === run_id && body.step_index === step) return { proposal, trace, decisions, exposure };
    }
  }
  return places === null || proposal === null ? null : { proposal, trace: null, decisions, exposure };
}

const bodyOf = ({ text }: StoredEntry): unknown => (parseOwnJson(text) as { readonly body: unknown }).body;

function isProposalOf(entry: StoredEntry, run_id: string): boolean {
  if (!entry.text.includes('"kind":"proposal"')) return false;
  const body = bodyOf(entry) as { readonly kind: string; readonly run_id: string };
  return body.kind === 'proposal' && body.run_id === run_id;
}

export async function entryAt(ledger: Pick<LedgerView, 'log'>, log_index: number): Promise<StoredEntry | null> {
  for await (const entry of ledger.log(log_index)) return entry.log_index === log_index ? entry : null;
  return null;
}

/** Rebuilds the response from content that may be shown; null if that does not suffice. */
async function rebuildStepResponse(
  run_id: string,
  { proposal, exposure }: StepEntries,
  ledger: LedgerView,
): Promise<string | null> {
  if (exposure === null) return null;
  const content = {
    tree: (tree_id: string, seq?: number) => ledger.tree(tree_id, seq),
    artifactsOf: async ({ tree_id, seq }: EntryPlace) => {
      for await (const entry of ledger.tree(tree_id, seq)) return ledger.shownOf(entry);
      return [];
    },
  };
  const { tree_id, seq } = proposal;
  try {
    for await (const opening of ledger.tree(tree_id)) {
      const pinned = requireContent(await ledger.artifactsOf(opening));
      await loadPinnedFeatures(pinned);
      const policy = requiredPolicyOf(pinned);
      return (await loadCompletedStep({ tree_id, run_id, seq, policy, exposure }, content))?.response ?? null;
    }
  } catch (error) {
    const isErased = error instanceof LedgerError && error.code === 'LEDGER_ERASED';
    if (!isErased && !isUnsupported(error) && !(error instanceof PolicyError)) throw error;
  }
  return null;
}
