// Checks that the payload files are those of the manifest, and that each matches the hash in its name.

import type { FileRecord } from '../bagit/inventory.js';
import { isPayload } from '../bagit/paths.js';
import type { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { AUDIT, LOG, MANIFEST, policyHashIn, PROOF, RUNS } from '../bag-format.js';
import { quoteExcerpt, type ExportBagFindings } from './bag-report.js';

const GENERATED_FILES: readonly string[] = [AUDIT, LOG, MANIFEST, PROOF, RUNS].map((name) => `data/${name}`);
const ARTIFACT = /^data\/artifacts\/([0-9a-f]{64})$/;
const PAYLOAD_FOLDER = 'data/';
const MACHINES = /^data\/machines\/([0-9a-f]{64})\.json$/;

/** Hashes of the contents of a bag, by kind. */
export interface ListedContents {
  readonly artifacts: ReadonlyMap<string, FileRecord>;
  readonly machines: ReadonlySet<string>;
}

/** Sorts the payload. Unexpected files, and files that differ from the hash in their name, are findings. */
export function listContents(files: ReadonlyMap<string, FileRecord>, findings: ExportBagFindings): ListedContents {
  const artifacts = new Map<string, FileRecord>();
  const machines = new Set<string>();
  for (const record of files.values()) {
    const { path } = record;
    if (!isPayload(path) || GENERATED_FILES.includes(path)) continue;
    const artifact = ARTIFACT.exec(path)?.[1];
    const machine = MACHINES.exec(path)?.[1];
    const hash = artifact ?? machine ?? policyHashIn(path.slice(PAYLOAD_FOLDER.length));
    if (hash === undefined) findings.add('bundle.file_unexpected', path, 'a bundle has no such file');
    else if (record.actual?.sha256 !== hash) {
      const rule = artifact === undefined ? 'bundle.policy_differs' : 'bundle.artifact_differs';
      findings.add(rule, path, 'it does not have the SHA-256 by which it is named');
    }
    if (artifact !== undefined) artifacts.set(artifact, record);
    if (machine !== undefined) machines.add(machine);
  }
  return { artifacts, machines };
}

/** Compares the manifest's list of artifacts with the files. */
export function checkArtifacts(manifest: ExportBundle, contents: ListedContents, findings: ExportBagFindings): void {
  const listed = new Set<string>();
  let before = '';
  for (const ref of manifest.contents.artifacts) {
    const { hash_sha256, artifact_kind } = ref;
    const key = `${hash_sha256} ${artifact_kind}`;
    if (key <= before) findings.add('bundle.artifact_order', null, `${quoteExcerpt(key)} comes twice, or out of order`);
    before = key;
    listed.add(hash_sha256);
    checkArtifact(ref, contents, findings);
    if (ref.case_id !== manifest.case_id) {
      findings.add('bundle.other_case', pathOf(ref), `its case is ${quoteExcerpt(ref.case_id ?? 'none')}`);
    }
  }
  for (const [hash, { path }] of contents.artifacts) {
    if (!listed.has(hash)) findings.add('bundle.artifact_unlisted', path, 'manifest.json does not name it');
  }
}

function checkArtifact(ref: ArtifactRef, { artifacts }: ListedContents, findings: ExportBagFindings): void {
  const record = artifacts.get(ref.hash_sha256);
  if (record === undefined) findings.add('bundle.artifact_missing', pathOf(ref), 'manifest.json names it');
  else if (record.bytes !== ref.byte_size) {
    const message = `it has ${record.bytes} bytes, and manifest.json names ${ref.byte_size ?? 'no size'}`;
    findings.add('bundle.artifact_differs', record.path, message);
  }
  if (ref.artifact_id !== `sha256:${ref.hash_sha256}`) {
    findings.add('bundle.artifact_differs', pathOf(ref), `its id is ${quoteExcerpt(ref.artifact_id)}`);
  }
}

const pathOf = ({ hash_sha256 }: ArtifactRef): string => `data/artifacts/${hash_sha256}`;
