// Is the manifest of a bag what its export run was asked for, and approved by the people whose votes are in the log?

import { valuesOf } from '../../bagit/bag-info.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { Entry, StartRunInput, VoteInput } from '../../contract/entry.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { scanJson } from '../../step/json-scanner.js';
import { RUN_LABEL } from './bundle-manifest.js';
import { BUNDLE_LIMITS } from './bundle-limits.js';
import { textOf } from './bundle-text.js';
import type { BagUnderCheck } from './bundle-report.js';

const MANIFEST_PATH = 'data/manifest.json';
/** What of a manifest its request decides. */
const REQUESTED = [
  'bundle_id',
  'bundle_kind',
  'export_reason',
  'created_at_utc',
  'created_by',
  'policy_versions',
] as const;

/** The requests and votes of export runs, from the entries of a case. */
export class RequestInputs {
  readonly #starts = new Map<string, StartRunInput>();
  readonly #votes: VoteInput[] = [];

  take({ type, body }: Entry): void {
    if (type !== 'input') return;
    if (body.kind === 'start_run' && body.run_kind === 'export') this.#starts.set(body.run_id, body);
    if (body.kind === 'vote' && body.decision === 'approve') this.#votes.push(body);
  }

  /** The input that started the run, which is named by the root of its tree. */
  startOf(run_id: string): StartRunInput | null {
    return this.#starts.get(run_id.split('.', 1)[0] ?? '') ?? null;
  }

  /** Who has approved something of a run, and when. */
  approvalsOf(run_id: string): ReadonlySet<string> {
    const votes = this.#votes.filter((vote) => vote.run_id === run_id);
    return new Set(votes.map(({ approver, time }) => `${approver.actor.actor_id} ${time}`));
  }
}

/** A bag whose request is withheld is compared with the votes only; the manifest is signed in any case. */
export async function checkRequest({ reading, manifest, info }: BagUnderCheck, inputs: RequestInputs): Promise<void> {
  const [run_id = ''] = valuesOf(info, RUN_LABEL);
  const start = inputs.startOf(run_id);
  if (start === null) return;
  const differs = (what: string): void => {
    reading.findings.add('bundle.request_differs', MANIFEST_PATH, `${what} not what the export run was asked for`);
  };
  const path = `data/artifacts/${start.request.hash_sha256}`;
  if (reading.files.has(path)) {
    const args = argsIn(await textOf(reading, path));
    for (const name of REQUESTED) {
      if (canonicalJson(args?.[name] ?? null) !== canonicalJson(manifest[name] ?? null)) differs(`its ${name} is`);
    }
  }
  const approvals = inputs.approvalsOf(run_id);
  for (const { approved_by, approved_at_utc } of manifest.approvals ?? []) {
    if (!approvals.has(`${approved_by} ${approved_at_utc}`)) differs('its approvals are');
  }
}

function argsIn(text: string | null): JsonObject | null {
  const scanned = text === null ? null : scanJson(text, BUNDLE_LIMITS.depth_max);
  if (scanned?.ok !== true || !isJsonObject(scanned.value)) return null;
  const { args } = scanned.value;
  return isJsonObject(args) ? args : null;
}
