// Rules of the contract, each tested through the machines: what a tree records and which effects it requests, whatever
// function decides it. A change of any function that breaks a rule fails here.

import { describe, expect, test } from '@jest/globals';
import { toPrivilegedWrite } from '../../machines/mediated.js';
import type { AuditEvent } from '../../src/core/contract/run/audit-event.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { authorizePrivileged, EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import { authorizeRequest } from '../../src/core/step/mediated-request.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import { RUNNER, SESSION, SessionDriver } from '../fixtures/session.js';
import { AGENT, CASE, editedPolicy, machinesArtifact, proposal, SHIPPED, TREE, TreeDriver } from '../fixtures/tree.js';

const WRITE = { path: '/sandbox/a.txt', content: 'x' };

describe('the output of PARSE', () => {
  test.each(['null', 'true', '1', '"x"', '[]', '[{}]', `[${JSON.stringify(proposal('THINK', {}))}]`])(
    'S0-21: %s is not a JSON object: no phase after the schema sees it',
    (payload) => {
      const d = new TreeDriver().ready();
      const { commands, marks } = d.propose(payload);
      expect([commands, marks]).toEqual([[], []]);
      expect(d.traces).toMatchObject([
        {
          outcome: 'VALIDATION_ERROR',
          error_code: 'SCHEMA_VIOLATION',
          phase_failed_at: 'VALIDATE_SCHEMA',
          rule_id: 'schema.not_an_object',
          proposal_id: null,
          action: null,
          args_summary: null,
        },
      ]);
    },
  );

  test('S0-21: an object reaches the effect as it was written, member by member', () => {
    const content = '{"__proto__":1,"é\\u0000":[1e2,-0,0.1]}';
    const text = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content }));
    const d = new TreeDriver().ready();
    d.propose(text);
    const { commands } = d.facts({ paths: [{ status: 'absent' }], usage: { bytes: 0, files: 0 } });
    expect(commands).toMatchObject([{ kind: 'perform', effect: { args: { path: '/sandbox/a.md', content } } }]);
  });
});

describe('a payload that does not parse', () => {
  test.each(['{', '', ' ', '{"a":1,"a":2}', `${JSON.stringify(proposal('THINK', {}))}}`, "{'a':1}", '\ufeff{}'])(
    'S0-23: %j ends the checks: one trace, one reply, no later phase',
    (payload) => {
      const d = new TreeDriver().ready();
      const { commands, marks, replies, entries } = d.propose(payload);
      expect(entries.map(({ entry }) => entry.type)).toEqual(['input', 'step_trace']);
      expect([commands, marks]).toEqual([[], []]);
      expect(replies).toHaveLength(1);
      const [trace] = d.traces;
      expect(trace).toMatchObject({
        outcome: 'VALIDATION_ERROR',
        action: null,
        proposal_id: null,
        mediated_run_id: null,
      });
      expect(['RECEIVE', 'PARSE']).toContain(trace?.phase_failed_at);
      expect(trace?.error_code).toBe(payload.trim() === '' ? 'EMPTY_PAYLOAD' : 'INVALID_JSON');
      expect(trace?.args_summary).toBeNull();
    },
  );

  test('S0-23: does not consume its id, and does not count as a denial', () => {
    const d = new TreeDriver().ready();
    const whole = JSON.stringify(proposal('THINK', {}));
    for (let n = 0; n < 12; n += 1) d.propose(whole.slice(0, -1));
    expect(d.tree.isLive(AGENT)).toBe(true);
    d.propose(whole);
    expect(d.traces.at(-1)).toMatchObject({ outcome: 'SUCCESS' });
  });
});

describe('S2-03: the runtime validates, authorizes, executes and logs, strictly in this order', () => {
  interface Act {
    readonly action: string;
    readonly args: object;
  }
  const stages: readonly (readonly [string, Act, Partial<StepTrace>])[] = [
    ['not valid', { action: 'WRITE_FILE', args: {} }, { phase_failed_at: 'VALIDATE_ARGS' }],
    [
      'not allowed',
      { action: 'WRITE_FILE', args: { path: '/sandbox/a.sh', content: 'x' } },
      { phase_failed_at: 'AUTHORIZE' },
    ],
    ['failed', { action: 'WRITE_FILE', args: WRITE }, { phase_failed_at: 'EXECUTE', outcome: 'EXECUTION_ERROR' }],
    ['done', { action: 'WRITE_FILE', args: WRITE }, { phase_failed_at: null, outcome: 'SUCCESS' }],
  ];

  test.each(stages)('%s', (stage, { action, args }, expected) => {
    const d = new TreeDriver().ready();
    const before = d.decisions.length;
    d.propose(proposal(action, args));
    const isValid = stage !== 'not valid';
    if (d.tree.pending.length > 0) d.facts({ paths: [{ status: 'absent' }], usage: { bytes: 0, files: 0 } });
    const performed = d.commands.filter(({ kind }) => kind === 'perform');
    expect(performed).toHaveLength(stage === 'failed' || stage === 'done' ? 1 : 0);
    const runs = d.bodies('run_created').filter(({ run_kind }) => run_kind === 'tool_gateway');
    expect(runs).toHaveLength(isValid ? 1 : 0);
    // Every effect was allowed before, and recorded as allowed, in the same decision or an earlier one.
    const verdicts = d
      .audit()
      .filter(({ action_type, run_id }) => action_type === 'authz_decision' && run_id.startsWith(`${AGENT}.`));
    expect(verdicts.every(({ outcome }) => outcome === (performed.length === 1 ? 'allow' : 'deny'))).toBe(true);
    if (performed.length === 1) expect(d.traces).toEqual([]);
    if (stage === 'failed') d.failed(`${AGENT}.1.1`, 'IO_ERROR');
    if (stage === 'done') d.done(`${AGENT}.1.1`, { bytes_written: 1 });
    expect(d.traces).toMatchObject([expected]);
    expect(d.decisions.slice(before).flatMap(({ replies }) => replies)).toHaveLength(1);
    // The last decision records and replies; it has the event of the executed effect.
    expect(d.decisions.at(-1)?.replies).toHaveLength(1);
    const acts = d.audit().filter(({ action_type }) => action_type === 'tool_call' || action_type === 'db_write');
    expect(acts).toHaveLength(performed.length * 2);
  });
});

describe('db_write', () => {
  test('S4-15: a db_write run has only the write of its request', () => {
    const whole = {
      tool: 'sandbox.write_file',
      write: { table: 'sandbox_files', mode: 'upsert' },
      read: 'facts',
      target_case_id: CASE,
      destination: 'outside',
      plane: 'case',
      artifact_flags: ['x'],
      unregistered: null,
      promotes: false,
      label: EMPTY_LABEL,
    } as const;
    const alone = toPrivilegedWrite(whole, 'tool_gateway');
    expect(alone).toEqual({ ...whole, tool: null, read: null });
    expect(toPrivilegedWrite(whole, 'promotion').promotes).toBe(true);
  });

  const laneWith = (writes: string) =>
    editedPolicy({ lanes: [['        - { table: sandbox_files, mode: upsert }\n', `        - ${writes}\n`]] });

  test.each([
    ['{ table: sandbox_files, mode: append }', 'lane.write_mode_not_allowed'],
    ['{ table: facts, mode: upsert }', 'lane.write_not_allowed'],
  ])('S4-15: its lane decides: with %s it is denied', (writes, rule_id) => {
    const d = new TreeDriver({ policies: laneWith(writes) }).ready();
    const { commands } = d.act('WRITE_FILE', WRITE);
    expect(commands).toEqual([]);
    expect(d.traces).toMatchObject([{ outcome: 'DENIED', rule_id }]);
    // Even if only the db_write itself is judged.
    const policy = policyOf([...laneWith(writes), machinesArtifact(laneWith(writes))]);
    expect(machinesFor(policy)).toBeDefined();
    const allowed = new TreeDriver().ready();
    allowed.act('WRITE_FILE', WRITE);
    const created = allowed.created(`${AGENT}.1.1`);
    const request = { tool: null, write: { table: 'sandbox_files', mode: 'upsert' }, read: null } as const;
    const privileged = {
      ...request,
      target_case_id: CASE,
      destination: 'platform',
      plane: 'case',
      artifact_flags: [],
      unregistered: null,
      promotes: false,
      label: EMPTY_LABEL,
    } as const;
    const run = { ...created, run_id: `${AGENT}.1.1` };
    expect(authorizePrivileged(run, privileged, policy)).toMatchObject({ decision: 'deny', rule_id });
    const effect = { action: 'WRITE_FILE' };
    expect(authorizeRequest(run, { privileged, effect, overlay: null }, policy)).toMatchObject({ rule_id });
  });

  test('S4-15: every change uses one, and no read does', () => {
    for (const [action, args, changes] of [
      ['READ_FILE', { path: '/sandbox/a.txt' }, false],
      ['LIST_FILES', { path: '/sandbox/d/' }, false],
      ['WRITE_FILE', WRITE, true],
      ['CREATE_DIRECTORY', { path: '/sandbox/d' }, true],
      ['DELETE_FILE', { path: '/sandbox/a.txt' }, true],
      ['RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.txt' }, true],
    ] as const) {
      const d = new TreeDriver().ready();
      const { commands } = d.act(action, args);
      const writes = d.bodies('run_created').filter(({ run_kind }) => run_kind === 'db_write');
      expect(writes.map(({ run_id }) => run_id)).toEqual(changes ? [`${AGENT}.1.1`] : []);
      // The effect belongs to the run that was judged for it.
      expect(commands.map(({ run_id }) => run_id)).toEqual([changes ? `${AGENT}.1.1` : `${AGENT}.1`]);
      for (const { lane_id, request } of writes) {
        expect(lane_id).toBe('SANDBOX_FILES');
        expect(request?.name).toBe('sandbox_files');
      }
    }
  });
});

describe('S4-42: an action has one audit event, with the run and the lane that allowed it', () => {
  test.each([
    ['READ_FILE', { path: '/sandbox/a.txt' }, 'done'],
    ['WRITE_FILE', WRITE, 'done'],
    ['WRITE_FILE', WRITE, 'failed'],
    ['DELETE_FILE', { path: '/sandbox/a.txt' }, 'done'],
  ] as const)('%s %j, %s', (action, args, outcome) => {
    const d = new TreeDriver().ready();
    const [command] = d.act(action, args).commands;
    const run_id = command?.run_id ?? '';
    const isAct = ({ action_type }: AuditEvent): boolean => ['tool_call', 'db_write', 'db_read'].includes(action_type);
    expect(d.audit().filter(isAct)).toEqual([]);
    if (outcome === 'done') d.done(run_id, { bytes_written: 1, content: 'x' });
    else d.failed(run_id, 'IO_ERROR');
    const runs = d
      .bodies('run_created')
      .filter(({ run_kind }) => run_kind === 'tool_gateway' || run_kind === 'db_write');
    const acts = d.audit().filter(isAct);
    expect(acts.map((event) => event.run_id).sort()).toEqual(runs.map((run) => run.run_id).sort());
    for (const event of acts) {
      const run = d.created(event.run_id);
      expect(event).toMatchObject({
        action_type: run.run_kind === 'db_write' ? 'db_write' : 'tool_call',
        outcome: outcome === 'done' ? 'success' : 'failure',
        run_id: run.run_id,
        root_run_id: TREE,
        parent_run_id: run.parent_run_id,
        lane_id: 'SANDBOX_FILES',
        role_id: 'SANDBOX_AGENT',
        case_id: CASE,
        request_hash_sha256: sha256(canonicalJson({ action, args, case_id: CASE })),
      });
      expect(run.lane_id).toBe(event.lane_id);
      expect(d.audit(event.run_id).filter(({ authz }) => authz?.decision === 'allow')).toHaveLength(1);
    }
  });
});

describe('S3-21: changes are made, checks run, and the result is reported, in this order', () => {
  const startWorking = (): SessionDriver => {
    const d = new SessionDriver().start();
    d.by = RUNNER;
    d.next();
    return d;
  };
  const write = (d: SessionDriver, path: string): void => {
    const run_id = d.outstanding.step.run_id ?? '';
    d.act('WRITE_FILE', { path, content: 'x' }, { paths: [], usage: { bytes: 0, files: 0 } }, run_id);
    d.done(d.tree.pending.find(({ kind }) => kind === 'perform')?.run_id ?? '', { bytes_written: 1 });
  };

  test('the step of a change comes first, then its check; only its own report completes each', () => {
    const d = startWorking();
    expect(d.outstanding.type).toBe('implement_task');
    write(d, '/sandbox/a.md');
    expect(d.session.tasks['task-1-1'] ?? 'pending').toBe('pending');
    expect(d.next().error?.code).toBe('STEP_RESULT_REQUIRED');
    expect(d.next(d.report('success', { files_touched: ['a.md'] })).success).toBe(true);
    expect(d.session.tasks['task-1-1']).toBe('completed');
    expect(d.outstanding.type).toBe('execute_verification');
    // No report of a check that did not run is accepted, and none that contradicts its result.
    expect(d.next(d.report('success')).error?.code).toBe('ERROR_VERIFICATION_RECEIPT_MISSING');
    d.exit_code = 1;
    expect(d.check().success).toBe(true);
    expect(d.next(d.report('success')).error?.code).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
    d.exit_code = 0;
    expect(d.check().success).toBe(true);
    expect(d.next(d.report('success')).success).toBe(true);
    expect(d.session.tasks['verify-1']).toBe('completed');
    const consumed = d.bodies('session_event').filter(({ event }) => event === 'step_consumed');
    expect(consumed.map(({ step_type, detail }) => [step_type, detail['outcome'], detail['mediation']])).toEqual([
      ['implement_task', 'success', 'mediated'],
      ['execute_verification', 'success', 'none'],
    ]);
  });

  test('S3-23: a verification with its own instruction still contains its command', () => {
    const task = {
      id: 'v',
      type: 'verify',
      title: 'Check',
      command: ['npm', 'test'],
      instruction: 'Be thorough.',
    } as const;
    const spec = { spec_version: 1, id: 's', title: 'S', phases: [{ id: 'p', title: 'P', tasks: [task] }] } as const;
    const d = new SessionDriver({ spec: spec as never }).start();
    d.by = RUNNER;
    d.next();
    expect(d.outstanding.step.instruction).toMatch(
      /^Be thorough\.\n\nVerify: Check\. Have the platform run \["npm","test"\] by/,
    );
  });
});

describe('S4-59 S4-61 C91: the records of agent and orchestrator runs', () => {
  const kinds = (event: AuditEvent | undefined, member: 'input_artifacts' | 'output_artifacts') =>
    event?.[member]?.map(({ artifact_kind }) => artifact_kind);
  const eventWithReason = (d: TreeDriver, run_id: string, reason: RegExp): AuditEvent | undefined =>
    d.audit(run_id).find(({ outcome_reason = '' }) => reason.test(outcome_reason));

  test('name the configuration at their start, and what they have produced', () => {
    const d = new TreeDriver().ready();
    d.act('WRITE_FILE', WRITE);
    d.done(`${AGENT}.1.1`, { bytes_written: 1 });
    d.act('READ_FILE', { path: '/sandbox/a.txt' });
    d.done(`${AGENT}.2`, { content: 'x' });
    d.propose(proposal('FINISH', { response: 'Done.' }));
    for (const run_id of [TREE, AGENT]) {
      expect(eventWithReason(d, run_id, /^running$/)?.input_artifacts).toMatchObject(
        [...SHIPPED, machinesArtifact(SHIPPED)].map(({ bytes }) => ({
          hash_sha256: sha256(bytes),
        })),
      );
      expect(kinds(eventWithReason(d, run_id, /^completed/), 'output_artifacts')).toEqual([
        'file_content',
        'raw_payload',
      ]);
    }
  });

  test('name the spec and step of a session, and what their steps have changed', () => {
    const d = new SessionDriver().start();
    d.by = RUNNER;
    d.next();
    const configuration = ['policy', 'policy', 'policy', 'machines', 'session_spec'];
    expect(kinds(eventWithReason(d, `${SESSION}.1`, /^running$/), 'input_artifacts')).toEqual(configuration);
    const agent = eventWithReason(d, `${SESSION}.1.1`, /^running$/);
    expect(kinds(agent, 'input_artifacts')).toEqual([...configuration, 'step_packet']);
    const packet = sha256(canonicalJson(d.outstanding.step));
    expect(agent?.input_artifacts?.at(-1)).toMatchObject({ hash_sha256: packet, case_id: CASE });
  });
});
