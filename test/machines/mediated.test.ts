import { describe, expect, test } from '@jest/globals';
import type { VoteEvent } from '../../machines/mediated-memory.js';
import type { MediatedEvent, MediatedInput, ResultEvent } from '../../machines/mediated.js';
import type { ApprovalRule } from '../../src/core/contract/run/approval.js';
import type { ExecutionCause } from '../../src/core/contract/fault.js';
import {
  childContext,
  type RunContext,
  TERMINAL_STATES,
  type TerminalState,
} from '../../src/core/contract/run/run-context.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import { emptyBook } from '../../src/core/policy/policy-features.js';
import { requestApproval } from '../../src/features/approvals/approval-requests.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import { AGENT, CASE, editedPolicy, TREE, TreeDriver } from '../fixtures/tree.js';
import { edgesOf, edgeText, recordMachine, machines, stateText, topState } from './chart.js';
import { personNamed } from '../fixtures/person.js';

// The gateway machine as the step spawns it, with db_write provided.
const toolGateway = machines.step.implementations.actors['tool_gateway'] as unknown as typeof machines.mediated;

const agent = new TreeDriver().ready().tree.run(AGENT)!.context;
const GATEWAY = childContext(agent, `${AGENT}.1`, 'tool_gateway');
const DB_WRITE = childContext(GATEWAY, `${AGENT}.1.1`, 'db_write');

const input = (run: RunContext, over: { tool?: string | null; write?: boolean } = {}): MediatedInput => ({
  run,
  request: {
    privileged: {
      tool: over.tool === undefined ? 'sandbox.delete_file' : over.tool,
      write: over.write === false ? null : { table: 'sandbox_files', mode: 'upsert' },
      target_case_id: CASE,
      destination: 'platform',
      plane: 'case',
      artifact_flags: [],
      read: null,
      unregistered: null,
      promotes: false,
      label: EMPTY_LABEL,
    },
    hash: 'b'.repeat(64),
    effect: {
      action: 'DELETE_FILE',
      args: { path: '/sandbox/a.txt' },
      case_id: CASE,
      request_hash: 'b'.repeat(64),
      before: [],
      partial_outputs: false,
      limits: { read_bytes_max: 1, list_entries_max: 1 },
    },
    in_commit: false,
    idempotency_key: null,
    idempotent: false,
    retry: null,
    overlay: null,
    inputs: [],
    written: null,
  },
  approval: null,
});

const ALLOW: MediatedEvent = {
  type: 'AUTHORIZE',
  verdict: { decision: 'allow', rule_id: 'lane.granted', cause: null },
  overlay: null,
  digest: null,
};
const DENY: MediatedEvent = {
  type: 'AUTHORIZE',
  verdict: { decision: 'deny', rule_id: 'lane.x', cause: 'LANE' },
  overlay: null,
  digest: null,
};
const CANCEL: MediatedEvent = { type: 'CANCEL', reason: 'stop' };
const result = (status: ResultEvent['status'], cause: ExecutionCause | null = null): MediatedEvent => ({
  type: 'RESULT',
  status,
  cause,
  time: '2026-01-01T00:00:00.000Z',
  result: status === 'done' ? {} : null,
  result_ref: null,
});
const childEnded = (state: TerminalState): MediatedEvent => ({
  type: `xstate.done.actor.${DB_WRITE.run_id}` as 'xstate.done.actor.*',
  actorId: DB_WRITE.run_id,
  output: { run_id: DB_WRITE.run_id, state, end: { reason: state, error: null }, done: null, spent: null },
});

const DIGEST = 'd'.repeat(64);
const T0 = '2026-01-01T00:00:00.000Z';
const EXPIRY = '2026-01-01T01:00:00.000Z';
const RULE: ApprovalRule = { for: 'promotion', approver_roles: ['ATTORNEY_ADMIN'], quorum: 2, expires_minutes: 60 };
/** The policy under which promotions need approval. */
const APPROVING = editedPolicy({
  actions: [
    [
      'knobs:\n',
      'approvals:\n  - { for: promotion, approver_roles: [ATTORNEY_ADMIN], quorum: 2, expires_minutes: 60 }\nknobs:\n',
    ],
  ],
});
const approving = machinesFor(policyOf(APPROVING)).orchestrator.implementations.actors[
  'promotion'
] as unknown as typeof machines.mediated;

/** A promotion that waits for two approvers. */
const waiting = (): MediatedInput => {
  const run: RunContext = {
    ...childContext(agent, `${TREE}.2`, 'promotion'),
    role_id: 'GOVERNANCE_AGENT',
    lane_id: 'PROMOTE_SHARED_KNOWLEDGE',
    scope: { promotion_ticket_id: 'T-1' },
  };
  const { request } = input(run, { tool: null });
  const privileged = {
    ...request.privileged,
    write: { table: 'shared_playbooks', mode: 'append' },
    target_case_id: null,
    plane: 'shared',
    promotes: true,
  } as const;
  const approvalRequest = {
    digest: DIGEST,
    name: 'promotion',
    requested_by: 'governor',
    requester: personNamed('governor'),
    at: T0,
  };
  const book = requestApproval(emptyBook(run.run_id), approvalRequest, RULE);
  return { run, request: { ...request, privileged }, approval: { digest: DIGEST, rule: RULE, book } };
};
const ballot = (actor_id: string, decision: 'approve' | 'reject', at = T0): VoteEvent => ({
  type: 'VOTE',
  ballot: {
    digests: [DIGEST],
    decision,
    approver: { actor: { actor_type: 'human', actor_id }, person: personNamed(actor_id), role_id: 'ATTORNEY_ADMIN' },
    at,
    for_run: `${TREE}.2`,
  },
  overlay: null,
});

const EVENTS: Record<string, MediatedEvent> = {
  'AUTHORIZE allow': ALLOW,
  'AUTHORIZE deny': DENY,
  CANCEL,
  'RESULT done': result('done'),
  'RESULT failed': result('failed', 'IO_ERROR'),
  'RESULT unknown': result('unknown'),
  STARTED: { type: 'STARTED' },
  'VOTE by anna': ballot('anna', 'approve'),
  'VOTE by berta': ballot('berta', 'approve'),
  'VOTE against': ballot('clara', 'reject'),
  'VOTE by the requester': ballot('governor', 'approve'),
  'VOTE, too late': ballot('berta', 'approve', EXPIRY),
  'VOTE where the overlay denies': { ...ballot('berta', 'approve'), overlay: { epoch: null, problem: 'invalid' } },
  'WAKE, early': { type: 'WAKE', time: T0 },
  'WAKE, expired': { type: 'WAKE', time: EXPIRY },
  ...Object.fromEntries(TERMINAL_STATES.map((state) => [`child ${state}`, childEnded(state)])),
};

// How to bring a run into each state, and where each event leads. Any event that is not listed leaves the state
// unchanged.
const CREATED = { 'AUTHORIZE allow': 'running', 'AUTHORIZE deny': 'denied', CANCEL: 'cancelled' };
const ENDED = { by: [], to: {} };
const PERFORMING = {
  'created.authorizing': { by: [], to: CREATED },
  'running.executing': {
    by: ['AUTHORIZE allow'],
    to: { 'RESULT done': 'completed', 'RESULT failed': 'failed', 'RESULT unknown': 'failed' },
  },
  'running.executing, cancelled': {
    by: ['AUTHORIZE allow', 'CANCEL'],
    to: { 'RESULT done': 'cancelled', 'RESULT failed': 'cancelled', 'RESULT unknown': 'cancelled' },
  },
  completed: { ...ENDED, by: ['AUTHORIZE allow', 'RESULT done'] },
  failed: { ...ENDED, by: ['AUTHORIZE allow', 'RESULT failed'] },
  denied: { ...ENDED, by: ['AUTHORIZE deny'] },
  cancelled: { ...ENDED, by: ['CANCEL'] },
};
const DELEGATING = {
  'created.authorizing': { by: [], to: CREATED },
  'running.awaitingWriteRun': {
    by: ['AUTHORIZE allow'],
    to: {
      'child completed': 'completed',
      'child failed': 'failed',
      'child cancelled': 'cancelled',
      'child denied': 'denied',
    },
  },
  completed: { ...ENDED, by: ['AUTHORIZE allow', 'child completed'] },
  failed: { ...ENDED, by: ['AUTHORIZE allow', 'child failed'] },
  denied: { ...ENDED, by: ['AUTHORIZE allow', 'child denied'] },
  cancelled: { ...ENDED, by: ['AUTHORIZE allow', 'child cancelled'] },
};
/** Only votes, a cancel and time change it; no AUTHORIZE does. */
const WAITING = {
  CANCEL: 'cancelled',
  'VOTE against': 'denied',
  'VOTE, too late': 'denied',
  'WAKE, expired': 'denied',
};
const AWAITING = {
  'created.awaitingVotes': { by: [], to: WAITING },
  'created.awaitingVotes, one vote short': {
    by: ['VOTE by anna'],
    to: { ...WAITING, 'VOTE by berta': 'running', 'VOTE where the overlay denies': 'denied' },
  },
  'running.awaitingWriteRun': { by: ['VOTE by anna', 'VOTE by berta'], to: DELEGATING['running.awaitingWriteRun'].to },
  denied: { ...ENDED, by: ['VOTE against'] },
  cancelled: { ...ENDED, by: ['CANCEL'] },
};
type Row = Record<string, { by: string[]; to: Record<string, string> }>;
const KINDS: readonly (readonly [string, MediatedInput, Row, typeof toolGateway])[] = [
  ['db_write', input(DB_WRITE, { tool: null }), PERFORMING, toolGateway],
  ['tool_gateway that reads', input(GATEWAY, { write: false }), PERFORMING, toolGateway],
  ['tool_gateway that writes', input(GATEWAY), DELEGATING, toolGateway],
  ['promotion that waits for its approval', waiting(), AWAITING, approving],
];

describe.each(KINDS)('a %s run, state by event', (_kind, from, rows, machine) => {
  const cases = Object.entries(rows).flatMap(([state, { by, to }]) =>
    Object.keys(EVENTS).map((event) => [state, event, to[event] ?? state.split(/[.,]/)[0]!, by] as const),
  );
  test.each(cases)('S4-21 S4-22 S4-80: %s on %s is %s', (state, event, expected, by) => {
    const { actor, said, errors } = recordMachine(machine, from.run.run_id, from);
    for (const step of by) actor.send(EVENTS[step]!);
    expect(stateText(actor.getSnapshot())).toBe(state.split(',')[0]);
    const before = said.length;
    actor.send(EVENTS[event]!);
    expect(topState(actor)).toBe(expected);
    const ended = said.slice(before).filter(({ type }) => type === 'ended');
    expect(ended).toHaveLength(state.split(/[.,]/)[0] !== expected && expected !== 'running' ? 1 : 0);
    if (by.length > 0 && !state.includes('.')) expect(said).toHaveLength(before);
    expect(errors).toEqual([]);
  });
});

test('S2-17 S4-38 D7: the state that executes, and the start of a child, are reachable only by an allow or an approval', () => {
  expect(edgesOf(machines.mediated).map(edgeText)).toEqual([
    'created -CANCEL-> cancelled',
    'created.authorizing -AUTHORIZE[isAllowed]-> running',
    'created.authorizing -AUTHORIZE-> denied',
    'created.authorizing -[needsApproval]-> created.awaitingVotes',
    'created.awaitingVotes -VOTE-> created.votesCounted',
    'created.awaitingVotes -WAKE[hasExpired]-> created.votesCounted',
    'created.awaitingVotes -WAKE-> created.awaitingVotes',
    'created.votesCounted -[isApproved]-> running',
    'created.votesCounted -[isRejected]-> denied',
    'created.votesCounted --> created.awaitingVotes',
    'running.choosingExecutor -[isCallerExecuted]-> running.awaitingReport',
    'running.choosingExecutor -[needsWriteRun]-> running.awaitingWriteRun',
    'running.choosingExecutor --> running.executing',
    'running.executing -RESULT[isCancelling]-> cancelled',
    'running.executing -RESULT[hasSucceeded]-> completed',
    'running.executing -RESULT-> failed',
    'running.executing -CANCEL-> running.executing',
    'running.awaitingWriteRun -STARTED-> running.awaitingWriteRun',
    'running.awaitingWriteRun -xstate.done.actor.*[isChildEnd:completed]-> completed',
    'running.awaitingWriteRun -xstate.done.actor.*[isChildEnd:failed]-> failed',
    'running.awaitingWriteRun -xstate.done.actor.*[isChildEnd:cancelled]-> cancelled',
    'running.awaitingWriteRun -xstate.done.actor.*-> denied',
    'running.awaitingWriteRun -CANCEL-> running.awaitingWriteRun',
    'running.awaitingReport -REPORT[hasReportedSuccess]-> completed',
    'running.awaitingReport -REPORT-> failed',
    'running.awaitingReport -WAKE[isReportOverdue]-> failed',
    'running.awaitingReport -WAKE-> running.awaitingReport',
    'running.awaitingReport -CANCEL-> failed',
  ]);
});

test('M2: STARTED goes to the parent once, when the run and every run below it are allowed', () => {
  const startedMessages = (from: MediatedInput, by: MediatedEvent[]): string[] => {
    const { actor, told } = recordMachine(toolGateway, from.run.run_id, from);
    for (const event of by) actor.send(event);
    return told.filter((type) => type === 'STARTED');
  };
  expect(startedMessages(input(DB_WRITE, { tool: null }), [ALLOW, CANCEL, result('done')])).toEqual(['STARTED']);
  expect(startedMessages(input(GATEWAY), [ALLOW])).toEqual(['STARTED']);
  expect(startedMessages(input(GATEWAY), [DENY])).toEqual([]);
  expect(startedMessages(input({ ...GATEWAY, scope: { run_id: GATEWAY.run_id } }), [ALLOW])).toEqual([]);
});

const WRITE = { path: '/sandbox/a.txt', content: 'x' };

test('S4-14 S4-15 S4-19 S4-39 S4-55 U-02: a write goes from agent to tool_gateway to db_write, each with its own run', () => {
  const d = new TreeDriver().ready();
  const { commands } = d.act('WRITE_FILE', WRITE);
  expect(commands).toMatchObject([{ kind: 'perform', run_id: `${AGENT}.1.1`, effect: { action: 'WRITE_FILE' } }]);
  const chain = d.bodies('run_created').map(({ run_kind, run_id, parent_run_id }) => [run_kind, run_id, parent_run_id]);
  expect(chain).toEqual([
    ['orchestrator', TREE, null],
    ['agent', AGENT, TREE],
    ['tool_gateway', `${AGENT}.1`, AGENT],
    ['db_write', `${AGENT}.1.1`, `${AGENT}.1`],
  ]);
});

test('S4-14 S4-39: the tool_gateway run itself executes a read, without a db_write', () => {
  const d = new TreeDriver().ready();
  expect(d.act('READ_FILE', { path: '/sandbox/a.txt' }).commands).toMatchObject([
    { kind: 'perform', run_id: `${AGENT}.1`, in_commit: true },
  ]);
  expect(d.bodies('run_created').map(({ run_kind }) => run_kind)).toEqual(['orchestrator', 'agent', 'tool_gateway']);
});

test('C52: a denied db_write denies its tool_gateway, which was allowed before, and the agent continues', () => {
  // The scope names the gateway's own run id; the write below it has another id, and misses what its lane requires.
  const d = new TreeDriver();
  d.ready({ scope: { run_id: `${AGENT}.1` } });
  const { commands, replies } = d.act('WRITE_FILE', WRITE);
  expect(commands).toEqual([]);
  expect(JSON.parse(replies[0]!.response)).toMatchObject({
    outcome: 'DENIED',
    error: { error_code: 'POLICY_VIOLATION' },
  });
  expect(d.story(d.decisions.slice(-1))).toEqual([
    'input:facts',
    `created:tool_gateway@${AGENT}.1`,
    `authz_decision:allow(lane.granted)@${AGENT}.1`,
    `system:success(running)@${AGENT}.1`,
    `created:db_write@${AGENT}.1.1`,
    `authz_decision:deny(scope.mismatch.run_id)@${AGENT}.1.1`,
    `system:deny(denied:scope.mismatch.run_id)@${AGENT}.1.1`,
    `system:deny(denied:scope.mismatch.run_id)@${AGENT}.1`,
    'trace:DENIED',
  ]);
  expect(d.tree.isLive(AGENT)).toBe(true);
});

test('S4-33 S4-36 S4-37 S4-38: a lane without the write target denies the tool_gateway run, and creates no db_write', () => {
  const policies = editedPolicy({ lanes: [['      writes:\n        - { table: sandbox_files, mode: upsert }\n', '']] });
  const d = new TreeDriver({ policies }).ready();
  const decision = d.act('WRITE_FILE', WRITE);
  expect(d.story([decision])).toEqual([
    'input:proposal',
    `created:tool_gateway@${AGENT}.1`,
    `authz_decision:deny(lane.write_not_allowed)@${AGENT}.1`,
    `system:deny(denied:lane.write_not_allowed)@${AGENT}.1`,
    'trace:DENIED',
  ]);
  expect(decision.commands).toEqual([]);
});

test('C53: a cancel during an effect waits for its result, which is recorded as it is', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', WRITE);
  expect(d.story([d.cancel()])).toEqual(['input:cancel']);
  expect(d.story([d.done(`${AGENT}.1.1`, { bytes_written: 1 })])).toEqual([
    'input:result',
    `db_write:success()@${AGENT}.1.1`,
    `system:failure(cancelled:by_caller)@${AGENT}.1.1`,
    `tool_call:success()@${AGENT}.1`,
    `system:failure(cancelled:by_caller)@${AGENT}.1`,
    'trace:SUCCESS',
    `system:failure(cancelled:by_caller)@${AGENT}`,
    `system:failure(cancelled:by_caller)@${TREE}`,
  ]);
});

test('C53: an effect that failed during a cancel is recorded as failed, and its runs end as cancelled', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', WRITE);
  d.cancel(AGENT);
  expect(d.story([d.failed(`${AGENT}.1.1`, 'NO_SPACE')])).toEqual([
    'input:result',
    `db_write:failure(NO_SPACE)@${AGENT}.1.1`,
    `system:failure(cancelled:by_caller)@${AGENT}.1.1`,
    `tool_call:failure(NO_SPACE)@${AGENT}.1`,
    `system:failure(cancelled:by_caller)@${AGENT}.1`,
    'trace:EXECUTION_ERROR',
    `system:failure(cancelled:by_caller)@${AGENT}`,
    `system:failure(cancelled:by_caller)@${TREE}`,
  ]);
});

test('S4-63 S4-64: an effect with an unknown outcome fails its runs, not retryable, and the audit event is critical', () => {
  const d = new TreeDriver().ready();
  d.act('DELETE_FILE', { path: '/sandbox/a.txt' });
  d.result(`${AGENT}.1.1`, { status: 'unknown' });
  for (const run_id of [`${AGENT}.1.1`, `${AGENT}.1`]) {
    const [action, end] = d.audit(run_id).slice(-2);
    const error = { error_code: 'OUTCOME_UNKNOWN', retryable: false };
    expect(action).toMatchObject({ outcome: 'failure', severity: 'critical', error });
    expect(end).toMatchObject({ outcome_reason: 'failed:OUTCOME_UNKNOWN', error });
  }
  expect(d.responses[0]).toMatchObject({ outcome: 'EXECUTION_ERROR', result: null });
});

test('C29: a sandbox that changed between AUTHORIZE and EXECUTE is an event of severity critical', () => {
  const d = new TreeDriver().ready();
  d.act('READ_FILE', { path: '/sandbox/a.txt' });
  d.failed(`${AGENT}.1`, 'SANDBOX_CHANGED');
  expect(d.audit(`${AGENT}.1`).find(({ action_type }) => action_type === 'tool_call')).toMatchObject({
    severity: 'critical',
    error: { error_code: 'SANDBOX_CHANGED', retryable: true },
  });
});
