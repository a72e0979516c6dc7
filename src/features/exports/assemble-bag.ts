// Assembles the bag of one case for an export run. The run handles authorization, approvals and audit.

import { basename } from 'node:path';
import { createBagFolder, releaseBagFolder, createBagZip } from './bag/create-bag.js';
import { openBagFolder } from './bag/bag-folder.js';
import { hashBagZip, openBagZip } from './bag/bag-zip.js';
import { writeBag } from './bagit/write-bag.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { BagError, LedgerError, usageError } from '../../core/errors.js';
import type { BagSink, BagTree } from '../../engine/ports/bag-tree.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { CaseHistory } from '../../runtime/case/case-history.js';
import type { Audience } from '../../runtime/content/audience.js';
import { ContentReader } from '../../runtime/content/content-reader.js';
import { collectContents } from './bag-contents.js';
import { baggingDate, bagInfo, createManifest, createManifestHead, type ExportBagRequest } from './bag-manifest.js';
import { createPayload, type BagSigner } from './bag-payload.js';
import { inspectExportBag } from './verify/verify-export-bag.js';

/** A bag that is complete and durable. Plain JSON. */
export interface ExportBagSummary {
  readonly bundle_id: string;
  /** The locator of the request. */
  readonly package_locator: string;
  /** Of the canonical JSON of the manifest without its member `integrity`. */
  readonly manifest_hash_sha256: string;
  /** Of the .zip file; for a directory, of its tag manifest. */
  readonly package_hash_sha256: string;
  readonly tag_manifest_sha256: string;
  /** Number of files below `artifacts/`. */
  readonly artifacts: number;
  readonly audit_events: number;
  readonly runs: number;
  /** Size of the payload. */
  readonly bytes: number;
}

/** The ledger, and the audience of the export run: the bag contains what that audience may read. */
export interface ExportBagSource {
  readonly store: LedgerStore;
  readonly audience: Audience;
}

/**
 * Writes everything that the ledger stores of a case, and of no other case, as a bag (S4-76, S4-77, RFC 8493). The same
 * ledger and request give the same bytes. Memory grows with the names of runs, events and artifacts. The log is read
 * once, the trees of the case three times.
 * @param inputs `history`: the case as it was read before; by default up to the present end of the ledger. `signer`:
 * signs that the content is in the log; without it, the bag does not prove that
 * @returns a summary of the bag; after an error nothing of it remains
 * @throws UsageError for a request that no manifest can hold, a run that is not in the ledger, a case without content
 * @throws LedgerError LEDGER_TAMPERED if the ledger or a content was changed, LEDGER_UNAVAILABLE
 * @throws BagError BAG_EXISTS, BAG_UNWRITABLE
 */
export async function assembleExportBag(
  { store, audience }: ExportBagSource,
  request: ExportBagRequest,
  inputs: { readonly history?: CaseHistory; readonly signer?: BagSigner } = {},
): Promise<ExportBagSummary> {
  const head = createManifestHead(request);
  const { case_id } = request;
  const { signer = null, history = new CaseHistory(store, { case_id, head: await store.head() }) } = inputs;
  const contents = await collectContents(history, signer !== null);
  const manifest = createManifest(head, contents);
  if (!contents.runs.has(request.run_id)) {
    const message = `${request.run_id} is not a run of case ${request.case_id}: an export needs one`;
    throw usageError(message);
  }
  const content = new ContentReader(store);
  const options = { bagging_date: baggingDate(head), info: bagInfo(manifest, request, contents) };
  const files = createPayload({ content, audience }, { contents, manifest, signer });
  const written = await writeBag(await createSink(request), files, options);
  return summaryOf(request, manifest, {
    tag_manifest_sha256: written.tag_manifest_sha256,
    artifacts: contents.files.filter(({ path }) => path.startsWith('artifacts/')).length,
    bytes: written.payload.bytes,
  });
}

/**
 * Finds out, after a crash, whether the bag was completed.
 * @returns its summary; null if certainly nothing of this request is at the destination. A name that was claimed and
 * not filled is free again; partial output remains next to it as `.bag-partial-*`
 * @throws UsageError for a request that no manifest can hold
 * @throws BagError BAG_UNREADABLE if the disk gives no answer
 */
export async function settleExportBag(request: ExportBagRequest): Promise<ExportBagSummary | null> {
  const head = createManifestHead(request);
  const tree = await openTree(request);
  const found = tree === null ? null : await inspectTree(tree);
  if (found?.manifest !== undefined && found.manifest !== null && found.report.valid) {
    const { payload, tag_manifest_sha256, bundle } = found.report;
    if (canonicalJson(head) === headText(found.manifest) && tag_manifest_sha256 !== null && bundle !== null) {
      const { artifacts } = bundle;
      return summaryOf(request, found.manifest, { tag_manifest_sha256, artifacts, bytes: payload.bytes });
    }
  }
  if (request.format === 'folder') await releaseBagFolder(request.destination);
  return null;
}

/** The part of a manifest that its request decides. */
const headText = (manifest: ExportBundle): string =>
  canonicalJson({ ...manifest, contents: undefined, audit: undefined, integrity: undefined });

type WrittenCounts = Pick<ExportBagSummary, 'tag_manifest_sha256' | 'artifacts' | 'bytes'>;

async function summaryOf(
  request: ExportBagRequest,
  manifest: ExportBundle,
  written: WrittenCounts,
): Promise<ExportBagSummary> {
  const { destination, format, locator } = request;
  return {
    bundle_id: manifest.bundle_id,
    package_locator: locator,
    manifest_hash_sha256: manifest.integrity?.manifest_hash_sha256 ?? '',
    package_hash_sha256: format === 'zip' ? await hashBagZip(destination) : written.tag_manifest_sha256,
    tag_manifest_sha256: written.tag_manifest_sha256,
    artifacts: written.artifacts,
    audit_events: manifest.audit?.audit_event_ids.length ?? 0,
    runs: manifest.audit?.run_ids.length ?? 0,
    bytes: written.bytes,
  };
}

/** The directory in the archive is named after the bag's id, so that its bytes do not depend on its path. */
const createSink = async ({ format, destination, bundle_id }: ExportBagRequest): Promise<BagSink> =>
  format === 'folder'
    ? createBagFolder(destination)
    : createBagZip(destination, basename(bundle_id.replaceAll(/[^A-Za-z0-9_.-]/g, '_')));

/**
 * Null if the destination does not exist or is not a bag of this kind.
 * @throws BagError if that cannot be determined
 */
async function openTree({ format, destination }: ExportBagRequest): Promise<BagTree | null> {
  try {
    return format === 'folder' ? openBagFolder(destination) : await openBagZip(destination);
  } catch (error) {
    if (error instanceof BagError && !isSystemFailure(error)) return null;
    throw error;
  }
}

async function inspectTree(tree: BagTree): Promise<Awaited<ReturnType<typeof inspectExportBag>> | null> {
  try {
    const found = await inspectExportBag(tree);
    if (!found.report.findings.some(({ rule_id }) => rule_id === 'tree.unreadable')) return found;
    throw new BagError({ code: 'BAG_UNREADABLE', message: 'the bundle cannot be read to its end: look at the disk' });
  } catch (error) {
    if (error instanceof BagError && error.code === 'BAG_HOSTILE' && !isSystemFailure(error)) return null;
    // A bag of another format: this version has not written it.
    if (error instanceof LedgerError && error.code === 'LEDGER_UNSUPPORTED') return null;
    throw error;
  } finally {
    await tree.close();
  }
}

/** Whether the operating system failed, as opposed to a missing or unexpected file. */
const isSystemFailure = ({ cause }: BagError): boolean =>
  typeof cause === 'object' &&
  cause !== null &&
  'errno' in cause &&
  'code' in cause &&
  !['ENOENT', 'ENOTDIR'].includes(String(cause.code));
