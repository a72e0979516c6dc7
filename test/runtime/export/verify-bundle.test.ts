// Every rule that a bundle can break: real bundles, changed in one thing, and made good bags again.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BAG_RULES } from '../../../src/bagit/finding.js';
import type { AuditEvent } from '../../../src/contract/audit-event.js';
import { canonicalJson } from '../../../src/contract/canonical-json.js';
import type { ExportBundle } from '../../../src/contract/export-bundle.js';
import { sha256 } from '../../../src/contract/hash.js';
import type { RunRecord } from '../../../src/contract/run-record.js';
import { BagError } from '../../../src/errors.js';
import type { BagTree } from '../../../src/ports/bag-tree.js';
import { BUNDLE_RULES, type BundleRule } from '../../../src/runtime/export/bundle-finding.js';
import { BUNDLE_LIMITS } from '../../../src/runtime/export/bundle-limits.js';
import type { BundleReport } from '../../../src/runtime/export/bundle-report.js';
import { verifyBundle } from '../../../src/runtime/export/verify-bundle.js';
import { sized } from '../../fixtures/campaign.js';
import {
  assembleBundle,
  filesOf,
  ledgerOf,
  payload,
  place,
  requestFor,
  result,
  RULES_OF_PROOFS,
  SECOND,
  sealed,
  TREE,
  type Files,
} from './material.js';

const { at, remove } = place();
afterAll(remove);
let good: Files;
beforeAll(async () => {
  await assembleBundle(await ledgerOf(), requestFor(at('good')));
  good = filesOf(at('good'));
});

const MANIFEST = 'data/manifest.json';
const RUNS = 'data/runs.jsonl';
const AUDIT = 'data/audit.jsonl';
const P1 = `data/artifacts/${sha256(payload(1).bytes)}`;
const P2 = `data/artifacts/${sha256(payload(2).bytes)}`;
const R3 = `data/artifacts/${sha256(result(3).bytes)}`;
const LANES = `data/policies/lanes-${sha256('lanes: of the tests')}.yaml`;
const MACHINES = `data/machines/${sha256('{"machines":"of the tests"}')}.json`;

const inMemory = (files: Files): BagTree => ({
  async *entries() {
    yield { kind: 'directory', path: 'data' };
    for (const [path, content] of Object.entries(files)) {
      yield await Promise.resolve({ kind: 'file', path, bytes: content.length } as const);
    }
  },
  async *read(path) {
    // In small pieces, so that lines and characters are cut.
    const content = files[path]!;
    const size = Math.max(1, Math.ceil(content.length / 64));
    for (let from = 0; from < content.length; from += size) {
      yield await Promise.resolve(content.subarray(from, from + size));
    }
  },
  close: () => Promise.resolve(),
});
const check = (files: Files): Promise<BundleReport> => verifyBundle(inMemory(files));
const rules = (report: BundleReport): readonly string[] =>
  [...new Set(report.findings.map(({ rule_id }) => rule_id))].sort();

type Manifest = { -readonly [K in keyof ExportBundle]: ExportBundle[K] };
type Change = (files: Files) => Files;

const without = (files: Files, path: string): Files => {
  expect(files[path]).toBeDefined();
  return Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));
};

/** The manifest changed, its hash and bag-info.txt made to fit. */
const manifest =
  (change: (manifest: Manifest) => void): Change =>
  (files) => {
    const changed = JSON.parse(files[MANIFEST]!.toString()) as Manifest;
    const before = canonicalJson(changed);
    change(changed);
    expect(canonicalJson(changed)).not.toBe(before);
    if (changed.integrity !== undefined) {
      changed.integrity.manifest_hash_sha256 = sha256(canonicalJson({ ...changed, integrity: undefined }));
    }
    const hash = changed.integrity?.manifest_hash_sha256 ?? '';
    const info = files['bag-info.txt']!.toString().replace(/(Turnpike-Manifest-SHA256:\s+)\S+/, `$1${hash}`);
    return { ...files, [MANIFEST]: Buffer.from(canonicalJson(changed)), 'bag-info.txt': Buffer.from(info) };
  };

const info =
  (from: string | RegExp, to: string): Change =>
  (files) => {
    const text = files['bag-info.txt']!.toString();
    expect(text.replace(from, to)).not.toBe(text);
    return { ...files, 'bag-info.txt': Buffer.from(text.replace(from, to)) };
  };

/** Lines of a file changed. */
const lines =
  (path: string, change: (lines: string[]) => string[]): Change =>
  (files) => {
    const changed = change(files[path]!.toString().split('\n').slice(0, -1));
    const bytes = Buffer.from(changed.map((line) => `${line}\n`).join(''));
    expect(bytes.equals(files[path]!)).toBe(false);
    return { ...files, [path]: bytes };
  };

/** The first line of a file that has a text, changed as the value that it is. */
const value = (path: string, having: string, change: (value: unknown) => void): Change =>
  lines(path, (all) => {
    const index = all.findIndex((line) => line.includes(having));
    const changed: unknown = JSON.parse(all[index]!);
    change(changed);
    return all.with(index, canonicalJson(changed));
  });
const event = (having: string, change: (event: AuditEvent) => void): Change =>
  value(AUDIT, having, (changed) => {
    change(changed as AuditEvent);
  });
const run = (having: string, change: (run: RunRecord) => void): Change =>
  value(RUNS, having, (changed) => {
    change(changed as RunRecord);
  });

const bytes =
  (path: string, to: string | Buffer): Change =>
  (files) => ({ ...files, [path]: Buffer.from(to) });
const text =
  (path: string, change: (text: string) => string): Change =>
  (files) => {
    const before = files[path]!.toString();
    expect(change(before)).not.toBe(before);
    return { ...files, [path]: Buffer.from(change(before)) };
  };
const all =
  (...changes: readonly Change[]): Change =>
  (files) =>
    changes.reduce((changed, change) => change(changed), files);

const swapped = <T>(items: readonly T[], one: number, other: number): T[] =>
  items.with(one, items[other]!).with(other, items[one]!);
const notLast = (text: string): string => text.slice(0, -1);

/** What is changed, and all rules that it breaks; the bag itself is good again. */
const CASES: readonly (readonly [string, Change, readonly BundleRule[]])[] = [
  ['nothing', (files) => files, []],

  ['an artifact is changed', bytes(P1, 'other'), ['bundle.artifact_differs']],
  ['an artifact is changed, of the same size', text(P1, (t) => t.replace('here', 'hers')), ['bundle.artifact_differs']],
  ['an artifact is removed', (files) => without(files, P1), ['bundle.artifact_missing', 'bundle.reference_absent']],
  ['an artifact that no event refers to is removed', (files) => without(files, R3), ['bundle.artifact_missing']],
  ['an artifact is added', bytes(`data/artifacts/${sha256('more')}`, 'more'), ['bundle.artifact_unlisted']],
  [
    'two artifacts are swapped',
    (files) => ({ ...files, [P1]: files[P2]!, [P2]: files[P1]! }),
    ['bundle.artifact_differs'],
  ],
  [
    'an artifact is relabelled',
    (files) => ({ ...without(files, P1), [`data/artifacts/${'0'.repeat(64)}`]: files[P1]! }),
    ['bundle.artifact_differs', 'bundle.artifact_missing', 'bundle.artifact_unlisted', 'bundle.reference_absent'],
  ],
  [
    'an artifact and its reference are removed',
    all(
      (files) => without(files, P1),
      manifest(({ contents }) => {
        contents.artifacts = contents.artifacts.filter(({ hash_sha256 }) => !P1.endsWith(hash_sha256));
      }),
    ),
    ['bundle.reference_absent'],
  ],
  ['a reference is removed', manifest(({ contents }) => void contents.artifacts.shift()), ['bundle.artifact_unlisted']],
  [
    'a reference comes twice',
    manifest(({ contents }) => void contents.artifacts.unshift(contents.artifacts[0]!)),
    ['bundle.artifact_order'],
  ],
  [
    'two references are swapped',
    manifest(({ contents }) => (contents.artifacts = swapped(contents.artifacts, 0, 1))),
    ['bundle.artifact_order'],
  ],
  [
    'a reference has another size',
    manifest(({ contents }) => (contents.artifacts[0]!.byte_size = 1)),
    ['bundle.artifact_differs'],
  ],
  [
    'a reference has another id',
    manifest(({ contents }) => (contents.artifacts[0]!.artifact_id = 'sha256:x')),
    ['bundle.artifact_differs'],
  ],
  [
    'a reference is of another case',
    manifest(({ contents }) => (contents.artifacts[0]!.case_id = 'case-0002')),
    ['bundle.other_case'],
  ],
  ['a file has no place', bytes('data/more.txt', 'x'), ['bundle.file_unexpected']],
  ['a file has nearly a name', bytes(`data/artifacts/${'A'.repeat(64)}`, 'x'), ['bundle.file_unexpected']],
  ['a policy is changed', bytes(LANES, 'lanes: others'), ['bundle.policy_differs']],
  ['the machines are changed', bytes(MACHINES, '{}'), ['bundle.policy_differs']],
  ['the machines are removed', (files) => without(files, MACHINES), ['bundle.policy_missing']],

  ['the manifest is removed', (files) => without(files, MANIFEST), ['bundle.file_missing']],
  ['the manifest is no JSON', text(MANIFEST, notLast), ['bundle.json_malformed']],
  [
    'the manifest has a key twice',
    text(MANIFEST, (t) => `{"status":"failed",${t.slice(1)}`),
    ['bundle.json_malformed'],
  ],
  ['the manifest has a prototype', text(MANIFEST, (t) => `{"__proto__":{},${t.slice(1)}`), ['bundle.json_malformed']],
  ['the manifest has another member', text(MANIFEST, (t) => `{"a":{},${t.slice(1)}`), ['bundle.schema']],
  ['the manifest has a constructor', text(MANIFEST, (t) => `{"constructor":{},${t.slice(1)}`), ['bundle.schema']],
  ['the manifest is deep', bytes(MANIFEST, '['.repeat(100)), ['bundle.json_malformed']],
  ['the manifest is a list', bytes(MANIFEST, '[]'), ['bundle.schema']],
  ['the manifest is no UTF-8', bytes(MANIFEST, Buffer.from([0x22, 0xff, 0x22])), ['bundle.json_malformed']],
  ['the manifest is empty', bytes(MANIFEST, ''), ['bundle.json_malformed']],
  ['the manifest has a byte order mark', text(MANIFEST, (t) => `\ufeff${t}`), ['bundle.json_malformed']],
  ['the manifest has white space', text(MANIFEST, (t) => ` ${t}`), ['bundle.json_not_canonical']],
  [
    'the manifest has too many values',
    bytes(MANIFEST, `[${'{},'.repeat(BUNDLE_LIMITS.manifest_groups_max)}{}]`),
    ['bundle.limit'],
  ],
  [
    'the manifest has too many numbers',
    bytes(MANIFEST, `[${'0,'.repeat(BUNDLE_LIMITS.manifest_commas_max + 1)}0]`),
    ['bundle.limit'],
  ],
  [
    'it names more runs than can be held',
    manifest(({ audit }) => {
      for (let n = 0; n < BUNDLE_LIMITS.runs_max; n += 1) audit!.run_ids.push(`run_${n.toString(36).padStart(7, '0')}`);
    }),
    ['bundle.limit'],
  ],
  ['the manifest is huge', bytes(MANIFEST, Buffer.alloc(BUNDLE_LIMITS.manifest_bytes_max + 1, 32)), ['bundle.limit']],
  [
    'a reason is changed, and the hash is not',
    text(MANIFEST, (t) => t.replace('asked for by', 'taken against')),
    ['bundle.manifest_hash'],
  ],
  ['the hash is changed', text(MANIFEST, (t) => t.replace(/("manifest_hash_sha256":")./, '$1z')), ['bundle.schema']],
  [
    'the hash is another',
    text(MANIFEST, (t) => t.replace(/("manifest_hash_sha256":")[0-9a-f]{64}/, `$1${'0'.repeat(64)}`)),
    ['bundle.info_differs', 'bundle.manifest_hash'],
  ],
  ['the manifest has no hash', manifest((m) => delete m.integrity), ['bundle.schema']],
  [
    'the manifest has no events',
    manifest((m) => delete m.audit),
    ['bundle.events_differ', 'bundle.run_missing', 'bundle.runs_differ', 'bundle.schema'],
  ],
  ['the manifest is of a bundle that failed', manifest((m) => (m.status = 'failed')), ['bundle.status']],
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
  ['bag-info.txt has another version', info('Turnpike-Bundle: 1', 'Turnpike-Bundle: 2'), ['bundle.info_differs']],
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

  [
    'the runs are removed',
    (files) => without(files, RUNS),
    ['bundle.event_run_unknown', 'bundle.file_missing', 'bundle.runs_differ'],
  ],
  ['the events are removed', (files) => without(files, AUDIT), ['bundle.events_differ', 'bundle.file_missing']],
  ['a run is removed', lines(RUNS, (l) => l.toSpliced(2, 1)), ['bundle.event_run_unknown', 'bundle.runs_differ']],
  ['the last run is removed', lines(RUNS, (l) => l.slice(0, -1)), ['bundle.event_run_unknown', 'bundle.runs_differ']],
  ['a run comes twice', lines(RUNS, (l) => [...l, l[0]!]), ['bundle.runs_differ']],
  [
    'a run comes twice, in the manifest too',
    all(
      lines(RUNS, (l) => [...l, l[0]!]),
      manifest((m) => m.audit!.run_ids.push(m.audit!.run_ids[0]!)),
    ),
    ['bundle.run_repeated'],
  ],
  ['two runs are swapped', lines(RUNS, (l) => swapped(l, 2, 3)), ['bundle.runs_differ']],
  ['the manifest names another run', manifest((m) => m.audit!.run_ids.push('run_more00')), ['bundle.runs_differ']],
  [
    'the manifest lacks a run',
    manifest((m) => m.audit!.run_ids.pop()),
    ['bundle.run_missing', 'bundle.runs_differ', 'bundle.event_run_unknown'],
  ],
  ['a run has another status', run('"completed"', (r) => (r.status = 'failed')), ['bundle.run_differs']],
  ['a run has ended otherwise', run('"completed"', (r) => (r.outcome = 'completed:x')), ['bundle.run_differs']],
  [
    'a run ended later',
    run('"completed"', (r) => (r.completed_at_utc = r.created_at_utc.replace('2026', '2027'))),
    ['bundle.run_differs'],
  ],
  ['a run took longer', run('"completed"', (r) => (r.duration_ms = 7)), ['bundle.run_differs']],
  [
    'a run has an error',
    run('"completed"', (r) => (r.error = { error_code: 'X', message: 'x', retryable: true })),
    ['bundle.run_differs'],
  ],
  ['a run lacks an input', run('"completed"', (r) => void r.inputs.artifact_refs.pop()), ['bundle.run_differs']],
  ['a run lacks an output', run('"completed"', (r) => void r.outputs.artifact_refs.pop()), ['bundle.run_differs']],
  ['a run lacks an event', run('"completed"', (r) => void r.audit.audit_event_ids.pop()), ['bundle.run_differs']],
  [
    'a run began earlier',
    run('"running"', (r) => (r.started_at_utc = r.created_at_utc.replace('2026', '2025'))),
    ['bundle.run_differs'],
  ],
  [
    'a run has other pins',
    run('"completed"', (r) => (r.policy_versions.lanes = '9'.repeat(40))),
    ['bundle.event_differs'],
  ],
  [
    'a run has other machines',
    run('"completed"', (r) => (r.policy_versions.machines = '9'.repeat(64))),
    ['bundle.event_differs', 'bundle.policy_missing'],
  ],
  ['a run has another parent', run('"completed"', (r) => (r.parent_run_id = SECOND)), ['bundle.event_differs']],
  ['a run is of another case', run('"completed"', (r) => (r.case_id = 'case-0002')), ['bundle.other_case']],
  ['a run is of no case', run('"completed"', (r) => delete r.case_id), ['bundle.other_case']],
  [
    'a run refers to another case',
    run('"completed"', (r) => (r.inputs.artifact_refs[0]!.case_id = 'case-0002')),
    ['bundle.other_case'],
  ],
  [
    'a run is relabelled',
    run('"completed"', (r) => (r.run_id = 'run_other000')),
    ['bundle.event_run_unknown', 'bundle.runs_differ'],
  ],
  [
    'a run has a status that there is not',
    run('"completed"', (r) => Reflect.set(r, 'status', 'waiting')),
    ['bundle.event_run_unknown', 'bundle.schema'],
  ],

  ['an event is removed', lines(AUDIT, (l) => l.toSpliced(3, 1)), ['bundle.events_differ']],
  [
    'an event is removed, from the manifest too',
    all(
      lines(AUDIT, (l) => l.toSpliced(3, 1)),
      manifest((m) => m.audit!.audit_event_ids.splice(3, 1)),
    ),
    ['bundle.run_differs'],
  ],
  ['the last event is removed', lines(AUDIT, (l) => l.slice(0, -1)), ['bundle.events_differ']],
  ['an event comes twice', lines(AUDIT, (l) => [...l, l[0]!]), ['bundle.events_differ']],
  [
    'an event comes twice, in the manifest too',
    all(
      lines(AUDIT, (l) => l.toSpliced(1, 0, l[0]!)),
      manifest((m) => m.audit!.audit_event_ids.splice(1, 0, m.audit!.audit_event_ids[0]!)),
    ),
    ['bundle.event_repeated'],
  ],
  ['two events are swapped', lines(AUDIT, (l) => swapped(l, 0, 1)), ['bundle.event_place', 'bundle.events_differ']],
  [
    'two events are swapped, in the manifest too',
    all(
      lines(AUDIT, (l) => swapped(l, 0, 1)),
      manifest((m) => (m.audit!.audit_event_ids = swapped(m.audit!.audit_event_ids, 0, 1))),
    ),
    ['bundle.event_place'],
  ],
  [
    'two ids of the manifest are swapped',
    manifest((m) => (m.audit!.audit_event_ids = swapped(m.audit!.audit_event_ids, 0, 1))),
    ['bundle.events_differ'],
  ],
  [
    'the manifest names another event',
    manifest((m) => m.audit!.audit_event_ids.push('run_more00:7')),
    ['bundle.events_differ'],
  ],
  [
    'an event is relabelled',
    event('"tool_call"', (e) => (e.event_id = `${TREE}:999`)),
    ['bundle.event_place', 'bundle.events_differ'],
  ],
  ['an event has another sequence', event('"tool_call"', (e) => (e.sequence += 1)), ['bundle.event_place']],
  [
    'an event is of a run that is not there',
    event('"tool_call"', (e) => (e.run_id = `${TREE}.1.9`)),
    ['bundle.event_run_unknown'],
  ],
  ['an event is of another run', event('"tool_call"', (e) => (e.run_id = `${TREE}.1.2`)), ['bundle.run_differs']],
  ['an event is of another case', event('"tool_call"', (e) => (e.case_id = 'case-0002')), ['bundle.other_case']],
  ['an event is of no case', event('"tool_call"', (e) => delete e.case_id), ['bundle.other_case']],
  [
    'an event is about another case',
    event('"tool_call"', (e) => {
      const artifact_ref = { ...e.input_artifacts![0]!, case_id: 'case-0002' };
      e.target = { target_type: 'artifact', name: 'x', artifact_ref };
    }),
    ['bundle.other_case'],
  ],
  [
    'an event has other pins',
    event('"tool_call"', (e) => (e.policy_versions.roles = '9'.repeat(40))),
    ['bundle.event_differs'],
  ],
  [
    'an event has another correlation',
    event('"tool_call"', (e) => (e.correlation_id = 'cor_9')),
    ['bundle.event_differs'],
  ],
  ['an event has another root', event('"tool_call"', (e) => (e.root_run_id = SECOND)), ['bundle.event_differs']],
  ['an event tells another end', event('"completed"', (e) => (e.outcome_reason = 'failed:X')), ['bundle.run_differs']],
  [
    'an event was at another time',
    event('"completed"', (e) => (e.timestamp_utc = e.timestamp_utc.replace('2026', '2027'))),
    ['bundle.run_differs'],
  ],
  [
    'an event refers to more',
    event('"tool_call"', (e) => void e.input_artifacts!.push({ ...e.input_artifacts![0]!, artifact_id: 'sha256:y' })),
    ['bundle.run_differs'],
  ],
  [
    'an event has an outcome that there is not',
    event('"tool_call"', (e) => Reflect.set(e, 'outcome', 'maybe')),
    ['bundle.schema'],
  ],
  ['an event is a number', lines(AUDIT, (l) => l.with(0, '7')), ['bundle.schema']],
  ['an event is no JSON', lines(AUDIT, (l) => l.with(0, notLast(l[0]!))), ['bundle.json_malformed']],
  [
    'an event has a key twice',
    lines(AUDIT, (l) => l.with(0, `{"outcome":"deny",${l[0]!.slice(1)}`)),
    ['bundle.json_malformed'],
  ],
  [
    'an event has a prototype',
    lines(AUDIT, (l) => l.with(0, `{"__proto__":{"outcome":"deny"},${l[0]!.slice(1)}`)),
    ['bundle.json_malformed'],
  ],
  ['an event is deep', lines(AUDIT, (l) => l.with(0, '['.repeat(10_000))), ['bundle.json_malformed']],
  [
    'an event has too many values',
    lines(AUDIT, (l) => l.with(0, `[${'[],'.repeat(BUNDLE_LIMITS.line_groups_max)}0]`)),
    ['bundle.limit'],
  ],
  [
    'an event is huge',
    lines(AUDIT, (l) => l.with(0, ' '.repeat(BUNDLE_LIMITS.line_characters_max + 1))),
    ['bundle.events_differ', 'bundle.limit'],
  ],
  ['an event has white space', lines(AUDIT, (l) => l.with(0, `${l[0]!} `)), ['bundle.json_not_canonical']],
  ['a run has white space', lines(RUNS, (l) => l.with(0, `${l[0]!} `)), ['bundle.json_not_canonical']],
  ['an empty line', lines(AUDIT, (l) => l.toSpliced(1, 0, '')), ['bundle.events_differ', 'bundle.json_malformed']],
  ['the last line has no end', text(AUDIT, notLast), ['bundle.json_not_canonical']],
  [
    'lines that end with CR and LF',
    text(AUDIT, (t) => t.replaceAll('\n', '\r\n')),
    ['bundle.events_differ', 'bundle.json_not_canonical'],
  ],
  ['a byte order mark', text(AUDIT, (t) => `\ufeff${t}`), ['bundle.json_not_canonical']],
  [
    'bytes that are not UTF-8',
    (files) => ({ ...files, [RUNS]: Buffer.concat([Buffer.from([0xff]), files[RUNS]!]) }),
    ['bundle.event_run_unknown', 'bundle.json_not_canonical', 'bundle.runs_differ'],
  ],
];

describe('S4-77: a bundle that is a good bag is looked at further', () => {
  test.each(CASES)('%s', async (_title, change, broken) => {
    const report = await check(sealed(change(good)));
    expect(rules(report)).toEqual([...broken].sort());
    expect(report.valid).toBe(broken.every((rule) => BUNDLE_RULES[rule] === 'warning'));
    expect(report.findings.filter(({ rule_id }) => rule_id in BAG_RULES)).toEqual([]);
  });
});

describe('RFC 8493: first of all it is a bag', () => {
  test.each(['data/artifacts', AUDIT, RUNS, MANIFEST, 'data/policies', 'data/machines', 'bag-info.txt'])(
    'a byte of %s that was changed is found by its digests',
    async (start) => {
      const path = Object.keys(good).find((name) => name.startsWith(start))!;
      const content = Buffer.from(good[path]!);
      content[3] = content[3]! ^ 1;
      const report = await check({ ...good, [path]: content });
      expect(report.valid).toBe(false);
      expect(rules(report)).toEqual(
        expect.arrayContaining([path === 'bag-info.txt' ? 'tag.digest_mismatch' : 'payload.digest_mismatch']),
      );
    },
  );

  test('a bag that does not say that it is a bundle is judged as a bag only', async () => {
    const plain = sealed(info('Turnpike-Bundle: 1\n', '')(bytes('data/more.txt', 'x')(good)));
    expect(await check(plain)).toMatchObject({ valid: true, findings: [], bundle: null });
    const empty = { 'bagit.txt': good['bagit.txt']!, 'data/a': Buffer.from('a') };
    expect(await check(empty)).toMatchObject({ valid: false, bundle: null });
  });

  test('a bundle without SHA-256 has nothing that vouches for it', async () => {
    const weak = Object.fromEntries(
      Object.entries(sealed(good)).filter(([path]) => !path.endsWith('manifest-sha256.txt')),
    );
    const report = await check(weak);
    expect(rules(report)).toEqual(expect.arrayContaining(['bundle.file_missing', 'bundle.artifact_differs']));
    expect(report.valid).toBe(false);
  });
});

describe('hostile bundles', () => {
  test('what is another file when it is read again is found', async () => {
    for (const path of [MANIFEST, RUNS, AUDIT]) {
      const files = inMemory(good);
      const reads = new Map<string, number>();
      const read = (name: string) => {
        reads.set(name, (reads.get(name) ?? 0) + 1);
        const again = name === path && reads.get(name)! > 1;
        return again
          ? inMemory({ [name]: Buffer.from(good[name]!.toString().replace('v1', 'v2')) }).read(name)
          : files.read(name);
      };
      const report = await verifyBundle({ ...files, read });
      expect(rules(report)).toContain('bundle.file_changed');
      expect(report.valid).toBe(false);
    }
  });

  test('what cannot be read again, or goes on without an end, is a finding', async () => {
    const files = inMemory(good);
    let reads = 0;
    const failing = async function* (path: string) {
      if (path === AUDIT && (reads += 1) > 1) throw new BagError({ code: 'BAG_HOSTILE', message: 'gone' });
      yield* files.read(path);
    };
    expect(rules(await verifyBundle({ ...files, read: failing }))).toEqual([
      'bundle.events_differ',
      'bundle.file_changed',
    ]);
    reads = 0;
    const endless = async function* (path: string) {
      yield* files.read(path);
      for (reads += path === RUNS ? 1 : 0; path === RUNS && reads > 1;)
        yield await Promise.resolve(Buffer.alloc(1_000, 32));
    };
    expect(rules(await verifyBundle({ ...files, read: endless }))).toContain('bundle.file_changed');
  });

  test('findings are bounded, and their messages, too', async () => {
    const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`data/more/${i}`, Buffer.from('')]));
    const report = await check(sealed({ ...good, ...many }));
    expect(report.findings.length).toBe(BUNDLE_LIMITS.findings_max);
    expect(report.findings_dropped).toBe(500);
    expect(report.valid).toBe(false);
    const long = await check(
      sealed(
        all(
          event('"tool_call"', (e) => (e.run_id = `run_${'x'.repeat(110)}`)),
          manifest(({ contents }) => (contents.artifacts[0]!.artifact_id = 'x'.repeat(120))),
        )(good),
      ),
    );
    for (const { message } of long.findings) expect(message.length).toBeLessThan(300);
  });

  test('a run whose events refer to more than is compared', async () => {
    const refs = Array.from({ length: 64 }, (_, i) => ({
      artifact_id: `sha256:${i}`,
      artifact_kind: 'result',
      hash_sha256: String(i).padStart(64, '0'),
    }));
    const ids = Array.from({ length: 129 }, (_, i) => `${TREE}:${1_000 + i}`);
    const more = lines(AUDIT, (l) => {
      const last = JSON.parse(l.find((line) => line.includes('"tool_call"'))!) as AuditEvent;
      const events = ids.map((event_id, i) => ({ ...last, event_id, sequence: 1_000 + i, output_artifacts: refs }));
      return [...l, ...events.map(canonicalJson)];
    });
    const named = manifest((m) => m.audit!.audit_event_ids.push(...ids));
    expect(rules(await check(sealed(all(more, named)(good))))).toEqual(['bundle.limit']);
  });

  test('random changes of bytes never throw; in a manifest they are always found, elsewhere nearly always', async () => {
    let seed = 7;
    const next = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const paths = [MANIFEST, RUNS, AUDIT, 'bag-info.txt'];
    const found: number[] = [];
    for (let i = 0; i < sized(60, 150); i += 1) {
      const path = paths[next(paths.length)]!;
      const content = Buffer.from(good[path]!);
      const from = next(content.length);
      const changed = [
        () => content.fill(next(256), from, from + 1 + next(4)),
        () => content.subarray(0, from),
        () => Buffer.concat([content.subarray(0, from), content]),
        () => Buffer.concat([content.subarray(0, from), content.subarray(from + 1 + next(20))]),
      ][next(4)]!();
      if (changed.equals(good[path]!)) continue;
      const report = await check(sealed({ ...good, [path]: Buffer.from(changed) }));
      // What only a person could know, such as the name of an actor, is nobody's to hold against anything.
      if (path === MANIFEST) expect({ i, valid: report.valid }).toEqual({ i, valid: false });
      if (path === RUNS || path === AUDIT) found.push(report.valid ? 0 : 1);
    }
    expect(found.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(found.length * 0.9);
  });
});

test('every rule is broken by some case', () => {
  const broken = new Set<string>([...CASES.flatMap(([, , found]) => found), 'bundle.file_changed', ...RULES_OF_PROOFS]);
  expect([...broken].sort()).toEqual(Object.keys(BUNDLE_RULES).sort());
});
