// The ledger of `npm start`: a session, an attack and both together, checked against the contract from outside.

import '../fixtures/features.js';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ArtifactRef } from '../../src/core/contract/artifact-ref.js';
import type { AuditEvent } from '../../src/core/contract/run/audit-event.js';
import type { Entry, RecordedInput } from '../../src/core/contract/run/entry.js';
import type { RunRecord } from '../../src/core/contract/run/run-record.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { Tree } from '../../src/kernel/tree.js';
import { findLifecycleFaults } from '../../src/kernel/replay/lifecycle-faults.js';
import { homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { contentBy } from '../fixtures/content.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';
import { built } from './built.js';
import { run } from './programs.js';
import { requireContent } from '../../src/core/ledger/require-content.js';

const folder = tempFolder('demo-ledger');
let reader: LedgerReader;
let close: () => Promise<void>;
const records: RunRecord[] = [];
const entries: Entry[] = [];
let events: readonly AuditEvent[];
let traces: readonly StepTrace[];

beforeAll(async () => {
  await built();
  expect(await run('docs/examples/start.mjs', [folder], ROOT)).toMatchObject({ status: 0 });
  const { store, externalHeadStore } = openHome(homePaths(join(folder, 'home')), { readOnly: true });
  reader = new LedgerReader(store, externalHeadStore);
  close = () => store.close();
  for await (const { root_run_id, runs } of reader.trees()) {
    records.push(...runs);
    for await (const entry of reader.entries(root_run_id)) entries.push(entry);
  }
  events = entries.flatMap((entry) => (entry.type === 'audit_event' ? [entry.body] : []));
  traces = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body] : []));
}, 300_000);

afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

const created = (): readonly Extract<Entry, { type: 'run_created' }>[] =>
  entries.filter((entry) => entry.type === 'run_created');
const eventsOf = (run_id: string): readonly AuditEvent[] => events.filter((event) => event.run_id === run_id);

describe('runs and events', () => {
  test('S4-06 S4-82 every event belongs to a run of its tree and carries the pins of that run', () => {
    const known = new Map(created().map(({ body }) => [body.run_id, body]));
    expect(events.length).toBeGreaterThan(500);
    for (const event of events) {
      const { policy_versions, contract_version, root_run_id } = known.get(event.run_id) ?? {};
      expect(event).toMatchObject({ policy_versions, contract_version, root_run_id });
    }
    expect(new Set(records.map(({ policy_versions }) => JSON.stringify(policy_versions))).size).toBe(1);
  });

  test('S4-20..S4-24 S4-44..S4-46 every run followed the lifecycle', () => {
    expect(findLifecycleFaults(entries)).toEqual([]);
  });

  test('S4-08 S4-43 S4-61 the record of a write lists its inputs and outputs by reference', () => {
    const writes = records.filter(
      (record) => record.run_name === 'sandbox.write_file' && record.status === 'completed',
    );
    expect(writes.length).toBeGreaterThan(10);
    for (const { inputs, outputs, started_at_utc, completed_at_utc } of writes) {
      expect(inputs.artifact_refs.map(({ artifact_kind }) => artifact_kind)).toEqual(['raw_payload']);
      expect(outputs.artifact_refs.map(({ artifact_kind }) => artifact_kind)).toEqual(['file_content']);
      expect([started_at_utc, completed_at_utc]).toEqual([expect.any(String), expect.any(String)]);
    }
  });

  test('S4-40 S4-41 S4-42 S4-60 an action has one event, with the hashes of request and response and its lane', () => {
    const acts = records.filter(
      ({ run_kind, status }) => /^(?:tool_gateway|db_write)$/.test(run_kind) && status === 'completed',
    );
    expect(acts.length).toBeGreaterThan(100);
    const answers = entries.flatMap((entry) =>
      entry.type === 'input' && entry.body.kind === 'result' ? [entry.body.result?.hash_sha256] : [],
    );
    for (const { run_id, run_kind, inputs } of acts) {
      const type = run_kind === 'db_write' ? 'db_write' : 'tool_call';
      const [act, ...more] = eventsOf(run_id).filter(({ action_type }) => action_type === type);
      expect(more).toEqual([]);
      expect(act).toMatchObject({ outcome: 'success', lane_id: 'SANDBOX_FILES', run_id });
      expect(act?.request_hash_sha256).toBe(inputs.parameters_hash_sha256);
      expect(act?.output_artifacts).toHaveLength(1);
      expect(answers).toContain(act?.response_hash_sha256);
    }
  });

  test('S4-38 a denied action has no event but its denial and its end', () => {
    const denied = records.filter(({ run_kind, status }) => run_kind === 'tool_gateway' && status === 'denied');
    expect(denied.length).toBe(19);
    for (const { run_id } of denied) {
      expect(eventsOf(run_id).map(({ action_type, outcome }) => `${action_type} ${outcome}`)).toEqual([
        'authz_decision deny',
        'system deny',
      ]);
    }
  });

  test('S4-59 S4-62 policies, machines, payloads and results are artifacts; no entry contains their text', async () => {
    const kinds = new Set<string>();
    // C80: of these only a prefix is stored.
    const tooLarge = new Set(
      entries.flatMap(({ type, body }) =>
        type === 'input' && body.kind === 'proposal' && body.prefix !== undefined ? [body.payload.hash_sha256] : [],
      ),
    );
    for (const reference of referencesIn(entries)) {
      kinds.add(reference.artifact_kind);
      if (reference.artifact_kind === 'file_content' || tooLarge.has(reference.hash_sha256)) continue;
      const bytes = await contentBy(reader, reference.hash_sha256);
      expect(bytes?.byteLength).toBe(reference.byte_size);
    }
    expect([...kinds].sort()).toEqual([
      'file_content',
      'machines',
      'policy',
      'raw_payload',
      'raw_payload_prefix',
      'result',
    ]);
    const text = JSON.stringify(entries);
    for (const words of [
      'The north wall of the bedroom',
      'First I look at what the case folder holds',
      'jay@google.com',
    ]) {
      expect(text).not.toContain(words);
    }
  });
});

describe('steps', () => {
  test('S2-09 S2-12 the trace of a rejected step has cause and rule, which its response does not', () => {
    const refused = traces.filter(({ outcome }) => outcome !== 'SUCCESS');
    expect(refused.length).toBe(65);
    expect(refused.filter(({ rule_id, phase_failed_at }) => rule_id === null || phase_failed_at === null)).toEqual([]);
    expect(new Set(refused.map(({ rule_id }) => rule_id)).size).toBeGreaterThan(15);
  });

  test('S0-16 with all times moved by a year, every step has the same outcome, reason and response', async () => {
    for await (const { root_run_id } of reader.trees()) {
      const tree = new Tree(root_run_id);
      const moved: string[] = [];
      for await (const stored of reader.tree(root_run_id)) {
        if (stored.type !== 'input') continue;
        const { body } = JSON.parse(stored.text) as { body: RecordedInput };
        const recorded = { ...body, time: body.time.replace(/^\d{4}/, (year) => String(Number(year) + 1)) };
        const { entries: said } = tree.decide({
          recorded,
          materials: requireContent(await reader.artifactsOf(stored)),
        });
        moved.push(...said.flatMap(({ entry }) => (entry.type === 'step_trace' ? [judgement(entry.body)] : [])));
      }
      const own = traces.filter(({ run_id }) => run_id.startsWith(`${root_run_id}.`));
      expect(moved).toEqual(own.map(judgement));
    }
  });
});

const judgement = ({ step_index, outcome, error_code, cause, rule_id, response_sha256 }: StepTrace): string =>
  [step_index, outcome, error_code, cause, rule_id, response_sha256].join(' ');

/** Every artifact reference anywhere in these entries. */
function* referencesIn(value: unknown): Iterable<ArtifactRef> {
  if (typeof value !== 'object' || value === null) return;
  if ('artifact_id' in value) yield value as ArtifactRef;
  for (const member of Object.values(value)) yield* referencesIn(member);
}
