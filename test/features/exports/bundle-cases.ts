// Faults in the parts of a bag, and all rules that each violates.

import { sha256 } from '../../../src/core/contract/hash.js';
import {
  P1,
  P2,
  R3,
  LANES,
  MACHINES,
  without,
  manifest,
  bytes,
  text,
  all,
  swapped,
  type BundleCase,
  MANIFEST,
  info,
  notLast,
  RUNS,
  AUDIT,
  lines,
  run,
  event,
} from './bundle-changes.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { TREE, SECOND } from './material.js';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { canonicalJson } from '../../../src/core/contract/json.js';

export const BUNDLE_CASES: readonly BundleCase[] = [
  ['no change', (files) => files, []],

  // Artifacts, policies and machines.
  ['an artifact is changed', bytes(P1, 'other'), ['bundle.artifact_differs']],
  ['an artifact is changed, of the same size', text(P1, (t) => t.replace('here', 'hers')), ['bundle.artifact_differs']],
  ['an artifact is removed', (files) => without(files, P1), ['bundle.artifact_missing', 'bundle.reference_absent']],
  ['an unreferenced artifact is removed', (files) => without(files, R3), ['bundle.artifact_missing']],
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
    'a reference is repeated',
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
  ['a file is unexpected', bytes('data/more.txt', 'x'), ['bundle.file_unexpected']],
  ['a file has a malformed name', bytes(`data/artifacts/${'A'.repeat(64)}`, 'x'), ['bundle.file_unexpected']],
  ['a policy is changed', bytes(LANES, 'lanes: others'), ['bundle.policy_differs']],
  ['the machines are changed', bytes(MACHINES, '{}'), ['bundle.policy_differs']],
  ['the machines are removed', (files) => without(files, MACHINES), ['bundle.policy_missing']],

  // The manifest and bag-info.txt.
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

  // Runs.
  [
    'the runs are removed',
    (files) => without(files, RUNS),
    ['bundle.event_run_unknown', 'bundle.file_missing', 'bundle.runs_differ'],
  ],
  ['the events are removed', (files) => without(files, AUDIT), ['bundle.events_differ', 'bundle.file_missing']],
  ['a run is removed', lines(RUNS, (l) => l.toSpliced(2, 1)), ['bundle.event_run_unknown', 'bundle.runs_differ']],
  ['the last run is removed', lines(RUNS, (l) => l.slice(0, -1)), ['bundle.event_run_unknown', 'bundle.runs_differ']],
  ['a run is repeated', lines(RUNS, (l) => [...l, l[0]!]), ['bundle.runs_differ']],
  [
    'a run is repeated, in the manifest too',
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
    'a run has an unknown status',
    run('"completed"', (r) => Reflect.set(r, 'status', 'waiting')),
    ['bundle.event_run_unknown', 'bundle.schema'],
  ],
  [
    'a run without events has another status',
    run(`"run_id":"${TREE}.2"`, (r) => (r.status = 'running')),
    ['bundle.run_differs'],
  ],

  // Events.
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
  ['an event is repeated', lines(AUDIT, (l) => [...l, l[0]!]), ['bundle.events_differ']],
  [
    'an event is repeated, in the manifest too',
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
    'an event is of an unknown run',
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
  [
    'an event has another end reason',
    event('"completed"', (e) => (e.outcome_reason = 'failed:X')),
    ['bundle.run_differs'],
  ],
  [
    'an event has another time',
    event('"completed"', (e) => (e.timestamp_utc = e.timestamp_utc.replace('2026', '2027'))),
    ['bundle.run_differs'],
  ],
  [
    'an event has another reference',
    event('"tool_call"', (e) => void e.input_artifacts!.push({ ...e.input_artifacts![0]!, artifact_id: 'sha256:y' })),
    ['bundle.run_differs'],
  ],
  [
    'an event has an unknown outcome',
    event('"tool_call"', (e) => Reflect.set(e, 'outcome', 'maybe')),
    ['bundle.schema'],
  ],
  ['an event is a number', lines(AUDIT, (l) => l.with(0, '7')), ['bundle.schema']],
  ['an event is malformed JSON', lines(AUDIT, (l) => l.with(0, notLast(l[0]!))), ['bundle.json_malformed']],
  ['an event is deeply nested', lines(AUDIT, (l) => l.with(0, '['.repeat(10_000))), ['bundle.json_malformed']],
  [
    'an event has too many values',
    lines(AUDIT, (l) => l.with(0, `[${'[],'.repeat(EXPORT_BAG_LIMITS.line_groups_max)}0]`)),
    ['bundle.limit'],
  ],
  [
    'an event is huge',
    lines(AUDIT, (l) => l.with(0, ' '.repeat(EXPORT_BAG_LIMITS.line_characters_max + 1))),
    ['bundle.events_differ', 'bundle.limit'],
  ],
  ['an event has white space', lines(AUDIT, (l) => l.with(0, `${l[0]!} `)), ['bundle.json_not_canonical']],
  ['a run has white space', lines(RUNS, (l) => l.with(0, `${l[0]!} `)), ['bundle.json_not_canonical']],
  ['an empty line', lines(AUDIT, (l) => l.toSpliced(1, 0, '')), ['bundle.events_differ', 'bundle.json_malformed']],
  ['the last line has no line feed', text(AUDIT, notLast), ['bundle.json_not_canonical']],
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
  [
    'a run has an extra event, in the manifest too',
    all(
      lines(AUDIT, (l) => {
        const last = JSON.parse(l.find((line) => line.includes('"tool_call"'))!) as AuditEvent;
        return [...l, canonicalJson({ ...last, event_id: `${TREE}:999`, sequence: 999 })];
      }),
      manifest((m) => m.audit!.audit_event_ids.push(`${TREE}:999`)),
    ),
    ['bundle.run_differs'],
  ],
];
