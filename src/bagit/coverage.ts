// Is every file listed where it must be?

import type { BagFindings } from './bag-finding.js';
import type { FileRecord, Inventory } from './inventory.js';
import type { ListedFiles } from './listed-files.js';
import { parseManifestName } from './manifest.js';
import { isBefore1, isPayload } from './paths.js';

interface Manifest {
  readonly path: string;
  readonly kind: 'payload' | 'tag';
}

/**
 * From 1.0 on, every payload manifest lists every payload file, and every tag manifest every payload manifest. Before,
 * it was enough that one payload manifest did.
 */
export function checkCoverage(
  { files }: Inventory,
  listed: ListedFiles,
  manifests: readonly Manifest[],
  findings: BagFindings,
): void {
  const isOld = isBefore1(listed.version);
  const payload = manifests.filter(({ kind }) => kind === 'payload');
  const tag = manifests.filter(({ kind }) => kind === 'tag');
  if (tag.length === 0) findings.add('tag.manifest_missing', null, 'nothing vouches for the files beside the payload');
  for (const record of files.values()) {
    if (isPayload(record.path)) checkPayload(record, payload, listed, isOld);
    else checkTag(record, tag, listed, isOld);
  }
  for (const path of listed.unlistedFetchPaths()) {
    findings.add('fetch.path_unlisted', path, 'fetch.txt names it, but no payload manifest lists it');
  }
}

function checkPayload(record: FileRecord, manifests: readonly Manifest[], listed: ListedFiles, isOld: boolean): void {
  const missingIn = manifests.filter(({ path }) => !listed.isListed(path, record));
  const isCovered = isOld ? missingIn.length < manifests.length : missingIn.length === 0;
  const names = missingIn.map(({ path }) => path).join(', ');
  if (!isCovered) listed.findings.add('payload.file_unlisted', record.path, `it is not listed in ${names}`);
}

function checkTag(record: FileRecord, manifests: readonly Manifest[], listed: ListedFiles, isOld: boolean): void {
  const name = parseManifestName(record.path);
  if (name?.kind === 'tag') return;
  const missingIn = manifests.filter(({ path }) => !listed.isListed(path, record));
  if (missingIn.length === 0) return;
  const rule = name !== null && !isOld ? 'tag.manifest_unlisted' : 'tag.file_unlisted';
  listed.findings.add(rule, record.path, `it is not listed in ${missingIn.map(({ path }) => path).join(', ')}`);
}
