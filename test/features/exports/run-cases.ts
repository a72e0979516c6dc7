// Faults in the runs of a bag.

import { RUNS, AUDIT, without, manifest, lines, run, all, swapped, type BundleCase } from './bundle-changes.js';
import { TREE, SECOND } from './material.js';

export const RUN_CASES: readonly BundleCase[] = [
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
];
