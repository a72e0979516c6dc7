// manifest.json, and what bag-info.txt repeats of it.

import { createHash } from 'node:crypto';
import { valuesOf, type InfoElement } from '../../bagit/bag-info.js';
import { canonicalJson, quote } from '../../contract/canonical-json.js';
import { ExportBundle } from '../../contract/export-bundle.js';
import { isJsonObject } from '../../contract/json.js';
import { conforms } from '../../contract/validators.js';
import { BagError, UsageError } from '../../errors.js';
import type { BundleContents } from './bundle-contents.js';
import { BUNDLE_LIMITS } from './bundle-limits.js';
import type { BundleRequest, ManifestHead } from './bundle-request.js';

const PIECE_CHARACTERS = 65_536;

/** The one element that makes a bag a bundle of Turnpike, and the version of what follows. */
export const BUNDLE_LABEL = 'Turnpike-Bundle';
export type BundleVersion = (typeof BUNDLE_VERSIONS)[number];
/** 1: without the log and its proof, as older versions wrote it, and as it is written for a ledger without a key. */
export const BUNDLE_VERSIONS = ['1', '2'] as const;
export const RUN_LABEL = 'Turnpike-Run-Id';
export const ROOT_LABEL = 'Turnpike-Root-Run-Id';

/** @throws UsageError for a case without content, and BagError BAG_UNWRITABLE for one with more than a bundle holds */
export function bundleManifest(head: ManifestHead, contents: BundleContents): ExportBundle {
  const { artifacts, audit_event_ids, runs } = contents;
  if (artifacts.length === 0) {
    const message = `there is nothing of case ${contents.history.slice.case_id} in this ledger that could be exported`;
    throw new UsageError({ code: 'USAGE', message });
  }
  const bare: ExportBundle = {
    ...head,
    contents: { artifacts: [...artifacts] },
    audit: { audit_event_ids: [...audit_event_ids], run_ids: [...runs.keys()] },
  };
  const manifest = { ...bare, integrity: { manifest_hash_sha256: manifestHash(bare) } };
  if (!conforms(ExportBundle, manifest) || !isWithinLimits(manifest)) {
    const message = `case ${contents.history.slice.case_id} has more than one bundle holds`;
    throw new BagError({ code: 'BAG_UNWRITABLE', message });
  }
  return manifest;
}

function isWithinLimits(manifest: ExportBundle): boolean {
  if (namesTooManyRuns(manifest) || manifest.contents.artifacts.length > BUNDLE_LIMITS.contents_max) return false;
  let bytes = 0;
  for (const piece of manifestPieces(manifest)) bytes += piece.length;
  return bytes <= BUNDLE_LIMITS.manifest_bytes_max;
}

export const namesTooManyRuns = ({ audit }: ExportBundle): boolean =>
  (audit?.run_ids.length ?? 0) > BUNDLE_LIMITS.runs_max;

/** SHA-256 of the manifest's canonical JSON without its member `integrity`, in which it stands. */
export const manifestHash = (manifest: ExportBundle): string => canonicalHash({ ...manifest, integrity: undefined });

/** SHA-256 of the manifest's canonical JSON, which is never in memory as a whole. */
export function canonicalHash(manifest: object): string {
  const hash = createHash('sha256');
  for (const piece of manifestPieces(manifest)) hash.update(piece);
  return hash.digest('hex');
}

/** The canonical JSON of a manifest, piece by piece: it names every event of a case. */
export const manifestPieces = (manifest: object): Iterable<Uint8Array> => inPieces(written(manifest));

function* written(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    yield '[';
    for (const [index, item] of value.entries()) yield `${index === 0 ? '' : ','}${canonicalJson(item)}`;
    yield ']';
  } else if (isJsonObject(value)) {
    const members = Object.entries(value as Record<string, unknown>).filter(([, member]) => member !== undefined);
    members.sort(([one], [other]) => (one < other ? -1 : 1));
    yield '{';
    for (const [index, [key, member]] of members.entries()) {
      yield `${index === 0 ? '' : ','}${quote(key)}:`;
      yield* written(member);
    }
    yield '}';
  } else {
    yield canonicalJson(value);
  }
}

function* inPieces(texts: Iterable<string>): Generator<Uint8Array> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}

/** What bag-info.txt says of a bundle, without what only the ledger and the export run know. */
const infoOf = (manifest: ExportBundle, version: BundleVersion): readonly InfoElement[] => [
  { label: 'External-Identifier', value: manifest.bundle_id },
  { label: BUNDLE_LABEL, value: version },
  { label: 'Turnpike-Bundle-Kind', value: manifest.bundle_kind },
  { label: 'Turnpike-Case-Id', value: manifest.case_id ?? '' },
  { label: 'Turnpike-Manifest-SHA256', value: manifest.integrity?.manifest_hash_sha256 ?? '' },
];

/** `YYYY-MM-DD` of when the bundle was made. */
export const baggingDate = ({ created_at_utc }: ManifestHead): string => created_at_utc.slice(0, 10);

export const bundleInfo = (
  manifest: ExportBundle,
  { run_id, root_run_id }: BundleRequest,
  { history, proof }: BundleContents,
): readonly InfoElement[] => [
  { label: 'External-Description', value: 'Turnpike export bundle' },
  { label: 'Bag-Software-Agent', value: 'turnpike' },
  ...infoOf(manifest, proof === null ? '1' : '2'),
  { label: RUN_LABEL, value: run_id },
  { label: ROOT_LABEL, value: root_run_id },
  { label: 'Turnpike-Ledger-Size', value: String(history.slice.head.size) },
  { label: 'Turnpike-Ledger-Root', value: history.slice.head.root },
];

/** Labels that bag-info.txt must have once, with what the manifest says, and has not. */
export const wrongLabels = (
  info: readonly InfoElement[],
  manifest: ExportBundle,
  version: BundleVersion,
): readonly string[] =>
  [...infoOf(manifest, version), { label: 'Bagging-Date', value: baggingDate(manifest) }]
    .filter(({ label, value }) => {
      const values = valuesOf(info, label);
      return values.length !== 1 || values[0] !== value;
    })
    .map(({ label }) => label);
