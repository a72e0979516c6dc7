// Goal: what the schemas of the contract reject, and that the published JSON Schema rejects the same. Method: one valid
// instance of every document, and rows that change one member of it. Every row is validated by the TypeBox schema that
// the code uses and by the published YAML file.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Compile } from 'typebox/compile';
import { Compile as CompileJsonSchema } from 'typebox/schema';
import { SCHEMA_DOCUMENTS } from '../../../src/published/schema-documents.js';
import { readStrictYaml } from '../../../src/core/policy/files/strict-yaml.js';
import { DOCUMENTS, GIT_SHA, HASH } from '../../fixtures/documents.js';
import { CONTRACT_DIR } from '../../fixtures/shipped-policy.js';

/** The verdicts of the code's schema and of the published one, which must agree. */
function verdicts(name: string): (instance: unknown) => readonly [boolean, boolean] {
  const ours = Compile(SCHEMA_DOCUMENTS.find((document) => document.name === name)!.schema);
  const text = readFileSync(join(CONTRACT_DIR, 'schemas', `${name}.schema.yaml`));
  const { document } = readStrictYaml(new Uint8Array(text), { bytes_max: 1 << 20, parts_max: 100_000 });
  const json = JSON.parse(JSON.stringify(document!.data)) as object;
  const published = CompileJsonSchema(json);
  return (instance) => [ours.Check(instance), published.Check(instance)];
}

const ABSENT = Symbol('left out');

/** A copy of the valid instance with the member at `path` replaced or removed. */
function changed(name: string, path: string, value: unknown): unknown {
  const copy = structuredClone(DOCUMENTS[name]) as object;
  const keys = path.split('.');
  const last = keys.pop()!;
  let holder: object = copy;
  for (const key of keys) holder = Reflect.get(holder, key) as object;
  if (value === ABSENT) Reflect.deleteProperty(holder, last);
  else Reflect.set(holder, last, value);
  return copy;
}

type Row = readonly [title: string, document: string, path: string, value: unknown];

const without = (title: string, document: string, ...members: string[]): readonly Row[] =>
  members.map((member) => [`${title} ${member} must be there`, document, member, ABSENT] as const);

const REFUSED: readonly Row[] = [
  ...without('S4-10', 'artifact_ref', 'artifact_id', 'artifact_kind', 'hash_sha256'),
  ['S4-10 a hash has 64 hex digits', 'artifact_ref', 'hash_sha256', HASH.slice(1)],
  ['S4-10 an artifact id has 3 characters or more', 'artifact_ref', 'artifact_id', 'ab'],
  ['S4-10 an artifact id has 120 characters or less', 'artifact_ref', 'artifact_id', 'a'.repeat(121)],
  ['S4-10 a kind has 2 characters or more', 'artifact_ref', 'artifact_kind', 'a'],
  ['S4-10 a scope is case, shared or system', 'artifact_ref', 'scope', 'public'],
  ['S4-10 a size is not negative', 'artifact_ref', 'byte_size', -1],
  ['S4-10 S4-58 S4-62 a reference holds no content', 'artifact_ref', 'content', 'the text itself'],
  ['S4-10 an input that is not a reference', 'run_record', 'inputs.artifact_refs.0', 'sha256:abc'],
  ['S4-10 an output that is not a reference', 'run_record', 'outputs.artifact_refs.0.hash_sha256', 'abc'],
  ['S4-10 an artifact of an event that is not a reference', 'audit_event', 'input_artifacts.0', 'sha256:abc'],
  ['S4-10 an artifact of a bundle that is not a reference', 'export_bundle', 'contents.artifacts.0', 'sha256:abc'],
  ['S4-58 an input is not text', 'run_record', 'inputs.text', 'privileged'],
  ['S4-62 an event has no place for content', 'audit_event', 'content', 'privileged'],
  ['S4-62 a step trace has no place for reasoning', 'step_trace', 'reasoning.text', 'privileged'],
  ['S4-62 a bundle has no place for content', 'export_bundle', 'contents.text', 'privileged'],
  ...without(
    'S4-51',
    'audit_event',
    ...[
      'event_id',
      'timestamp_utc',
      'action_type',
      'outcome',
      'actor',
      'contract_version',
      'policy_versions',
      'run_id',
    ],
  ),
  ['S4-51 C60 an actor has a type that there is', 'audit_event', 'actor.actor_type', 'robot'],
  ['S4-51 C60 an actor has an id', 'audit_event', 'actor.actor_id', ABSENT],
  ['S4-51 an event id has 8 characters or more', 'audit_event', 'event_id', 'run_r:7'],
  ['S4-51 a time is UTC', 'audit_event', 'timestamp_utc', '2026-01-31T12:00:00.000+01:00'],
  ['S4-52 a case id is an id', 'audit_event', 'case_id', '../other'],
  ['S4-52 a case id is not empty', 'audit_event', 'case_id', ''],
  ['S4-53 a lane id is an id', 'audit_event', 'lane_id', ''],
  ['C48 an audit outcome is not a state of a run', 'audit_event', 'outcome', 'denied'],
  ['S4-64 an error states whether it is retryable', 'audit_event', 'error.retryable', ABSENT],
  ['S4-64 an error message is bounded', 'audit_event', 'error.message', 'x'.repeat(2_001)],
  ['S4-03 a run has an id', 'run_record', 'run_id', ABSENT],
  ['S4-04 a run has its pins', 'run_record', 'policy_versions', ABSENT],
  ['S4-05 S4-26 a run is of contract v1', 'run_record', 'contract_version', 'v2'],
  ...['write_broker', 'policy_change', 'override', 'system', 'tool', ''].flatMap((kind): Row[] => [
    [`S4-11 C43 no run is of kind "${kind}"`, 'run_record', 'run_kind', kind],
    [`S4-11 C43 no run is created of kind "${kind}"`, 'run_created', 'run_kind', kind],
  ]),
  ...['failure', 'success', 'waiting', 'timeout', 'canceled', 'COMPLETED'].map((state): Row => [
    `S4-20 C41 C42 no run is in state "${state}"`,
    'run_record',
    'status',
    state,
  ]),
  ['S4-27 C45 a Git SHA is lower case', 'run_record', 'policy_versions.lanes', GIT_SHA.toUpperCase()],
  ['S4-28 C45 a Git SHA is not shortened', 'run_record', 'policy_versions.roles', GIT_SHA.slice(0, 12)],
  ['S4-27 no pin is a branch', 'run_record', 'policy_versions.lanes', 'main'],
  ['C44 the machines are never UNPINNED', 'run_record', 'policy_versions.machines', 'UNPINNED'],
  ['C59 a correlation id is there', 'run_record', 'correlation_id', ABSENT],
  ['C59 metadata are texts', 'run_record', 'metadata.retry_count', 1],
  ['C59 metadata are bounded', 'run_record', 'metadata.retry_reason', 'x'.repeat(401)],
  ['a bundle has at least one artifact', 'export_bundle', 'contents.artifacts', []],
  ['an approval has a known kind', 'export_bundle', 'approvals.0.approval_type', 'nobody'],
  ['S0-73 an outcome is one of four', 'response_detailed', 'outcome', 'PARTIAL'],
  ['S2-10 a decision is one of two', 'response_decision', 'decision', 'MAYBE'],
  ['S0-32 a proposal has five members', 'proposal', 'priority', 'high'],
  ['S0-33 S1-04 a schema version has three numbers', 'proposal', 'schema_version', '1.0'],
  ['C15 the placeholder 1.x.x is no version', 'proposal', 'schema_version', '1.x.x'],
  ['S1-07 C17 an id is a UUID', 'proposal', 'id', '123...'],
  ['S1-06 a reasoning is not empty', 'proposal', 'reasoning', ''],
  ['S1-09 THINK has no arguments', 'args_think', 'note', 'x'],
  ['S1-10 FINISH has a response', 'args_finish', 'response', ABSENT],
  ['S1-11 READ_FILE reads below /sandbox/', 'args_read_file', 'path', '/etc/passwd'],
  ['S1-12 LIST_FILES lists below /sandbox/', 'args_list_files', 'path', '/sandbox'],
  ['S1-13 WRITE_FILE writes below /sandbox/', 'args_write_file', 'path', 'sandbox/a.txt'],
  ['S1-14 WRITE_FILE writes something', 'args_write_file', 'content', ''],
  ['S1-15 CREATE_DIRECTORY creates below /sandbox/', 'args_create_directory', 'path', '/tmp/x'],
  ['S1-16 DELETE_FILE deletes below /sandbox/', 'args_delete_file', 'path', '/sandboxes/a.txt'],
  ['S1-17 RENAME_FILE renames from below /sandbox/', 'args_rename_file', 'source', '/a.txt'],
  ['S1-18 RENAME_FILE renames to below /sandbox/', 'args_rename_file', 'destination', '/a.txt'],
  ['C45 a pin manifest has full hashes', 'pins', 'files.0.sha256', HASH.slice(2)],
  ['C45 a pin manifest has Git ids', 'pins', 'files.0.git_sha', 'main'],
  ['an input has a kind that there is', 'input', 'kind', 'shutdown'],
  ['a spec is of a version that there is', 'session_spec', 'spec_version', 2],
  ['a spec has a phase', 'session_spec', 'phases', []],
  ['a phase has a task', 'session_spec', 'phases.0.tasks', []],
  ['the id of a task is no path', 'session_spec', 'phases.0.tasks.0.id', '../t1'],
  ['a task depends on another once', 'session_spec', 'phases.0.tasks.0.depends_on', ['t0', 't0']],
  ['C63 a task has an instruction', 'session_spec', 'phases.0.tasks.0.instruction', ABSENT],
  ['C63 the instruction of a task is not empty', 'session_spec', 'phases.0.tasks.0.instruction', ''],
  ['C68 a verification has a command', 'session_spec', 'phases.0.tasks.0.type', 'verify'],
  ['an implementation task has no command', 'session_spec', 'phases.0.tasks.0.command', ['node']],
  ['a gate has a known reviewer', 'session_spec', 'phases.0.gate', { reviewer: 'nobody' }],
];

const ACCEPTED: readonly Row[] = [
  ...['orchestrator', 'agent', 'tool_gateway', 'db_write', 'db_read', 'promotion', 'export'].map((kind): Row => [
    `S4-11 a run of kind ${kind}`,
    'run_record',
    'run_kind',
    kind,
  ]),
  ...['created', 'running', 'completed', 'failed', 'denied', 'cancelled'].map((state): Row => [
    `S4-20 a run in state ${state}`,
    'run_record',
    'status',
    state,
  ]),
  ['C44 an event of a run without a pin', 'audit_event', 'policy_versions.lanes', 'UNPINNED'],
  ['C45 a pin of a repository with SHA-256', 'run_record', 'policy_versions.lanes', HASH],
  ['S4-10 a hash in capitals', 'artifact_ref', 'hash_sha256', HASH.toUpperCase()],
  ['S4-52 an event without a case', 'audit_event', 'case_id', ABSENT],
  ['S4-53 an event without a lane', 'audit_event', 'lane_id', ABSENT],
  ['S4-54 a root, without a parent', 'run_record', 'parent_run_id', ABSENT],
  ['C58 an event of a read', 'audit_event', 'action_type', 'db_read'],
  ['C17 the nil UUID', 'proposal', 'id', '00000000-0000-0000-0000-000000000000'],
  ['C15 a version with leading zeros', 'proposal', 'schema_version', '1.00.0'],
  ['C33 FINISH with an empty response', 'args_finish', 'response', ''],
  ['C27 LIST_FILES of the root', 'args_list_files', 'path', '/sandbox/'],
  ['a task with an explicit type', 'session_spec', 'phases.0.tasks.0.type', 'implement'],
  ['a gate that a person is', 'session_spec', 'phases.0.gate', { reviewer: 'manual', required: false }],
];

const checks = new Map(SCHEMA_DOCUMENTS.map(({ name }) => [name, verdicts(name)]));

test('every document has a valid instance', () => {
  expect(Object.keys(DOCUMENTS).toSorted()).toEqual([...checks.keys()].toSorted());
});

test.each(Object.keys(DOCUMENTS))('S4-02 the valid instance of %s is accepted, by both', (name) => {
  expect(checks.get(name)!(DOCUMENTS[name])).toEqual([true, true]);
});

test.each(Object.keys(DOCUMENTS).filter((name) => name !== 'input'))('S1-02 %s rejects an unknown member', (name) => {
  expect(checks.get(name)!(changed(name, 'x_control', true))).toEqual([false, false]);
});

test.each(REFUSED)('%s', (_title, name, path, value) => {
  expect(checks.get(name)!(changed(name, path, value))).toEqual([false, false]);
});

describe('is accepted:', () => {
  test.each(ACCEPTED)('%s', (_title, name, path, value) => {
    expect(checks.get(name)!(changed(name, path, value))).toEqual([true, true]);
  });
});
