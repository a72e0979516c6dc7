// The combined label of all data that the runs of a case have read (information flow). Everything made from the case
// has this label.

import { isJsonObject, type Json, parseOwnJson } from '../../core/contract/json.js';
import { createCatalogue, parseRegistrations, type Catalogue } from '../../core/contract/policy/catalogue.js';
import { isWithheld, type ArtifactRef } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { Entry, RunCreated } from '../../core/contract/run/entry.js';
import type { Label } from '../../core/contract/policy/labels.js';
import { LedgerError } from '../../core/errors.js';
import { contextOf } from '../../kernel/decision-builder.js';
import { agentOf, READ_ACTIONS } from '../../kernel/label-after.js';
import { withheldContentError } from '../../core/ledger/require-content.js';
import { EMPTY_LABEL, joinLabels } from '../../core/policy/authorize-run.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { resultLabel, privilegedRequest } from '../../core/step/mediated-request.js';
import type { CaseHistory } from './case-history.js';

/** The last action of an agent, and its proposal once it has succeeded: no later run was created with that label. */
interface LastAction {
  readonly created: RunCreated;
  proposal: ArtifactRef | null;
}

/**
 * Joins the labels of everything that runs of this case have read, in any of its trees: the label that each run was
 * created with, and what the last run of each agent has read since.
 * @throws LedgerError LEDGER_ERASED if the content of a proposal was erased
 * @throws LedgerError LEDGER_TAMPERED if that content, or a pinned file of its tree, is missing
 */
export async function computeCaseLabel(store: LedgerStore, history: CaseHistory): Promise<Label> {
  let label = EMPTY_LABEL;
  const last = new Map<string, LastAction>();
  for await (const entries of history.entries(['run_created', 'audit_event'])) {
    for (const { entry } of entries) label = joinLabels(label, labelAtCreation(entry, last));
  }
  const catalogues = new Map<string, Catalogue>();
  for (const { created, proposal } of last.values()) {
    if (proposal === null) continue;
    await refuseErased(store, history, proposal);
    label = joinLabels(label, await labelReadBy(store, created, proposal, catalogues));
  }
  return label;
}

function labelAtCreation({ type, body }: Entry, last: Map<string, LastAction>): Label {
  if (type === 'run_created') {
    if (body.label === null) return EMPTY_LABEL;
    last.set(agentOf(body.run_id), { created: body, proposal: null });
    return body.label;
  }
  if (type !== 'audit_event' || body.outcome !== 'success') return EMPTY_LABEL;
  const lastAction = READ_ACTIONS.has(body.action_type) ? last.get(agentOf(body.run_id)) : undefined;
  if (lastAction?.created.run_id === body.run_id) lastAction.proposal = body.input_artifacts?.[0] ?? null;
  return EMPTY_LABEL;
}

async function labelReadBy(
  store: LedgerStore,
  created: RunCreated,
  proposal: ArtifactRef,
  catalogues: Map<string, Catalogue>,
): Promise<Label> {
  const { machines } = created.policy_versions;
  const catalogue = catalogues.get(machines) ?? pinnedCatalogue(await contentOf(store, null, machines));
  catalogues.set(machines, catalogue);
  const { action, args } = await contentOf(store, proposal.case_id ?? null, proposal.hash_sha256);
  const definition = typeof action === 'string' ? catalogue.action(action) : undefined;
  if (definition === undefined || !isJsonObject(args)) throw tamperedError(proposal.hash_sha256);
  const request = privilegedRequest(definition, args, contextOf(created), catalogue, EMPTY_LABEL);
  return resultLabel(definition, args, request, catalogue) ?? EMPTY_LABEL;
}

/** The confidentiality of data that an erased case has read is unknown. */
async function refuseErased(
  store: LedgerStore,
  history: CaseHistory,
  { case_id, hash_sha256 }: ArtifactRef,
): Promise<void> {
  if ((await store.artifact(case_id ?? null, hash_sha256)) !== null) return;
  for await (const entries of history.entries(['input'])) {
    for (const { entry } of entries) {
      const artifacts = await store.artifactsOf(entry);
      const erased = artifacts.filter(isWithheld).find(({ sha256: hash }) => hash === hash_sha256);
      if (erased !== undefined) throw withheldContentError(erased);
    }
  }
}

function pinnedCatalogue(definitions: Readonly<Record<string, Json>>): Catalogue {
  const registrations = parseRegistrations(definitions);
  if (registrations === null) throw tamperedError('the pinned registrations');
  return createCatalogue(registrations);
}

/** Content of the store is hashed again: the store is not trusted. */
async function contentOf(
  store: LedgerStore,
  case_id: string | null,
  hash: string,
): Promise<Readonly<Record<string, Json>>> {
  const bytes = await store.artifact(case_id, hash);
  if (bytes === null || sha256(bytes) !== hash) throw tamperedError(hash);
  try {
    const content: unknown = parseOwnJson(Buffer.from(bytes).toString('utf8'));
    if (isJsonObject(content)) return content;
  } catch {
    // The payload was valid JSON when its step was decided.
  }
  throw tamperedError(hash);
}

const tamperedError = (what: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_TAMPERED', message: `${what} is missing or was changed` });
