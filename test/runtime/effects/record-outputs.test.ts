// S4-41, S4-43, S4-61, C91: every record that is written is an output, by reference, wherever outputs are named.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { type ArtifactRef } from '../../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { WRITE_MODES } from '../../../src/core/contract/policy/lanes.js';
import { defineTarget } from '../../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

/** Each table of the contract and one of a service, with the kind of its records. */
const KINDS: readonly (readonly [target: string, kind: string])[] = [
  ['transcripts', 'transcript'],
  ['interview_notes', 'interview_notes'],
  ['entities', 'entity'],
  ['facts', 'fact'],
  ['evidence_map', 'evidence_map'],
  ['coa_map', 'coa_map'],
  ['invoices', 'invoices'],
];
const NAMES = KINDS.map(([target]) => target);

const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
  if (name === 'lanes') {
    const writes = NAMES.flatMap((table) => WRITE_MODES.map((mode) => `        - { table: ${table}, mode: ${mode} }`));
    return `${text}
  - lane_id: RECORDS
    purpose: Every table.
    allowed_callers: { roles: [RECORDER] }
    allowed_actions:
      writes:
${writes.join('\n')}
    scope: { requires: [case_id, run_id], prohibits: [shared_knowledge_write] }
    audit: { required: true, level: full }
`;
  }
  if (name === 'roles') {
    return `${text}
  - role_id: RECORDER
    description: It writes records.
    class: agent
    privileges: { lanes: [RECORDS] }
`;
  }
  return text.replace('  - action: CREATE_DIRECTORY', '  - action: CREATE_DIRECTORY\n  - action: WRITE_RECORD');
};
const targets = NAMES.map((name) =>
  defineTarget({
    name,
    record: Type.Object({ id: Type.String(), text: Type.String() }, { additionalProperties: false }),
    key: ['id'],
    modes: [...WRITE_MODES],
    ...(name === 'facts' ? { confidentiality: ['contains_pii'] as const } : {}),
  }),
);

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.open({ edit, targets });
});
afterAll(() => bench.close());

/** The same content goes into every table: the references still differ. */
const record = (mode: string) => ({ id: mode, text: 'The car was red.' });

/** Writes a record, and returns the outputs in each place that names outputs. */
async function write(writes: readonly (readonly [target: string, mode: string])[]) {
  const agent = await bench.turnpike.startAgent({ lane: 'RECORDS', role: 'RECORDER' });
  for (const [target, mode] of writes) {
    const raw = JSON.stringify(proposal('WRITE_RECORD', { target, mode, record: record(mode) }));
    expect(await agent.submit(raw)).toMatchObject({ outcome: 'SUCCESS' });
  }
  await agent.end();
  const entries = (await bench.entries()).filter(({ tree_id }) => tree_id === agent.root_run_id);
  const audit = entries.flatMap(({ type, body }) => (type === 'audit_event' ? [body] : []));
  const ofRun = async (run_id: string) => (await bench.turnpike.ledger.run(run_id))?.outputs.artifact_refs ?? [];
  const ofEnd = (run_id: string) =>
    audit.filter((event) => event.run_id === run_id && event.outcome_reason?.startsWith('completed'))[0]
      ?.output_artifacts ?? [];
  const written = audit.filter(({ action_type }) => action_type === 'db_write');
  return {
    payloads: entries.flatMap(({ type, body }) =>
      type === 'input' && body.kind === 'proposal' ? [body.payload.artifact_id] : [],
    ),
    'event of the write': written.flatMap(({ output_artifacts = [] }) => output_artifacts),
    'run of the write': (await Promise.all(written.map(({ run_id }) => ofRun(run_id)))).flat(),
    'agent run': await ofRun(agent.run_id),
    'end of the agent run': ofEnd(agent.run_id),
    orchestrator: await ofRun(agent.root_run_id),
    'end of the orchestrator': ofEnd(agent.root_run_id),
  };
}

const expected = (target: string, kind: string, mode: string, payload: string | undefined): ArtifactRef => {
  const text = canonicalJson(record(mode));
  return {
    artifact_id: `record:${sha256(canonicalJson([target, record(mode)]))}`,
    artifact_kind: kind,
    hash_sha256: sha256(text),
    hash_source: 'normalized_json',
    byte_size: Buffer.byteLength(text),
    scope: 'case',
    case_id: 'case-local',
    lineage: { derived_from: payload === undefined ? [] : [payload], transformation: 'args.record' },
    ...(target === 'facts' ? { confidentiality: { contains_pii: true } } : {}),
  };
};

describe('S4-41 S4-43 S4-61: a record that is written', () => {
  const all = KINDS.flatMap(([target, kind]) => WRITE_MODES.map((mode) => [target, kind, mode] as const));

  test.each(all)('%s, as %s, %s: is an output in every place', async (target, kind, mode) => {
    const { payloads, ...places } = await write([[target, mode]]);
    const ref = expected(target, kind, mode, payloads[0]);
    expect(places).toEqual(Object.fromEntries(Object.keys(places).map((place) => [place, [ref]])));
    expect(Object.keys(places)).toHaveLength(6);
  });

  test('is named with the others, though all have the same content', async () => {
    const writes = KINDS.map(([target]) => [target, 'upsert'] as const);
    const { payloads, ...places } = await write(writes);
    const refs = KINDS.map(([target, kind], at) => expected(target, kind, 'upsert', payloads[at]));
    expect(places).toEqual(Object.fromEntries(Object.keys(places).map((place) => [place, refs])));
  });
});
