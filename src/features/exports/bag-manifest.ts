// The request of an export run. Creates manifest.json from it, and the elements of bag-info.txt that repeat it.

import { createHash } from 'node:crypto';
import { infoValuesOf, type InfoElement } from './bagit/bag-info.js';
import { encodeTexts } from './bagit/write-bag.js';
import { isJsonObject, canonicalJson, quote } from '../../core/contract/json.js';
import { refuseOtherFormat, type FileFormat } from '../../core/contract/file-format.js';
import { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { isConforming } from '../../core/contract/validators.js';
import { BagError, usageError, InvariantError } from '../../core/errors.js';
import type { ExportBagContents } from './bag-contents.js';
import { EXPORT_BAG_LIMITS } from './bag-format.js';
import { isAbsolute } from 'node:path';
import Type, { type Static } from 'typebox';
import { sha256 } from '../../core/contract/hash.js';
import { CaseId, closed, Identifier, RunId, type PolicyVersions } from '../../core/contract/shapes.js';

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

/** The element that marks a bag as one of Turnpike. Its value is the format. */
export const EXPORT_BAG_LABEL = 'Turnpike-Bag-Format';
/** Of the element as one line. */
const FORMAT: FileFormat = { prefix: `${EXPORT_BAG_LABEL}: `, newest: 1, old: /^Turnpike-Bundle: /i };
/** Whether the bag has the log with its proof: a ledger without a key makes a bag that has neither. */
const LOG_LABEL = 'Turnpike-Log';
export const RUN_LABEL = 'Turnpike-Run-Id';
export const ROOT_LABEL = 'Turnpike-Root-Run-Id';

/**
 * @throws UsageError for a case without content
 * @throws BagError BAG_UNWRITABLE for a case that exceeds the limits of a bag
 */
export function createManifest(head: ManifestHead, contents: ExportBagContents): ExportBundle {
  const { artifacts, audit_event_ids, runs } = contents;
  if (artifacts.length === 0) {
    const message = `there is nothing of case ${contents.history.slice.case_id} in this ledger that could be exported`;
    throw usageError(message);
  }
  const withoutHash: ExportBundle = {
    ...head,
    contents: { artifacts: [...artifacts] },
    audit: { audit_event_ids: [...audit_event_ids], run_ids: [...runs.keys()] },
  };
  const manifest = { ...withoutHash, integrity: { manifest_hash_sha256: manifestHash(withoutHash) } };
  if (!isConforming(ExportBundle, manifest) || !isWithinLimits(manifest)) {
    const message = `case ${contents.history.slice.case_id} exceeds the limits of one bag`;
    throw new BagError({ code: 'BAG_UNWRITABLE', message });
  }
  return manifest;
}

function isWithinLimits(manifest: ExportBundle): boolean {
  if (hasTooManyRuns(manifest) || manifest.contents.artifacts.length > EXPORT_BAG_LIMITS.contents_max) return false;
  let bytes = 0;
  for (const piece of manifestPieces(manifest)) bytes += piece.length;
  return bytes <= EXPORT_BAG_LIMITS.manifest_bytes_max;
}

export const hasTooManyRuns = ({ audit }: ExportBundle): boolean =>
  (audit?.run_ids.length ?? 0) > EXPORT_BAG_LIMITS.runs_max;

/** SHA-256 of the manifest's canonical JSON without its member `integrity`, which contains the hash. */
export const manifestHash = (manifest: ExportBundle): string => canonicalHash({ ...manifest, integrity: undefined });

/** SHA-256 of canonical JSON that is never in memory as a whole. */
export function canonicalHash(manifest: object): string {
  const hash = createHash('sha256');
  for (const piece of manifestPieces(manifest)) hash.update(piece);
  return hash.digest('hex');
}

/** The canonical JSON of a manifest in pieces, because it names every event of a case. */
export const manifestPieces = (manifest: object): Iterable<Uint8Array> => encodeTexts(canonicalPieces(manifest));

function* canonicalPieces(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    yield '[';
    for (const [index, item] of value.entries()) yield `${index === 0 ? '' : ','}${canonicalJson(item)}`;
    yield ']';
  } else if (isJsonObject(value)) {
    const members = Object.entries(value as Record<string, unknown>).filter(([, member]) => member !== undefined);
    members.sort(([left], [right]) => (left < right ? -1 : 1));
    yield '{';
    for (const [index, [key, member]] of members.entries()) {
      yield `${index === 0 ? '' : ','}${quote(key)}:`;
      yield* canonicalPieces(member);
    }
    yield '}';
  } else {
    yield canonicalJson(value);
  }
}

/** @throws LedgerError LEDGER_UNSUPPORTED if these elements are those of a bag of another format */
export function refuseOtherBag(info: readonly InfoElement[]): void {
  for (const { label, value } of info) {
    const isMark = label.toLowerCase() === EXPORT_BAG_LABEL.toLowerCase();
    refuseOtherFormat(`${isMark ? EXPORT_BAG_LABEL : label}: ${value}`, FORMAT, 'this bag');
  }
}

/** The elements of bag-info.txt, except those that only the ledger and the export run know. */
const infoOf = (manifest: ExportBundle, hasLog: boolean): readonly InfoElement[] => [
  { label: 'External-Identifier', value: manifest.bundle_id },
  { label: EXPORT_BAG_LABEL, value: String(FORMAT.newest) },
  { label: LOG_LABEL, value: hasLog ? 'signed' : 'none' },
  { label: 'Turnpike-Bundle-Kind', value: manifest.bundle_kind },
  { label: 'Turnpike-Case-Id', value: manifest.case_id ?? '' },
  { label: 'Turnpike-Manifest-SHA256', value: manifest.integrity?.manifest_hash_sha256 ?? '' },
];

/** `YYYY-MM-DD` of the time at which the bag was made. */
export const baggingDate = ({ created_at_utc }: ManifestHead): string => created_at_utc.slice(0, 10);

export const bagInfo = (
  manifest: ExportBundle,
  { run_id, root_run_id }: ExportBagRequest,
  { history, proof }: ExportBagContents,
): readonly InfoElement[] => [
  { label: 'External-Description', value: 'Turnpike export bundle' },
  { label: 'Bag-Software-Agent', value: 'turnpike' },
  ...infoOf(manifest, proof !== null),
  { label: RUN_LABEL, value: run_id },
  { label: ROOT_LABEL, value: root_run_id },
  { label: 'Turnpike-Ledger-Size', value: String(history.slice.head.size) },
  { label: 'Turnpike-Ledger-Root', value: history.slice.head.root },
];

/** Labels that are not exactly once in bag-info.txt with the value of the manifest. */
export const findWrongLabels = (
  info: readonly InfoElement[],
  manifest: ExportBundle,
  hasLog: boolean,
): readonly string[] =>
  [...infoOf(manifest, hasLog), { label: 'Bagging-Date', value: baggingDate(manifest) }]
    .filter(({ label, value }) => {
      const values = infoValuesOf(info, label);
      return values.length !== 1 || values[0] !== value;
    })
    .map(({ label }) => label);
