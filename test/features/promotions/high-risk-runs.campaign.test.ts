// Promotions and exports with a real service (S4 §10), votes of people on both, and records in the ledger's own
// database: end to end, in a home on disk.

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openBagFolder } from '../../../src/features/exports/bag/bag-folder.js';
import { openBagZip } from '../../../src/features/exports/bag/bag-zip.js';
import { absentSandbox } from '../../../src/sandbox/files/absent-sandbox.js';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { sqlDatabase } from '../../../src/stores/records/sql-database.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { PendingApproval } from '../../../src/runtime/ledger/ledger-reader.js';
import type { ExportOptions, PromoteOptions } from '../../../src/runtime/high-risk-options.js';
import { noteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { defineTarget, defineTool } from '../../../src/runtime/effects/define-effects.js';
import { verifyExportBag } from '../../../src/features/exports/verify/verify-export-bag.js';
import { openTurnpike } from '../../../src/host/turnpike.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { proposal } from '../../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

/** Both kinds of runs need two people. */
const withApprovals: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  if (name !== 'actions') return edited;
  const rule = (subject: string): string =>
    `  - { for: ${subject}, approver_roles: [ATTORNEY_ADMIN], quorum: 2, expires_minutes: 5 }\n`;
  return `${edited}\napprovals:\n${rule('promotion')}${rule('export')}`;
};

const openService = (more: BenchOptions = {}): Promise<Bench> => {
  const { tools, targets } = service();
  return Bench.open({ edit: serviceEdit, tools, targets, ...more });
};
const open = async (more: BenchOptions = {}): Promise<Bench> => (bench = await openService(more));

/** A home for all tests of a group. */
function sharedBench(prepare?: (of: Bench) => Promise<unknown>): () => Bench {
  let shared: Bench;
  beforeAll(async () => {
    shared = await openService();
    await prepare?.(shared);
  });
  afterAll(() => shared.close());
  return () => shared;
}

/** As after a crash: the process is gone, and nothing was closed. */
async function reopened(of: Bench, more: BenchOptions = {}): Promise<Bench> {
  await of.turnpike.close();
  const { tools, targets } = service();
  bench = await Bench.reopen(of, { clock: of.clock, ids: nanoidIds(), tools, targets, ...more });
  return bench;
}

const insight = { id: 'p-1', text: 'Ask for the lease first.' };
const promotion = (over: Partial<PromoteOptions> = {}): PromoteOptions => ({
  actor: 'anna',
  role: 'ATTORNEY_ADMIN',
  case: 'case-local',
  ticket: 'T-17',
  target: 'shared_playbooks',
  record: insight,
  ...over,
});
const bundle = (of: Bench, over: Partial<ExportOptions> = {}): ExportOptions => ({
  actor: 'anna',
  role: 'ATTORNEY_ADMIN',
  case: 'case-local',
  reason: 'discovery request 4',
  destination: join(of.folder, 'bag'),
  ...over,
});
const ballot = (run: string, digest: string, actor: string, decision: 'approve' | 'reject' = 'approve') => ({
  run,
  digests: [digest],
  decision,
  actor,
  role: 'ATTORNEY_ADMIN',
});

async function audit(of: Bench, run_id: string): Promise<AuditEvent[]> {
  return (await of.entries()).flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.run_id === run_id ? [entry.body] : [],
  );
}
const say = ({ action_type, outcome, outcome_reason, target, authz }: AuditEvent): string =>
  [action_type, outcome, authz?.rule_id ?? outcome_reason ?? target?.operation].filter(Boolean).join(' ');

async function openApprovals(of: Bench): Promise<PendingApproval[]> {
  const found: PendingApproval[] = [];
  for await (const each of of.turnpike.ledger.approvals(new Date(of.clock.now()).toISOString())) found.push(each);
  return found;
}

async function work(of: Bench, action: string, args: object, options: object = {}) {
  const agent = await of.turnpike.startAgent({ ...CASE_AGENT, ...options });
  const response = await agent.submit(JSON.stringify(proposal(action, args)));
  await agent.end();
  return response;
}
const SERVED =
  '    scope: { requires: [case_id, run_id], prohibits: [] }\n    audit: { required: true, level: full }\n';
const readsOtherCases = (lanes: string): string => lanes.replace(SERVED, `${SERVED}    cross_case_reads: true\n`);
const closed = { additionalProperties: false } as const;
const plainTable = (name: string) => ({ name, record: Type.Object({ id: Type.String() }, closed), key: ['id'] });
const PLAIN_TOOL = { input: Type.Object({}, closed), output: Type.Object({}, closed), run: () => ({}) };
const rowsOf = async (of: Bench, target: string, options: object = {}) =>
  (await work(of, 'READ_RECORDS', { target }, options)) as unknown as { result: { records: unknown[] } };

describe('promotion', () => {
  test('S4-17 S4-49 S4-71 S4-72 S4-74: writes the record, and records its sources and target', async () => {
    const of = await open();
    await work(of, 'WRITE_RECORD', {
      target: 'facts',
      mode: 'append',
      record: { id: 'f-1', text: 'The lease is old.' },
    });
    const source = firstPayload(await of.entries());
    const run = await of.turnpike.promote(promotion({ sources: [source] }));
    expect(await run.finished).toEqual({ run_id: run.run_id, state: 'completed', reason: 'completed' });
    expect(run.digest).toBeNull();
    const events = await audit(of, run.run_id);
    expect(events.map(say)).toEqual([
      'authz_decision allow lane.granted',
      'system success running',
      'promotion success append',
      'system success completed',
    ]);
    const text = '{"id":"p-1","text":"Ask for the lease first."}';
    expect(events[2]).toMatchObject({
      lane_id: 'PROMOTE_SHARED_KNOWLEDGE',
      role_id: 'ATTORNEY_ADMIN',
      actor: { actor_type: 'human', actor_id: 'anna' },
      target: { target_type: 'table', name: 'shared_playbooks', operation: 'append' },
      output_artifacts: [
        {
          artifact_kind: 'sanitized_insight',
          hash_sha256: sha256(text),
          scope: 'shared',
          lineage: { derived_from: [`sha256:${source}`], transformation: 'promotion' },
        },
      ],
    });
    expect((await audit(of, `${run.run_id}.1`)).map(say)).toContain('db_write success append');
    expect((await rowsOf(of, 'shared_playbooks', { case: 'case-other' })).result.records).toEqual([insight]);
  });

  describe('that is denied writes nothing', () => {
    const text = 'The tenant, Mr Ambrosius Feldhase of Aldgate, has paid no rent since March of last year.';
    const shared = sharedBench((of) =>
      work(of, 'WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1', text } }),
    );

    test.each<[string, Partial<PromoteOptions>, string]>([
      ['S4-71 without a ticket', { ticket: ' ' }, 'scope.missing.promotion_ticket_id'],
      ['S4-72 in a role that the lane does not name', { role: 'MAPPING_AGENT' }, 'role.lane_not_granted'],
      ['S4-72 in the role of an agent', { role: 'CASE_AGENT' }, 'role.lane_not_granted'],
      ['an unknown role', { role: 'ROOT' }, 'role.unknown'],
      [
        'S4-73 with text of the case',
        {
          record: {
            id: 'x',
            text: 'Note: the tenant, Mr Ambrosius Feldhase of Aldgate, has paid no rent since March of last year.',
          },
        },
        'prohibition.raw_case_text',
      ],
      [
        'S4-73 with data that identifies a client',
        { confidentiality: ['contains_pii'] },
        'prohibition.client_identity',
      ],
      ['S4-73 with privileged notes', { confidentiality: ['contains_privileged'] }, 'prohibition.privileged_notes'],
      [
        'S4-85 to a table that is not shared',
        { target: 'facts', record: { id: 'f', text: 'x' } },
        'lane.write_not_allowed',
      ],
      ['to an unregistered table', { target: 'shared_heuristics' }, 'target.not_registered'],
      ['by upsert, which the lane does not list', { mode: 'upsert' }, 'target.mode_not_registered'],
    ])('%s', async (_what, over, rule_id) => {
      const of = shared();
      const run = await of.turnpike.promote(promotion(over));
      expect(await run.finished).toEqual({ run_id: run.run_id, state: 'denied', reason: rule_id });
      expect((await audit(of, run.run_id)).map(say)).toEqual([
        `authz_decision deny ${rule_id}`,
        `system deny denied:${rule_id}`,
      ]);
      expect((await rowsOf(of, 'shared_playbooks')).result.records).toEqual([]);
    });
  });

  describe('S4-84 S4-85: the last data that an agent has read counts, even without a later action', () => {
    const careful: NonNullable<BenchOptions['edit']> = (name, text) =>
      name === 'lanes'
        ? readsOtherCases(serviceEdit(name, text)).replace(
            'lane_id: PROMOTE_SHARED_KNOWLEDGE\n',
            '$&    refuses_labels: [contains_phi]\n',
          )
        : serviceEdit(name, text);
    const { targets } = service();
    const health = defineTarget({ ...plainTable('health'), confidentiality: ['contains_phi'] });
    const clinic = defineTool({ ...PLAIN_TOOL, name: 'mail.send', confidentiality: ['contains_phi'] });

    test.each<[string, string, object, string]>([
      ['another case', 'READ_RECORDS', { target: 'facts', case_id: 'case-other' }, 'denied platform.label_other_case'],
      ['its own case', 'READ_RECORDS', { target: 'facts' }, 'completed completed'],
      ['a table with confidential data', 'READ_RECORDS', { target: 'health' }, 'denied label.contains_phi'],
      ['a tool with confidential answers', 'CALL_TOOL', { tool: 'mail.send', input: {} }, 'denied label.contains_phi'],
      ['a denied table', 'READ_RECORDS', { target: 'secrets' }, 'completed completed'],
    ])('%s', async (_what, action, args, expected) => {
      const edit: typeof careful = (name, text) =>
        careful(name, text).replace('reads: [facts,', 'reads: [health, facts,');
      const of = await open({ edit, tools: [clinic], targets: [...targets, health] });
      await work(of, 'WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f', text: 'x' } });
      await work(of, action, args);
      const run = await of.turnpike.promote(promotion());
      const { state, reason } = await run.finished;
      expect(`${state} ${reason}`).toBe(expected);
    });
  });

  test('that is refused because the sandbox is elsewhere leaves no open root, or its case could not be erased', async () => {
    const of = await open({ sandbox: absentSandbox() });
    await expect(of.turnpike.promote(promotion())).rejects.toMatchObject({ code: 'VOLUME_ELSEWHERE' });
    await expect(of.turnpike.erase({ case: 'case-local', actor: 'anna' })).resolves.toBeDefined();
  });

  test('S4-85: an agent writes no shared knowledge in any lane', async () => {
    const of = await open();
    expect(
      await work(of, 'WRITE_RECORD', { target: 'shared_playbooks', mode: 'append', record: insight }),
    ).toMatchObject({ outcome: 'DENIED' });
    expect((await rowsOf(of, 'shared_playbooks')).result.records).toEqual([]);
  });
});

/** The SHA-256 of the first raw payload of the case. */
function firstPayload(entries: Awaited<ReturnType<Bench['entries']>>): string {
  const [first] = entries.flatMap(({ type, body }) => (type === 'input' && body.kind === 'proposal' ? [body] : []));
  return first!.payload.hash_sha256;
}

describe('export', () => {
  test.each(['folder', 'zip'] as const)(
    'S4-18 S4-50 S4-75 S4-76 S4-77 S4-79: makes a %s that verifies',
    async (format) => {
      const of = await open();
      await work(of, 'WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1', text: 'A fact.' } });
      const options = bundle(of, { format });
      const run = await of.turnpike.export(options);
      expect(await run.finished).toMatchObject({ state: 'completed' });
      const events = await audit(of, run.run_id);
      expect(events.map(say)).toEqual([
        'authz_decision allow lane.granted',
        'system success running',
        'export success authorize',
        'export success assemble',
        'export success finalize',
        'system success completed',
      ]);
      const [ref] = events[4]!.output_artifacts ?? [];
      expect(ref).toMatchObject({ artifact_kind: 'export_bundle', storage_locator: basename(options.destination) });
      const tree = await (format === 'zip' ? openBagZip : openBagFolder)(options.destination);
      const key = noteVerifier(readFileSync(join(of.home, 'keys/ledger.vkey'), 'utf8').trim());
      const report = await verifyExportBag(tree, key);
      await tree.close();
      expect(report.authentication).toMatchObject({ verdict: 'authenticated', why: null });
      expect(report).toMatchObject({ valid: true, bundle: { bundle_id: ref?.artifact_id } });
      expect((await of.turnpike.ledger.run(run.run_id))?.outputs.artifact_refs).toContainEqual(ref);
    },
  );

  test('S4-84: data read from another case while an export waits is not exported with it', async () => {
    const edit: NonNullable<BenchOptions['edit']> = (name, text) =>
      name === 'lanes' ? readsOtherCases(serviceEdit(name, text)) : withApprovals(name, text);
    const of = await open({ edit });
    const fact = { target: 'facts', mode: 'append', record: { id: 'f', text: 'Only of the other case.' } };
    await work(of, 'WRITE_RECORD', fact, { case: 'case-other' });
    await work(of, 'READ_RECORDS', { target: 'facts' });
    const waiting = async (name: string) => {
      const options = bundle(of, { destination: join(of.folder, name) });
      return { ...(await of.turnpike.export(options)), ...options };
    };
    const decided = async ({ run_id, digest, finished }: Awaited<ReturnType<typeof waiting>>) => {
      for (const actor of ['berta', 'carl']) await of.turnpike.approve(ballot(run_id, digest!, actor));
      return finished;
    };
    const [clean, spoilt] = [await waiting('clean'), await waiting('spoilt')];
    await work(of, 'READ_RECORDS', { target: 'entities' });
    expect(await decided(clean)).toMatchObject({ state: 'completed' });
    await work(of, 'READ_RECORDS', { target: 'facts', case_id: 'case-other' });
    expect(await decided(spoilt)).toMatchObject({ state: 'failed', reason: 'REFUSED' });
    expect(existsSync(spoilt.destination)).toBe(false);
    expect(await (await waiting('anew')).finished).toMatchObject({ reason: 'platform.label_other_case' });
  });

  test('S4-79: the bag names whether its creator acted as a person or as the system', async () => {
    const governed: BenchOptions['edit'] = (name, text) =>
      name === 'lanes'
        ? text.replace(/(lane_id: EXPORT_CASE_DATA[^]*?roles: \[)/, '$1GOVERNANCE_AGENT, ')
        : text.replace(/(role_id: GOVERNANCE_AGENT[^]*?lanes: \[)/, '$1EXPORT_CASE_DATA, ');
    const of = await open({ edit: (name, text) => governed(name, serviceEdit(name, text)) });
    await work(of, 'THINK', {});
    const madeBy = async (role: string): Promise<unknown> => {
      const options = bundle(of, { role, destination: join(of.folder, role) });
      expect(await (await of.turnpike.export(options)).finished).toMatchObject({ state: 'completed' });
      return JSON.parse(readFileSync(join(options.destination, 'data/manifest.json'), 'utf8'));
    };
    expect(await madeBy('GOVERNANCE_AGENT')).toMatchObject({ created_by: { actor_type: 'system', actor_id: 'anna' } });
    expect(await madeBy('ATTORNEY_ADMIN')).toMatchObject({ created_by: { actor_type: 'human', actor_id: 'anna' } });
  });

  describe('that is denied makes nothing', () => {
    const shared = sharedBench();

    test.each<[string, Partial<ExportOptions>, string]>([
      ['S4-75 in a role without permission', { role: 'GOVERNANCE_AGENT' }, 'role.lane_not_granted'],
      ['S4-75 in the role of an agent', { role: 'CASE_AGENT' }, 'role.lane_not_granted'],
      ['without a reason', { reason: '' }, 'scope.missing.export_reason'],
    ])('%s', async (_what, over, rule_id) => {
      const of = shared();
      const options = bundle(of, over);
      const run = await of.turnpike.export(options);
      expect(await run.finished).toMatchObject({ state: 'denied', reason: rule_id });
      expect(existsSync(options.destination)).toBe(false);
    });
  });
});

test.each([
  [true, { status: 'completed' }],
  [false, { status: 'failed', error: { error_code: 'INTERRUPTED' } }],
])('D8: a crash between start and outcome is settled by whether the bag exists (%j)', async (isThere, expected) => {
  const of = await open();
  await work(of, 'THINK', {});
  const options = bundle(of);
  const run = await of.turnpike.export(options);
  // The home as a crash would leave it while the bag is being assembled.
  const crashed = join(of.folder, 'crashed');
  cpSync(of.home, crashed, { recursive: true, filter: (path) => !path.endsWith('.sock') });
  await run.finished;
  if (!isThere) rmSync(options.destination, { recursive: true });
  const { tools, targets } = service();
  const policies = manifestPolicySource(of.contract);
  const log = winstonLog('silent');
  const where = { home: crashed, exports: of.folder };
  const again = await openTurnpike({ ...where, policies, clock: of.clock, ids: nanoidIds(), log, tools, targets });
  try {
    expect(again.recovery).toMatchObject({ settled: 1, damaged: 0 });
    expect(await again.ledger.run(run.run_id)).toMatchObject(expected);
    expect(await again.ledger.run(run.root_run_id)).toMatchObject({ status: expected.status });
    expect(await again.ledger.verify()).toMatchObject({ ok: true });
    expect(await again.replay()).toMatchObject({ ok: true });
  } finally {
    await again.close();
  }
});

describe('D7: votes of people', () => {
  test('a vote with an input id counts once, and a repeated one gets the same results', async () => {
    const of = await open({ edit: withApprovals });
    const { run_id, digest } = await of.turnpike.export(bundle(of));
    const vote = { ...ballot(run_id, digest ?? '', 'berta'), inputId: 'vote-1' };
    const results = await of.turnpike.approve(vote);
    expect(results).toEqual([{ digest, counted: true, rule_id: 'approval.accepted' }]);
    await of.turnpike.approve(ballot(run_id, digest ?? '', 'anna'));
    expect(await of.turnpike.approve(vote)).toEqual(results);
    await expect(of.turnpike.approve({ ...vote, actor: 'carl' })).rejects.toThrow('inputId: another decision');
    await expect(of.turnpike.approve({ ...vote, inputId: 'two words' })).rejects.toThrow('inputId: printable');
    expect(await openApprovals(of)).toMatchObject([{ votes: [{ actor_id: 'berta' }] }]);
  });

  test('S4-78: work after a restart, and the bag names the voters', async () => {
    let of = await open({ edit: withApprovals });
    const options = bundle(of);
    const run = await of.turnpike.export(options);
    const { run_id } = run;
    const digest = run.digest!;
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(await of.turnpike.approve(ballot(run_id, digest, 'berta'))).toMatchObject([
      { rule_id: 'approval.accepted' },
    ]);
    of = await reopened(of);
    expect(existsSync(options.destination)).toBe(false);
    expect(await openApprovals(of)).toMatchObject([
      {
        run_id,
        digest,
        name: 'export',
        quorum: 2,
        requested_by: 'anna',
        votes: [{ actor_id: 'berta' }],
        request: { action: 'EXPORT_BUNDLE', args: { locator: 'bag', export_reason: options.reason } },
      },
    ]);
    const held = await of.turnpike.highRiskRun(run_id);
    const refused = await of.turnpike.approve(ballot(run_id, digest, 'anna'));
    expect(refused).toEqual([{ digest, counted: false, rule_id: 'approval.by_requester' }]);
    expect(await of.turnpike.approve(ballot(run_id, digest, 'carl'))).toEqual([
      { digest, counted: true, rule_id: 'approval.granted' },
    ]);
    expect(await held!.finished).toMatchObject({ state: 'completed' });
    const manifest = JSON.parse(readFileSync(join(options.destination, 'data/manifest.json'), 'utf8')) as object;
    expect(manifest).toMatchObject({
      approvals: [
        { approved_by: 'berta', approval_type: 'attorney_admin' },
        { approved_by: 'carl', approval_type: 'attorney_admin' },
      ],
    });
    expect(await openApprovals(of)).toEqual([]);
  });

  test('a promotion waits, its exact request is shown, and it is written after both approvals', async () => {
    const of = await open({ edit: withApprovals });
    const { run_id, digest, finished } = await of.turnpike.promote(promotion());
    const [asked] = await openApprovals(of);
    expect(asked).toMatchObject({
      run_id,
      name: 'promotion',
      request: { action: 'WRITE_RECORD', args: { target: 'shared_playbooks', mode: 'append', record: insight } },
      approver_roles: ['ATTORNEY_ADMIN'],
    });
    for (const actor of ['berta', 'carl']) await of.turnpike.approve(ballot(run_id, digest!, actor));
    expect(await finished).toMatchObject({ state: 'completed' });
    expect((await rowsOf(of, 'shared_playbooks')).result.records).toEqual([insight]);
  });

  test('a single rejection denies it, and nothing is written', async () => {
    const of = await open({ edit: withApprovals });
    const { run_id, digest, finished } = await of.turnpike.promote(promotion());
    await of.turnpike.approve(ballot(run_id, digest!, 'berta'));
    expect(await of.turnpike.approve(ballot(run_id, digest!, 'carl', 'reject'))).toMatchObject([{ counted: true }]);
    expect(await finished).toEqual({ run_id, state: 'denied', reason: 'approval.rejected' });
    expect((await rowsOf(of, 'shared_playbooks')).result.records).toEqual([]);
    expect(await openApprovals(of)).toEqual([]);
  });

  test('without a vote it expires, also over a restart', async () => {
    let of = await open({ edit: withApprovals });
    const { run_id } = await of.turnpike.promote(promotion());
    of = await reopened(of);
    const held = await of.turnpike.highRiskRun(run_id);
    of.clock.advance(4 * 60_000);
    expect(await openApprovals(of)).toHaveLength(1);
    of.clock.advance(60_000);
    expect(await openApprovals(of)).toEqual([]);
    expect(await held!.finished).toEqual({ run_id, state: 'denied', reason: 'approval.expired' });
  });
});

describe('records in the ledger', () => {
  test('D8: a tree whose table is in another database writes none into the ledger', async () => {
    const before = service().targets.filter(({ definition }) => definition.name !== 'facts');
    const file = join(tempFolder(), 'facts.db');
    const facts = { ...plainTable('facts'), database: sqlDatabase({ url: `sqlite:${file}`, create: true }) };
    let of = await open({ targets: [...before, defineTarget(facts)] });
    const agent = await of.turnpike.startAgent({ ...CASE_AGENT, link: 'remote' });
    of = await reopened(of, { targets: [...before, defineTarget(plainTable('facts'))] });
    const write = proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f' } });
    const again = await of.turnpike.agent(agent.run_id);
    expect(await again!.submit(JSON.stringify(write))).toMatchObject({ outcome: 'EXECUTION_ERROR' });
    expect(await of.turnpike.ledger.run(`${agent.run_id}.1`)).toMatchObject({ error: { error_code: 'NOT_EXECUTED' } });
    expect((await rowsOf(of, 'facts')).result.records).toEqual([]);
    rmSync(dirname(file), { recursive: true });
  });

  test('S4-84: rows of another case are invisible and cannot be requested', async () => {
    const of = await open();
    const write = (id: string, options: object) =>
      work(of, 'WRITE_RECORD', { target: 'facts', mode: 'append', record: { id, text: 'x' } }, options);
    expect(await write('mine', { case: 'case-one' })).toMatchObject({ outcome: 'SUCCESS' });
    expect(await write('mine', { case: 'case-two' })).toMatchObject({ outcome: 'SUCCESS' });
    expect((await rowsOf(of, 'facts', { case: 'case-one' })).result.records).toEqual([{ id: 'mine', text: 'x' }]);
    expect((await rowsOf(of, 'facts', { case: 'case-three' })).result.records).toEqual([]);
    const query = { target: 'facts', case_id: 'case-two' };
    expect(await work(of, 'READ_RECORDS', query, { case: 'case-one' })).toMatchObject({ outcome: 'DENIED' });
  });

  test('a bad row of one of many agents fails alone, and the others are durable with their entries', async () => {
    let of = await open();
    const text = 'x';
    await work(of, 'WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-3', text } });
    const agents = await Promise.all(Array.from({ length: 8 }, () => of.turnpike.startAgent(CASE_AGENT)));
    const responses = await Promise.all(
      agents.map((agent, i) =>
        agent.submit(
          JSON.stringify(proposal('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: `f-${i}`, text } })),
        ),
      ),
    );
    expect(responses.map((response) => 'outcome' in response && response.outcome)).toEqual(
      agents.map((_agent, i) => (i === 3 ? 'EXECUTION_ERROR' : 'SUCCESS')),
    );
    of = await reopened(of);
    const { records } = (await rowsOf(of, 'facts')).result;
    expect(records).toEqual(agents.map((_agent, i) => ({ id: `f-${i}`, text })));
  });
});
