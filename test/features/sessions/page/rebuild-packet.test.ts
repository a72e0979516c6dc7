// The packets that a session issued to its agent, as a home reports them, and as the page rebuilds them from readable
// materials.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type {
  Packet,
  PacketMaterial,
  SessionView,
} from '../../../../src/interfaces/inspector/contract/session-view.js';
import type { NextStep, SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import type { SessionSpec } from '../../../../src/features/sessions/contract/session-spec.js';
import { rebuildPacket } from '../../../../src/features/sessions/page/rebuild-packet.js';
import { homeInspectorSource } from '../../../../src/interfaces/inspector/ledger-inspector-source.js';
import type { InspectorSource } from '../../../../src/interfaces/inspector/inspector-source.js';
import { Bench } from '../../../fixtures/bench.js';
import { proposal } from '../../../fixtures/tree.js';

const ANNA = { actor: 'anna', role: 'maintainer' } as const;
const RUNNER = { actor: 'agent', role: 'autonomy_runner' } as const;
const REVIEW = `
  const found = { severity: 'error', message: 'It says nothing of Ada', file: 'a.md' };
  console.log(JSON.stringify({ findings: [found] }));
  process.exit(1);
`;
const SPEC: SessionSpec = {
  spec_version: 1,
  id: 'spec-p',
  title: 'Packets',
  phases: [
    {
      id: 'p1',
      title: 'One',
      tasks: [
        { id: 't1', title: 'First', instruction: 'Write a.md.', acceptance: ['It names Ada.'] },
        { id: 'v1', type: 'verify', title: 'It is there', command: ['true'] },
      ],
      gate: { reviewer: 'command', command: ['node', '-e', REVIEW] },
    },
  ],
};

let bench: Bench;
let source: InspectorSource;
let session_id = '';
/** The answers of the agent's session, in order. */
const handed: NextStep[] = [];

beforeAll(async () => {
  bench = await Bench.open();
  const { sessions, ledger, home } = bench.turnpike;
  source = homeInspectorSource(ledger, home);
  session_id = (await sessions.start({ spec: SPEC, case: 'case-p', by: ANNA })).data?.session_id ?? '';
  const next = async (last_step_result?: object): Promise<NextStep> => {
    const answer: SessionAnswer = await sessions.next(session_id, { last_step_result }, RUNNER);
    const step = answer.data?.next_step ?? null;
    if (step === null) throw new Error(JSON.stringify(answer));
    handed.push(step);
    return step;
  };
  const reportOf = ({ step_id, type, step_proof, task_id, phase_id }: NextStep) => {
    const of = task_id === null ? { phase_id } : { task_id };
    return { step_id, step_type: type, outcome: 'success', step_proof, ...of };
  };
  const task = await next();
  await bench.turnpike.submit(
    task.run_id ?? '',
    JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' })),
  );
  const verify = await next(reportOf(task));
  const { verification_receipt } = (await sessions.verify(session_id, { step_id: verify.step_id }, RUNNER)).data ?? {};
  const gate = await next({ ...reportOf(verify), verification_receipt });
  const { review } = (await sessions.review(session_id, { phase_id: 'p1', step_id: gate.step_id }, RUNNER)).data ?? {};
  await next({ ...reportOf(gate), gate_attempt_id: review?.gate_attempt_id });
  await sessions.pause(session_id, {}, ANNA);
  await sessions.resume(session_id, {}, ANNA);
}, 60_000);
afterAll(() => bench.close());

const viewed = async (at: number | null = null): Promise<SessionView> => {
  const view = await source.session(session_id, at);
  if (view === null) throw new Error('no session');
  return view;
};
const read = async ({ log_index, sha256: hash }: PacketMaterial): Promise<Uint8Array<ArrayBuffer> | null> => {
  const bytes = await source.artifact(log_index, hash);
  return bytes === null ? null : new Uint8Array(bytes);
};
const hash = (bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> =>
  Promise.resolve(new Uint8Array(Buffer.from(sha256(bytes), 'hex')));
const withoutProof = ({ step_proof, ...step }: NextStep): object => ({ ...step, issue: step_proof === '' ? 0 : 1 });

test('S3-07: lists every packet with its hash, the hash of its step proof, and its materials', async () => {
  const { packets, packets_before } = await viewed();
  expect(packets_before).toBe(0);
  expect(packets.map(({ type, task_id }) => [type, task_id])).toEqual([
    ['implement_task', 't1'],
    ['execute_verification', 'v1'],
    ['run_fidelity_gate', null],
    ['address_fidelity_feedback', null],
    // Resumed after the pause: the same step, in another run.
    ['address_fidelity_feedback', null],
  ]);
  for (const [place, step] of handed.entries()) {
    expect(packets[place]).toMatchObject({
      step_id: step.step_id,
      run_id: step.run_id,
      proof_sha256: sha256(step.step_proof ?? ''),
      sha256: sha256(canonicalJson(withoutProof(step))),
    });
  }
  expect(packets.map(({ materials }) => materials.map(({ kind }) => kind))).toEqual([
    ...Array<string[]>(3).fill(['session_spec']),
    ...Array<string[]>(2).fill(['session_spec', 'result']),
  ]);
  expect(JSON.stringify(packets)).not.toContain('Ada');
  for (const { step_proof = '?' } of handed) expect(JSON.stringify(packets)).not.toContain(step_proof);
});

test('lists only the packets that had been issued at an earlier position', async () => {
  const { packets } = await viewed();
  for (const [place, { log_index }] of packets.entries()) {
    expect((await viewed(log_index)).packets).toEqual(packets.slice(0, place + 1));
    expect((await viewed(log_index - 1)).packets).toEqual(packets.slice(0, place));
  }
});

test('the page rebuilds each packet from its materials word for word, and its hash confirms it', async () => {
  const { packets } = await viewed();
  for (const [place, step] of handed.entries()) {
    const made = await rebuildPacket(session_id, packets[place] as Packet, read, hash);
    expect(made).toEqual({ step: withoutProof(step), exact: true });
  }
  const last = packets.at(-1) as Packet;
  const again = await rebuildPacket(session_id, last, read, hash);
  expect(again).toMatchObject({ exact: true, step: { findings: [{ message: 'It says nothing of Ada' }] } });
  const other = { ...last, issue: 9 };
  expect(await rebuildPacket(session_id, other, read, hash)).toMatchObject({ exact: false });
  const missing = { ...last, phase_id: 'p9' };
  expect(await rebuildPacket(session_id, missing, read, hash)).toBeNull();
  expect(await rebuildPacket(session_id, last, () => Promise.resolve(null), hash)).toBeNull();
});

test('S4-62: withheld content stays withheld: hashes are listed, but neither texts nor titles', async () => {
  const edit = (name: string, text: string): string =>
    name === 'lanes' ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n') : text;
  const other = await Bench.open({ edit });
  const { sessions, ledger, home } = other.turnpike;
  const id = (await sessions.start({ spec: SPEC, case: 'case-k', by: ANNA })).data?.session_id ?? '';
  await sessions.next(id, {}, RUNNER);
  const looked = homeInspectorSource(ledger, home);
  const view = await looked.session(id, null);
  const [packet] = view?.packets ?? [];
  expect(packet?.materials).toMatchObject([{ kind: 'session_spec', withheld: 'lane', sha256: expect.any(String) }]);
  expect(packet?.sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(view?.phases[0]).toMatchObject({
    title: '',
    tasks: [
      { id: 't1', title: '' },
      { id: 'v1', title: '' },
    ],
  });
  const [material] = packet?.materials ?? [];
  expect(await looked.artifact(material?.log_index ?? 0, material?.sha256 ?? '')).toBeNull();
  await looked.close();
  await other.close();
}, 60_000);
