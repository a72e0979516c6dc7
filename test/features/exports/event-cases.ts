// Faults in the events of a bag.

import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { EXPORT_BAG_LIMITS } from '../../../src/features/exports/bag-format.js';
import { RUNS, AUDIT, manifest, lines, event, text, all, swapped, notLast, type BundleCase } from './bundle-changes.js';
import { TREE, SECOND } from './material.js';

export const EVENT_CASES: readonly BundleCase[] = [
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
  [
    'an event has a repeated key',
    lines(AUDIT, (l) => l.with(0, `{"outcome":"deny",${l[0]!.slice(1)}`)),
    ['bundle.json_malformed'],
  ],
  [
    'an event has a prototype',
    lines(AUDIT, (l) => l.with(0, `{"__proto__":{"outcome":"deny"},${l[0]!.slice(1)}`)),
    ['bundle.json_malformed'],
  ],
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
