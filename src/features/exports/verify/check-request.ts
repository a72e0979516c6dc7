// Checks that the manifest of a bag is what its export run requested and what people approved by counted votes.
// bag-info.txt is not signed: the run that it names must be an export run that requested this manifest.

import { infoValuesOf } from '../bagit/bag-info.js';
import type { AuditEvent } from '../../../core/contract/run/audit-event.js';
import { isJsonObject, type JsonObject, scanJson, canonicalJson } from '../../../core/contract/json.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import type { Entry, StartRunInput } from '../../../core/contract/run/entry.js';
import type { ApprovalRuleId } from '../../../core/contract/run/approval-rules.js';
import { quoteExcerpt } from './bag-report.js';
import { ROOT_LABEL, RUN_LABEL, reasonReference } from '../bag-manifest.js';
import { EXPORT_BAG_LIMITS } from '../bag-format.js';
import { readBagText, type BagUnderCheck } from './read-bag-text.js';

const MANIFEST_PATH = 'data/manifest.json';
const INFO_PATH = 'bag-info.txt';
/** The members of a manifest that its request decides. */
const REQUESTED = ['bundle_id', 'bundle_kind', 'created_at_utc', 'created_by', 'policy_versions'] as const;

/** Audit rules of a vote that counts as an approval. */
const COUNTED: readonly string[] = ['approval.accepted', 'approval.granted'] satisfies ApprovalRuleId[];

/** The requests and votes of export runs, from the entries of a case. */
export class RequestInputs {
  readonly #starts = new Map<string, StartRunInput>();
  /** Run, voter and time of each vote for a request. */
  readonly #votes = new Set<string>();
  readonly #exports = new Set<string>();
  /** Run, voter and time of each counted vote. */
  readonly #counted = new Set<string>();

  add({ type, body }: Entry): void {
    if (type === 'run_created' && body.run_kind === 'export') this.#exports.add(body.run_id);
    if (type === 'audit_event') this.#takeEvent(body);
    if (type !== 'input') return;
    if (body.kind === 'start_run' && body.run_kind === 'export') this.#starts.set(body.run_id, body);
    if (body.kind !== 'vote' || body.decision !== 'approve') return;
    this.#votes.add(voteOf(body.run_id, body.approver.actor.actor_id, body.time));
  }

  #takeEvent({ run_id, target, authz, actor, timestamp_utc }: AuditEvent): void {
    if (target?.name !== 'approval' || authz === undefined || !COUNTED.includes(authz.rule_id)) return;
    this.#counted.add(voteOf(run_id, actor.actor_id, timestamp_utc));
  }

  /** The input that started an export run, by the root of its tree; null for any other run. */
  startOf(run_id: string): StartRunInput | null {
    return this.#exports.has(run_id) ? (this.#starts.get(rootOf(run_id)) ?? null) : null;
  }

  /** Whether that actor voted for the request of that run at that time, and the vote counted. */
  isApproved(run_id: string, actor_id: string, time: string): boolean {
    const vote = voteOf(run_id, actor_id, time);
    return this.#votes.has(vote) && this.#counted.has(vote);
  }
}

/** The name of an actor may have spaces. */
const voteOf = (...vote: readonly [run_id: string, actor_id: string, time: string]): string => JSON.stringify(vote);

const rootOf = (run_id: string): string => run_id.split('.', 1)[0] ?? '';

/** If the request is withheld, only the votes are compared; the manifest is signed in any case. */
export async function checkRequest({ reading, manifest, info }: BagUnderCheck, inputs: RequestInputs): Promise<void> {
  const [run_id = ''] = infoValuesOf(info, RUN_LABEL);
  if (infoValuesOf(info, ROOT_LABEL).join() !== rootOf(run_id)) {
    reading.findings.add('bundle.info_differs', INFO_PATH, `${ROOT_LABEL} is not the root of ${quoteExcerpt(run_id)}`);
  }
  const start = inputs.startOf(run_id);
  if (start === null) {
    const message = `no input of the log has asked for ${quoteExcerpt(run_id)}, as which bag-info.txt names the export run`;
    reading.findings.add('bundle.request_differs', INFO_PATH, message);
    return;
  }
  const addDifference = (what: string): void => {
    reading.findings.add('bundle.request_differs', MANIFEST_PATH, `${what} not what the export run was asked for`);
  };
  const path = `data/artifacts/${start.request.hash_sha256}`;
  if (reading.files.has(path)) {
    const args = argsIn(await readBagText(reading, path));
    const given: Partial<ExportBundle> = manifest;
    for (const name of REQUESTED) {
      if (canonicalJson(args?.[name] ?? null) !== canonicalJson(given[name] ?? null)) addDifference(`its ${name} is`);
    }
    const reason = args?.['export_reason'];
    if (typeof reason !== 'string' || manifest.export_reason !== reasonReference(reason))
      addDifference('its export_reason is');
  }
  for (const { approved_by, approved_at_utc } of manifest.approvals ?? []) {
    if (!inputs.isApproved(run_id, approved_by, approved_at_utc)) addDifference('its approvals are');
  }
}

function argsIn(text: string | null): JsonObject | null {
  const scanned = text === null ? null : scanJson(text, EXPORT_BAG_LIMITS.depth_max);
  if (scanned?.ok !== true || !isJsonObject(scanned.value)) return null;
  const { args } = scanned.value;
  return isJsonObject(args) ? args : null;
}
