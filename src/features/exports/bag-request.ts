// The request of an export run, and the part of the manifest that it decides.

import { isAbsolute } from 'node:path';
import Type, { type Static } from 'typebox';
import { canonicalJson } from '../../core/contract/json.js';
import { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { sha256 } from '../../core/contract/hash.js';
import { CaseId, closed, Identifier, RunId, type PolicyVersions } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { InvariantError, usageError } from '../../core/errors.js';

/** One bag of one case, made by one export run. */
export interface ExportBagRequest {
  /** An identifier of 8 to 120 characters. */
  readonly bundle_id: string;
  readonly bundle_kind: ExportBundle['bundle_kind'];
  readonly export_reason: string;
  readonly case_id: string;
  /** The export run, which must be in the ledger, and the root of its tree. */
  readonly run_id: string;
  readonly root_run_id: string;
  readonly created_at_utc: string;
  readonly created_by: ExportBundle['created_by'];
  readonly policy_versions: PolicyVersions;
  readonly approvals: NonNullable<ExportBundle['approvals']>;
  readonly format: 'folder' | 'zip';
  /** An absolute path that does not exist. */
  readonly destination: string;
  /** The locator below the folder of exports, by which the ledger names the bag. */
  readonly locator: string;
}

/** A manifest without the members that are known only after reading the ledger. */
export const ManifestHead = Type.Omit(ExportBundle, ['contents', 'audit', 'integrity']);
export type ManifestHead = Static<typeof ManifestHead>;

const RequestIds = Type.Object(
  {
    bundle_id: Type.Intersect([Identifier, Type.String({ minLength: 8 })]),
    case_id: CaseId,
    run_id: RunId,
    root_run_id: RunId,
  },
  closed,
);

/** @throws UsageError for a request that no manifest can represent */
export function createManifestHead(request: ExportBagRequest): ManifestHead {
  const { bundle_id, case_id, run_id, root_run_id, destination } = request;
  const head: ManifestHead = {
    bundle_id,
    bundle_kind: request.bundle_kind,
    contract_version: 'v1',
    policy_versions: request.policy_versions,
    status: 'completed',
    created_at_utc: request.created_at_utc,
    created_by: request.created_by,
    case_id,
    export_reason: reasonReference(request.export_reason),
    approvals: request.approvals,
  };
  const isValid =
    isConforming(ManifestHead, { ...head, export_reason: request.export_reason }) &&
    isConforming(RequestIds, { bundle_id, case_id, run_id, root_run_id });
  if (
    !isValid ||
    !isWellFormedHead({ ...head, export_reason: request.export_reason }) ||
    !isAbsolute(destination) ||
    !isFormat(request.format)
  ) {
    throw usageError(`invalid request for an export: ${JSON.stringify(bundle_id)}`);
  }
  return head;
}

/** What a manifest has of the reason for its export: a receiver can compare it, but does not read it there. */
export const reasonReference = (reason: string): string => `sha256:${sha256(reason)}`;

/** A manifest cannot contain a lone surrogate. */
function isWellFormedHead(head: ManifestHead): boolean {
  try {
    return canonicalJson(head) !== '';
  } catch (error) {
    if (error instanceof InvariantError) return false;
    throw error;
  }
}

const isFormat = (format: string): boolean => format === 'folder' || format === 'zip';
