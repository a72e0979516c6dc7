// Faults in the manifest of a bag and in bag-info.txt.

import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { MANIFEST, without, manifest, info, bytes, text, notLast, type BundleCase } from './bundle-changes.js';
import { TREE, SECOND } from './material.js';

export const MANIFEST_CASES: readonly BundleCase[] = [
  ['the manifest is removed', (files) => without(files, MANIFEST), ['bundle.file_missing']],
  ['the manifest is malformed JSON', text(MANIFEST, notLast), ['bundle.json_malformed']],
  [
    'the manifest has a repeated key',
    text(MANIFEST, (t) => `{"status":"failed",${t.slice(1)}`),
    ['bundle.json_malformed'],
  ],
  ['the manifest has a prototype', text(MANIFEST, (t) => `{"__proto__":{},${t.slice(1)}`), ['bundle.json_malformed']],
  ['the manifest has an extra member', text(MANIFEST, (t) => `{"a":{},${t.slice(1)}`), ['bundle.schema']],
  ['the manifest has a constructor', text(MANIFEST, (t) => `{"constructor":{},${t.slice(1)}`), ['bundle.schema']],
  ['the manifest is deeply nested', bytes(MANIFEST, '['.repeat(100)), ['bundle.json_malformed']],
  ['the manifest is a list', bytes(MANIFEST, '[]'), ['bundle.schema']],
  ['the manifest is not UTF-8', bytes(MANIFEST, Buffer.from([0x22, 0xff, 0x22])), ['bundle.json_malformed']],
  ['the manifest is empty', bytes(MANIFEST, ''), ['bundle.json_malformed']],
  ['the manifest has a byte order mark', text(MANIFEST, (t) => `\ufeff${t}`), ['bundle.json_malformed']],
  ['the manifest has white space', text(MANIFEST, (t) => ` ${t}`), ['bundle.json_not_canonical']],
  [
    'the manifest has too many values',
    bytes(MANIFEST, `[${'{},'.repeat(EXPORT_BAG_LIMITS.manifest_groups_max)}{}]`),
    ['bundle.limit'],
  ],
  [
    'the manifest has too many numbers',
    bytes(MANIFEST, `[${'0,'.repeat(EXPORT_BAG_LIMITS.manifest_commas_max + 1)}0]`),
    ['bundle.limit'],
  ],
  [
    'the manifest has too many runs',
    manifest(({ audit }) => {
      for (let n = 0; n < EXPORT_BAG_LIMITS.runs_max; n += 1)
        audit!.run_ids.push(`run_${n.toString(36).padStart(7, '0')}`);
    }),
    ['bundle.limit'],
  ],
  [
    'the manifest is huge',
    bytes(MANIFEST, Buffer.alloc(EXPORT_BAG_LIMITS.manifest_bytes_max + 1, 32)),
    ['bundle.limit'],
  ],
  [
    'a reason is changed, and the hash is not',
    text(MANIFEST, (t) => t.replace('"export_reason":"sha256:', '"export_reason":"sha512:')),
    ['bundle.manifest_hash'],
  ],
  ['the hash is changed', text(MANIFEST, (t) => t.replace(/("manifest_hash_sha256":")./, '$1z')), ['bundle.schema']],
  [
    'the hash is that of another manifest',
    text(MANIFEST, (t) => t.replace(/("manifest_hash_sha256":")[0-9a-f]{64}/, `$1${'0'.repeat(64)}`)),
    ['bundle.info_differs', 'bundle.manifest_hash'],
  ],
  ['the manifest has no hash', manifest((m) => delete m.integrity), ['bundle.schema']],
  [
    'the manifest has no events',
    manifest((m) => delete m.audit),
    ['bundle.events_differ', 'bundle.run_missing', 'bundle.runs_differ', 'bundle.schema'],
  ],
  ['the manifest is of a failed export', manifest((m) => (m.status = 'failed')), ['bundle.status']],
  ['the manifest is of another bundle', manifest((m) => (m.bundle_id = 'bundle_9')), ['bundle.info_differs']],
  ['the manifest is of another kind', manifest((m) => (m.bundle_kind = 'other')), ['bundle.info_differs']],
  [
    'the manifest is of another day',
    manifest((m) => (m.created_at_utc = '2026-02-04T00:00:00.000Z')),
    ['bundle.info_differs'],
  ],
  [
    'the manifest is of another case',
    manifest((m) => (m.case_id = 'case-0002')),
    ['bundle.info_differs', 'bundle.other_case'],
  ],
  [
    'bag-info.txt has another id',
    info('External-Identifier: bundle_0001', 'External-Identifier: bundle_2'),
    ['bundle.info_differs'],
  ],
  [
    'bag-info.txt has two ids',
    info('External-Identifier', 'External-Identifier: x\nExternal-Identifier'),
    ['bundle.info_differs'],
  ],
  [
    'bag-info.txt has a format that does not exist',
    info('Turnpike-Bag-Format: 1', 'Turnpike-Bag-Format: 0'),
    ['bundle.info_differs'],
  ],
  [
    'bag-info.txt has another case',
    info('Turnpike-Case-Id: case-0001', 'Turnpike-Case-Id: case-2'),
    ['bundle.info_differs'],
  ],
  ['bag-info.txt has another day', info(/Bagging-Date: .*/, 'Bagging-Date: 2020-01-01'), ['bundle.info_differs']],
  ['bag-info.txt names no export run', info(/Turnpike-Run-Id: .*\n/, ''), ['bundle.run_missing']],
  [
    'bag-info.txt names another export run',
    info(/Turnpike-Run-Id: .*/, `Turnpike-Run-Id: ${SECOND}.7`),
    ['bundle.run_missing'],
  ],
  [
    'bag-info.txt names two export runs',
    info('Turnpike-Run-Id', `Turnpike-Run-Id: ${TREE}\nTurnpike-Run-Id`),
    ['bundle.run_missing'],
  ],
];
