// The work of a session belongs to its case: exports, labels and the check for embedded text include it.

import { afterEach, describe, expect, test } from '@jest/globals';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import type { ExportBundle } from '../../../src/core/contract/evidence/export-bundle.js';
import type { RunRecord } from '../../../src/core/contract/run/run-record.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { SessionAnswer } from '../../../src/features/sessions/contract/session-answer.js';
import type { SessionSpec } from '../../../src/features/sessions/contract/session-spec.js';
import { noteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { openEvidence, verifyEvidence } from '../../../src/runtime/ledger/open-evidence.js';
import { writeEvidence } from '../../../src/features/evidence/write-evidence.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { readLedgerSigner } from '../../../src/home/ledger-key.js';
import { requireSignedHead } from '../../../src/runtime/ledger/ledger-proofs.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';
import { filesOf, verified } from '../../features/exports/material.js';

let bench: Bench;
afterEach(() => bench.close());

const CASE = 'case-local';
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: CASE } as const;
const MAINTAINER = { actor: 'anna', role: 'maintainer' } as const;
const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;
const TEXT = 'The tenant, Mr Ambrosius Feldhase of Aldgate, has paid no rent since March of last year.';

const SPEC: SessionSpec = {
  spec_version: 1,
  id: 'spec-a',
  title: 'One fact and one check',
  phases: [
    {
      id: 'p1',
      title: 'One',
      tasks: [
        { id: 't1', title: 'First', instruction: 'Write it.' },
        { id: 't2', type: 'verify', title: 'Check', command: ['node', '--version'], depends_on: ['t1'] },
      ],
    },
  ],
};

const SERVED =
  '    scope: { requires: [case_id, run_id], prohibits: [] }\n    audit: { required: true, level: full }\n';
const readsOtherCases: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  return name === 'lanes' ? edited.replace(SERVED, `${SERVED}    cross_case_reads: true\n`) : edited;
};

async function open(edit = serviceEdit): Promise<void> {
  const { tools, targets } = service();
  bench = await Bench.open({ edit, tools, targets });
  mkdirSync(join(bench.home, 'sandbox', CASE), { recursive: true });
}

const stepOf = ({ data }: SessionAnswer) => {
  const step = data?.next_step;
  if (data === null || step === null || step === undefined) throw new Error('the session has no step');
  return step;
};

/** Starts a session whose agent submits these proposals in its first step. */
async function startSession(...acts: readonly [action: string, args: object][]): Promise<SessionAnswer> {
  const options = { case: CASE, by: MAINTAINER, lane: CASE_AGENT.lane, agentRole: CASE_AGENT.role };
  const { data } = await bench.turnpike.sessions.start({ ...options, spec: SPEC, stopOnPhaseCompletion: false });
  const answer = await bench.turnpike.sessions.next(data?.session_id ?? '', {}, RUNNER);
  for (const [action, args] of acts) {
    const response = await bench.turnpike.submit(stepOf(answer).run_id ?? '', JSON.stringify(proposal(action, args)));
    expect(response).toMatchObject({ outcome: 'SUCCESS' });
  }
  return answer;
}

/** Reports the first step, which lets the session run its verification. */
async function report(answer: SessionAnswer): Promise<SessionAnswer> {
  const { step_id, type, step_proof, task_id } = stepOf(answer);
  const last_step_result = { step_id, step_type: type, outcome: 'success', step_proof, task_id };
  return bench.turnpike.sessions.next(answer.data?.session_id ?? '', { last_step_result }, RUNNER);
}

const FACT = ['WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1', text: TEXT } }] as const;

async function promoted(record: { readonly id: string; readonly text: string }): Promise<string> {
  const run = await bench.turnpike.promote({ ...ANNA, ticket: 'T-17', target: 'shared_playbooks', record });
  const { state, reason } = await run.finished;
  return `${state} ${reason}`;
}

/** The verdict on the evidence bundle of the closed home. */
async function evidenceVerdict() {
  const home = homePaths(bench.home);
  const { store, externalHeadStore } = openHome(home, { readOnly: true });
  const lines: string[] = [];
  try {
    const head = requireSignedHead(await externalHeadStore.read());
    const signer = readLedgerSigner(home.ledgerKey);
    if (signer === null) throw new Error('the home has no key');
    await writeEvidence(store, head, signer, (line) => Promise.resolve(void lines.push(line)));
  } finally {
    await store.close();
  }
  const path = join(bench.folder, 'evidence');
  writeFileSync(path, lines.join(''));
  const file = await openLineFile(path);
  const key = noteVerifier(readFileSync(home.ledgerKey.publicKey, 'utf8').trim());
  const verdict = await verifyEvidence(await openEvidence(file, key));
  await file.close();
  return verdict;
}

const recordsIn = (bytes: Buffer | undefined): readonly RunRecord[] =>
  (bytes?.toString() ?? '')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as RunRecord);

describe('C57 S4-76 S4-77: an export includes the sessions of its case', () => {
  test('its bag verifies and has their content, policies, and the records and events of all their runs', async () => {
    await open();
    const answer = await startSession([...FACT]);
    const session_id = answer.data?.session_id ?? '';
    await report(answer);
    const destination = join(bench.folder, 'bag');
    const run = await bench.turnpike.export({ ...ANNA, reason: 'discovery request 4', destination });
    expect(await run.finished).toMatchObject({ state: 'completed' });

    const files = filesOf(destination);
    const entries = (await bench.entries()).filter(({ tree_id }) => tree_id === session_id);
    const created = entries.flatMap(({ type, body }) => (type === 'run_created' ? [body.run_id] : []));
    expect(created).toEqual(expect.arrayContaining([`${session_id}.1`, `${session_id}.1.1`, `${session_id}.1.1.1`]));
    const records = recordsIn(files['data/runs.jsonl']);
    const own = records.filter(({ run_id }) => run_id.startsWith(session_id));
    expect(own.map(({ run_id }) => run_id).sort()).toEqual([...created].sort());
    // An activation is the root of its runs, below the session.
    for (const record of own) expect(record.root_run_id).toBe(`${session_id}.1`);
    const events = entries.flatMap(({ type, body }) => (type === 'audit_event' ? [body.event_id] : []));
    const manifest = JSON.parse(files['data/manifest.json']?.toString() ?? '') as ExportBundle;
    expect(manifest.audit?.audit_event_ids).toEqual(expect.arrayContaining(events));
    const opening = entries[0]?.body as unknown as Record<'spec' | 'machines', { readonly hash_sha256: string }>;
    expect(files[`data/artifacts/${opening.spec.hash_sha256}`]).toBeDefined();
    expect(files[`data/machines/${opening.machines.hash_sha256}.json`]).toBeDefined();
    const contents = Object.entries(files).filter(([path]) => path.startsWith('data/artifacts/'));
    expect(contents.some(([, bytes]) => bytes.includes(TEXT))).toBe(true);
    for (const [path, bytes] of contents) expect(path).toBe(`data/artifacts/${sha256(bytes)}`);
    expect(await verified(destination)).toMatchObject({ valid: true, findings: [] });
    await bench.turnpike.close();
    expect(await evidenceVerdict()).toMatchObject({ ok: true });
  });
});

describe('S4-84: the label of a case includes what its sessions have read', () => {
  test('a promotion is denied if the agent of a session has read another case', async () => {
    await open(readsOtherCases);
    await startSession(['READ_RECORDS', { target: 'facts', case_id: 'case-other' }]);
    expect(await promoted({ id: 'p-1', text: 'Ask for the lease first.' })).toBe('denied platform.label_other_case');
  });

  test('a session that reads its own case and runs a check does not prevent the promotion', async () => {
    await open(readsOtherCases);
    await report(await startSession([...FACT], ['READ_RECORDS', { target: 'facts' }]));
    expect(await promoted({ id: 'p-1', text: 'Ask for the lease first.' })).toBe('completed completed');
  });
});

test("S4-73: a promotion that repeats a passage of a session's work is denied", async () => {
  await open();
  await startSession([...FACT]);
  expect(await promoted({ id: 'p-1', text: `Note: ${TEXT}` })).toBe('denied prohibition.raw_case_text');
});
