import { describe, expect, test } from '@jest/globals';
import type { AnyActorRef, AnyTransitionDefinition, InspectionEvent } from 'xstate';
import { createMachines } from '../../machines/index.js';
import type { MediatedMachine } from '../../machines/mediated.js';
import type { StepInput, StepMachine } from '../../machines/step.js';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import type { SandboxFacts } from '../../src/core/contract/run/effect.js';
import type { SeenProposal } from '../../src/core/contract/run/entry.js';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import { policyOf } from '../../src/kernel/pinned-policy.js';
import { emptyBook } from '../../src/core/policy/policy-features.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { limitsOf, openAccount } from '../../src/core/run/budget-account.js';
import { ABSENT, AGENT, CASE, editedPolicy, FILE, ONE_FILE, proposal, SHIPPED, TreeDriver } from '../fixtures/tree.js';
import { CASE_WORK, governedPolicy, REGISTERED } from '../fixtures/governed.js';
import { edgesOf, edgeText, guardText, recordMachine, machines, type Edge } from './chart.js';
import '../fixtures/conditions.js';

const GATEWAY = `${AGENT}.1`;
const REPLAY = editedPolicy({ actions: [['duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay']] });
const RETRYING = editedPolicy({ actions: [['knobs:\n', 'retries: { max: 1, backoff_ms: 60000 }\nknobs:\n']] });
const approvedPolicy = (action: string): string =>
  `approvals:\n  - { for: ${action}, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n`;
const APPROVED = editedPolicy({ actions: [['knobs:\n', `${approvedPolicy('DELETE_FILE')}knobs:\n`]] });
/** FINISH waits for the votes on the requests of its run. */
const WAITING = editedPolicy({
  actions: [['knobs:\n', `${approvedPolicy('DELETE_FILE')}knobs:\n  finish_with_pending_request: wait\n`]],
});
const CALLER = governedPolicy();
const CALLER_APPROVED = governedPolicy(approvedPolicy('CALL_TOOL'));
const policyText = (text: string): Artifact => ({ kind: 'policy', case_id: null, bytes: Buffer.from(text) });
/** The call of the shell needs the fact of a counter. */
const CALLER_COUNTED: readonly Artifact[] = [
  ...CALLER,
  policyText(
    '@id("shell") forbid (principal, action == Action::"CALL_TOOL:native.shell", resource)\n' +
      'when { context.counters.calls >= 5 };\n',
  ),
  policyText(
    'version: v1\ncontract_version: v1\nlast_updated: 2026-01-05\n' +
      'counters:\n  - { name: calls, over: run, counts: [{ action: "CALL_TOOL:native.shell" }] }\n',
  ),
];

function stepInput(payload: string | object, seen: SeenProposal | null = null): StepInput {
  const raw = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
  const artifact: Artifact = { kind: 'raw_payload', case_id: CASE, bytes: raw };
  return {
    agent: new TreeDriver().ready().tree.run(AGENT)!.context,
    exposure: 'detailed',
    input_id: 'in-1',
    step_index: 1,
    received_at: '2026-01-01T00:00:00.000Z',
    payload: artifactRef(artifact),
    raw,
    seen: seen === null ? null : { ...seen, payload_sha256: artifactRef(artifact).hash_sha256 },
    recorded_response: seen === null ? null : '{"recorded":true}',
    mediated_runs: 0,
    account: openAccount(limitsOf({})),
    label: EMPTY_LABEL,
    approvals: emptyBook(AGENT),
    unsettled: [],
    overlay: null,
  };
}

/** Runs a step alone: its states, and how often it traced, replied and executed. */
function runStep(machine: StepMachine, input: StepInput, facts: SandboxFacts = ONE_FILE) {
  const { actor, said, states, errors } = recordMachine(machine, `${AGENT}/step`, input);
  if (actor.getSnapshot().matches({ AUTHORIZE: 'gatheringFacts' })) actor.send({ type: 'FACTS', facts });
  const child = actor.getSnapshot().children[GATEWAY] as { send(event: unknown): void } | undefined;
  child?.send({
    type: 'RESULT',
    status: 'done',
    cause: null,
    result: {},
    result_ref: null,
    time: '2026-01-01T00:00:00.000Z',
  });
  expect(errors).toEqual([]);
  return { states: ['RECEIVE', ...states].filter((state, i, all) => state !== all[i - 1]), said };
}

const READ = { path: '/sandbox/a.txt' };
const SEEN: SeenProposal = {
  step_index: 1,
  run_id: AGENT,
  payload_sha256: '',
  outcome: 'SUCCESS',
  error_code: null,
  response: artifactRef({ kind: 'response', case_id: CASE, bytes: Buffer.from('{"recorded":true}') }),
};
/** A policy that the loader would reject: no function decides this prohibition. */
const withProhibition = (policy: Policy): Policy => {
  const lane = policy.lanes.get('SANDBOX_FILES')!;
  const scope = { ...lane.scope, prohibits: ['made_up'] };
  return { ...policy, lanes: new Map([[lane.lane_id, { ...lane, scope }]]) };
};

const CHECKS = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA', 'VALIDATE_ACTION', 'VALIDATE_ARGS'];
const END = ['RECORD', 'RESPOND'];
const JUDGED = [...CHECKS, 'AUTHORIZE.authorizing'];
const replaying = createMachines(policyOf(REPLAY)).step;
const prohibiting = createMachines(withProhibition(policyOf(SHIPPED))).step;

describe('S0-02 S0-05 S0-12 S0-13: a step passes its phases in order, and goes from a rejection to RECORD and RESPOND', () => {
  test.each<[string, StepMachine, StepInput, SandboxFacts, string[]]>([
    ['RECEIVE rejects', machines.step, stepInput(''), ONE_FILE, ['RECEIVE', ...END]],
    ['PARSE rejects', machines.step, stepInput('{'), ONE_FILE, ['RECEIVE', 'PARSE', ...END]],
    ['VALIDATE_SCHEMA rejects', machines.step, stepInput([]), ONE_FILE, [...CHECKS.slice(0, 3), ...END]],
    ['it is repeated', replaying, stepInput(proposal('THINK', {}), SEEN), ONE_FILE, [...CHECKS.slice(0, 3), ...END]],
    [
      'VALIDATE_ACTION rejects',
      machines.step,
      stepInput(proposal('FLY', {})),
      ONE_FILE,
      [...CHECKS.slice(0, 4), ...END],
    ],
    ['VALIDATE_ARGS rejects', machines.step, stepInput(proposal('THINK', { x: 1 })), ONE_FILE, [...CHECKS, ...END]],
    [
      'AUTHORIZE rejects by the lane',
      prohibiting,
      stepInput(proposal('READ_FILE', READ)),
      ONE_FILE,
      [...JUDGED, 'AUTHORIZE.startingMediatedRun', ...END],
    ],
    [
      'AUTHORIZE rejects by the facts',
      machines.step,
      stepInput(proposal('READ_FILE', READ)),
      { paths: [{ status: 'refused', kind: 'symlink' }], usage: null },
      [...JUDGED, 'AUTHORIZE.gatheringFacts', 'AUTHORIZE.startingMediatedRun', ...END],
    ],
    [
      'everything allows',
      machines.step,
      stepInput(proposal('READ_FILE', READ)),
      ONE_FILE,
      [...JUDGED, 'AUTHORIZE.gatheringFacts', 'AUTHORIZE.startingMediatedRun', 'EXECUTE.executing', ...END],
    ],
    [
      'the action has no privilege',
      machines.step,
      stepInput(proposal('THINK', {})),
      ONE_FILE,
      [...JUDGED, 'EXECUTE.executing', ...END],
    ],
  ])('when %s', (_what, machine, input, facts, expected) => {
    const { states, said } = runStep(machine, input, facts);
    expect(states).toEqual(expected);
    expect(said.filter(({ type }) => type === 'step_trace')).toHaveLength(1);
    expect(said.filter(({ type }) => type === 'reply')).toHaveLength(1);
  });
});

test('S4-35 S4-36 S4-38: an undecidable prohibition denies, and the denial is audited', () => {
  const { said } = runStep(prohibiting, stepInput(proposal('READ_FILE', READ)));
  expect(said).toContainEqual(
    expect.objectContaining({
      body: expect.objectContaining({ authz: expect.objectContaining({ rule_id: 'prohibition.unknown' }) }),
    }),
  );
  expect(said.filter(({ type }) => type === 'command')).toEqual([]);
});

test('S0-52 S2-14 S2-17 S4-81 U-01: only an action without privilege, and STARTED, lead to EXECUTE', () => {
  expect(edgesOf(machines.step).map(edgeText)).toEqual([
    'RECEIVE -[hasFault]-> RECORD',
    'RECEIVE --> PARSE',
    'PARSE -[hasFault]-> RECORD',
    'PARSE --> VALIDATE_SCHEMA',
    'VALIDATE_SCHEMA -[hasFault]-> RECORD',
    'VALIDATE_SCHEMA -[isReplay]-> RECORD',
    'VALIDATE_SCHEMA --> VALIDATE_ACTION',
    'VALIDATE_ACTION -[hasFault]-> RECORD',
    'VALIDATE_ACTION --> VALIDATE_ARGS',
    'VALIDATE_ARGS -[hasFault]-> RECORD',
    'VALIDATE_ARGS --> AUTHORIZE',
    'AUTHORIZE -APPROVALS_CHANGED-> AUTHORIZE',
    'AUTHORIZE -STOP_RETRYING-> AUTHORIZE',
    'AUTHORIZE.authorizing -[hasFault]-> RECORD',
    'AUTHORIZE.authorizing -[shouldAwaitVotes]-> AUTHORIZE.awaitingVotes',
    'AUTHORIZE.authorizing -[isUnprivileged]-> EXECUTE',
    'AUTHORIZE.authorizing -[hasVerdictForCaller]-> AUTHORIZE.startingCallerRun',
    'AUTHORIZE.authorizing -[hasVerdict]-> AUTHORIZE.startingMediatedRun',
    'AUTHORIZE.authorizing --> AUTHORIZE.gatheringFacts',
    'AUTHORIZE.awaitingVotes -APPROVALS_CHANGED-> AUTHORIZE.votesCounted',
    'AUTHORIZE.awaitingVotes -WAKE[hasPendingVotes]-> AUTHORIZE.awaitingVotes',
    'AUTHORIZE.awaitingVotes -WAKE[hasApprovedRequest]-> RECORD',
    'AUTHORIZE.awaitingVotes -WAKE-> EXECUTE',
    'AUTHORIZE.awaitingVotes -CANCEL-> RECORD',
    'AUTHORIZE.awaitingVotes -STOP_RETRYING-> RECORD',
    'AUTHORIZE.votesCounted -[hasPendingVotes]-> AUTHORIZE.awaitingVotes',
    'AUTHORIZE.votesCounted -[hasApprovedRequest]-> RECORD',
    'AUTHORIZE.votesCounted --> EXECUTE',
    'AUTHORIZE.gatheringFacts -FACTS[isCallerExecuted]-> AUTHORIZE.startingCallerRun',
    'AUTHORIZE.gatheringFacts -FACTS-> AUTHORIZE.startingMediatedRun',
    'AUTHORIZE.gatheringFacts -CANCEL[isCallerExecuted]-> AUTHORIZE.startingCallerRun',
    'AUTHORIZE.gatheringFacts -CANCEL-> AUTHORIZE.startingMediatedRun',
    'AUTHORIZE.startingCallerRun -STARTED[usesApproval]-> EXECUTE',
    'AUTHORIZE.startingCallerRun -STARTED-> EXECUTE',
    'AUTHORIZE.startingCallerRun -CALLER_RUN_DENIED-> RECORD',
    'AUTHORIZE.startingMediatedRun -STARTED[usesApproval]-> EXECUTE',
    'AUTHORIZE.startingMediatedRun -STARTED-> EXECUTE',
    'AUTHORIZE.startingMediatedRun -xstate.done.actor.*-> RECORD',
    'EXECUTE -STOP_RETRYING-> EXECUTE',
    'EXECUTE.executing -xstate.done.actor.*[canRetry]-> EXECUTE.awaitingRetry',
    'EXECUTE.executing -xstate.done.actor.*-> RECORD',
    'EXECUTE.executing -CANCEL-> EXECUTE.executing',
    'EXECUTE.executing -[isCallerExecuted]-> RECORD',
    'EXECUTE.executing -[isUnprivileged]-> RECORD',
    'EXECUTE.awaitingRetry -WAKE[isRetryDue]-> EXECUTE.retrying',
    'EXECUTE.awaitingRetry -WAKE-> EXECUTE.awaitingRetry',
    'EXECUTE.awaitingRetry -CANCEL-> RECORD',
    'EXECUTE.awaitingRetry -STOP_RETRYING-> RECORD',
    'EXECUTE.retrying -STARTED-> EXECUTE.executing',
    'EXECUTE.retrying -xstate.done.actor.*-> RECORD',
    'RECORD --> RESPOND',
  ]);
});

test('S2-17 S4-14: STARTED comes only from the machine of mediated runs, which is spawned by the name of its kind', () => {
  const actors = machines.step.implementations.actors as unknown as Record<string, MediatedMachine>;
  expect(Object.keys(actors)).toEqual(['tool_gateway', 'db_write', 'db_read']);
  for (const actor of Object.values(actors)) expect(actor.config).toBe(machines.mediated.config);
});

/** XState's report of a taken transition. */
type Transition = Pick<AnyTransitionDefinition, 'source' | 'eventType' | 'target'> & { readonly guard?: unknown };

interface Path {
  readonly policies?: readonly Artifact[];
  readonly scope?: Record<string, string>;
  /** Of an agent that has the tools of a service. Default: an agent with the sandbox alone. */
  readonly governed?: true;
  readonly go: (d: TreeDriver) => void;
  /** Outcome, phase_failed_at, rule_id, and the number of executed effects. */
  readonly ends: readonly [string, string | null, string | null, number];
}
const act = (action: string, args: object, facts?: SandboxFacts) => (d: TreeDriver) => void d.act(action, args, facts);
const WRITE = { path: '/sandbox/a.txt', content: 'x' };
/** Proposes the same bytes again, with what the engine knows of the first time. */
const twice = (d: TreeDriver): void => {
  const again = proposal('THINK', {});
  const { replies, artifacts } = d.propose(again);
  const response: Artifact = { kind: 'response', case_id: CASE, bytes: Buffer.from(replies[0]!.response) };
  const { hash_sha256: payload_sha256 } = artifactRef(artifacts[0]!);
  d.propose(again, { ...SEEN, payload_sha256, response: artifactRef(response) }, AGENT, response);
};
const executed = (action: string, args: object, run_id: string) => (d: TreeDriver) => {
  d.act(action, args);
  d.done(run_id, {});
};

/** Fails the first attempt: the step waits for its retry. */
const failedOnce = (d: TreeDriver): TreeDriver => {
  d.act('READ_FILE', READ);
  d.failed(GATEWAY, 'IO_ERROR');
  return d;
};
const wake = (d: TreeDriver, overlay: OverlayFact | null = null) => d.send({ kind: 'wake', run_id: AGENT, overlay });
/** An approver answers the request for which a run was denied: the first one by default. */
const vote = (d: TreeDriver, decision: 'approve' | 'reject', denied: string = GATEWAY) => {
  const digests = [d.audit(denied)[0]?.request_hash_sha256 ?? ''];
  const approver = { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN' } as const;
  return d.send({ kind: 'vote', run_id: AGENT, digests, decision, approver, overlay: null });
};
const SECOND_TRY = `${AGENT}.2`;

/** A request that waits for votes, and then FINISH. */
const finishing = (d: TreeDriver): TreeDriver => {
  d.act('DELETE_FILE', READ);
  d.act('FINISH', { response: '' });
  return d;
};
/** Another request that waits for votes: on the first one, people vote while FINISH waits. */
const finishingTwo = (d: TreeDriver): TreeDriver => {
  d.act('DELETE_FILE', { path: '/sandbox/b.txt' });
  return finishing(d);
};
const SHELL = { tool: 'native.shell', input: {} };
const report = (d: TreeDriver, run_id: string) => {
  const actor = { actor_type: 'agent', actor_id: 'tester' } as const;
  return d.send({ kind: 'report', run_id, status: 'done', result: null, match: 'exact', actor });
};
/** Proposes a call of the shell, whose facts are still missing. */
const shellBeforeFacts = (d: TreeDriver) => void d.propose(proposal('CALL_TOOL', SHELL));

/** A driver with the agent of the path. */
function driverOf({ policies = SHIPPED, scope = {}, governed }: Path, watch?: (event: InspectionEvent) => void) {
  const d = new TreeDriver({
    policies,
    ...(governed ? { registrations: REGISTERED } : {}),
    ...(watch === undefined ? {} : { watch }),
  });
  d.open({ scope });
  d.startAgent(governed ? CASE_WORK : {});
  return d;
}

const PATHS: Record<string, Path> = {
  'a rejection by RECEIVE': { go: (d) => d.propose(''), ends: ['VALIDATION_ERROR', 'RECEIVE', 'payload.blank', 0] },
  'a rejection by PARSE': { go: (d) => d.propose('{'), ends: ['VALIDATION_ERROR', 'PARSE', 'json.syntax', 0] },
  'a rejection by VALIDATE_SCHEMA': {
    go: (d) => d.propose({}),
    ends: ['VALIDATION_ERROR', 'VALIDATE_SCHEMA', 'schema.missing_schema_version', 0],
  },
  'a rejection by VALIDATE_ACTION': {
    go: act('FLY', {}),
    ends: ['DENIED', 'VALIDATE_ACTION', 'action.not_in_allowlist', 0],
  },
  'a rejection by VALIDATE_ARGS': {
    go: act('READ_FILE', {}),
    ends: ['VALIDATION_ERROR', 'VALIDATE_ARGS', 'args.schema', 0],
  },
  'S4-33: denied for its tool': {
    policies: editedPolicy({ lanes: [['        - sandbox.read_file\n', '']] }),
    go: act('READ_FILE', READ),
    ends: ['DENIED', 'AUTHORIZE', 'lane.tool_not_allowed', 0],
  },
  'S4-33: denied for its write target': {
    policies: editedPolicy({ lanes: [['sandbox_files, mode: upsert', 'sandbox_files, mode: append']] }),
    go: act('WRITE_FILE', WRITE),
    ends: ['DENIED', 'AUTHORIZE', 'lane.write_mode_not_allowed', 0],
  },
  'S4-31 S4-32: denied for its role, in the lane of the action': {
    policies: editedPolicy({
      actions: [['- action: READ_FILE\n', '- action: READ_FILE\n    lane: EXPORT_CASE_DATA\n']],
    }),
    go: act('READ_FILE', READ),
    ends: ['DENIED', 'AUTHORIZE', 'role.lane_not_granted', 0],
  },
  'S4-34: denied for its scope': {
    policies: editedPolicy({ lanes: [['requires: [case_id, run_id]', 'requires: [case_id, run_id, coa_version]']] }),
    go: act('READ_FILE', READ),
    ends: ['DENIED', 'AUTHORIZE', 'scope.missing.coa_version', 0],
  },
  'denied for its path': {
    go: act('READ_FILE', { path: '/sandbox/.turnpike-x' }),
    ends: ['DENIED', 'AUTHORIZE', 'sandbox.reserved_name', 0],
  },
  'denied for its extension': {
    go: act('WRITE_FILE', { ...WRITE, path: '/sandbox/a.sh' }),
    ends: ['DENIED', 'AUTHORIZE', 'extension.not_allowed', 0],
  },
  'denied for the file facts': {
    go: act('READ_FILE', READ, { paths: [{ status: 'refused', kind: 'fifo' }], usage: null }),
    ends: ['DENIED', 'AUTHORIZE', 'sandbox.fifo', 0],
  },
  'denied without facts': {
    go: act('WRITE_FILE', WRITE, { paths: [FILE], usage: null }),
    ends: ['DENIED', 'AUTHORIZE', 'sandbox.no_facts', 0],
  },
  'denied for its quota': {
    go: act('WRITE_FILE', WRITE, { paths: [ABSENT], usage: { bytes: 0, files: 10_000 } }),
    ends: ['DENIED', 'AUTHORIZE', 'quota.files', 0],
  },
  'C52: denied below its gateway': {
    scope: { run_id: GATEWAY },
    go: act('WRITE_FILE', WRITE),
    ends: ['DENIED', 'AUTHORIZE', 'scope.mismatch.run_id', 0],
  },
  'cancelled while it gathers': {
    go: (d) => void (d.propose(proposal('READ_FILE', READ)), d.cancel()),
    ends: ['DENIED', 'AUTHORIZE', 'lifecycle.run_ending', 0],
  },
  'cancelled while it executes, and done': {
    go: (d) => void (d.act('WRITE_FILE', WRITE), d.cancel(), d.cancel(AGENT), d.done(`${GATEWAY}.1`)),
    ends: ['SUCCESS', null, null, 1],
  },
  'cancelled while it executes, and failed': {
    go: (d) => void (d.act('READ_FILE', READ), d.cancel(GATEWAY), d.failed(GATEWAY, 'IO_ERROR')),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.io_error', 1],
  },
  'failed while it executes': {
    go: (d) => void (d.act('WRITE_FILE', WRITE), d.failed(`${GATEWAY}.1`, 'NO_SPACE')),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.no_space', 1],
  },
  'of unknown outcome': {
    go: (d) => void (d.act('READ_FILE', READ), d.result(GATEWAY, { status: 'unknown' })),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.outcome_unknown', 1],
  },
  'C54: tried again, and done': {
    policies: RETRYING,
    go: (d) => void (failedOnce(d), wake(d.wait(59_000)), d.done(SECOND_TRY)),
    ends: ['SUCCESS', null, null, 2],
  },
  'C54: woken early, and tried again as often as policy lets it': {
    policies: RETRYING,
    go: (d) => void (wake(failedOnce(d)), wake(d.wait(58_000)), d.failed(SECOND_TRY, 'TIMEOUT')),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.timeout', 2],
  },
  'C54: cancelled while it waits to try again': {
    policies: RETRYING,
    go: (d) => void failedOnce(d).cancel(),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.io_error', 1],
  },
  'C54: interrupted while it waits to try again': {
    policies: RETRYING,
    go: (d) => void failedOnce(d).send({ kind: 'interrupt', run_id: AGENT }),
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.io_error', 1],
  },
  'C54: interrupted while it executes, and failed': {
    policies: RETRYING,
    go: (d) => {
      d.act('READ_FILE', READ);
      d.send({ kind: 'interrupt', run_id: AGENT });
      d.failed(GATEWAY, 'IO_ERROR');
    },
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.io_error', 1],
  },
  'C54: interrupted while it gathers, and failed': {
    policies: RETRYING,
    go: (d) => {
      d.propose(proposal('READ_FILE', READ));
      d.send({ kind: 'interrupt', run_id: AGENT });
      d.facts(ONE_FILE);
      d.failed(GATEWAY, 'IO_ERROR');
    },
    ends: ['EXECUTION_ERROR', 'EXECUTE', 'execute.io_error', 1],
  },
  'C54 D1: denied by the overlay when it is tried again': {
    policies: RETRYING,
    go: (d) => void (failedOnce(d), wake(d.wait(59_000), { epoch: null, problem: 'invalid' })),
    ends: ['DENIED', 'AUTHORIZE', 'overlay.unusable', 1],
  },
  'D7: approved': {
    policies: APPROVED,
    go: (d) => {
      d.act('DELETE_FILE', READ);
      vote(d, 'approve');
      d.act('DELETE_FILE', READ);
      d.done(`${SECOND_TRY}.1`);
    },
    ends: ['SUCCESS', null, null, 1],
  },
  'D7: not approved': {
    policies: APPROVED,
    go: act('DELETE_FILE', READ),
    ends: ['DENIED', 'AUTHORIZE', 'approval.required', 0],
  },
  'D7: approved, and rejected before it was decided': {
    policies: APPROVED,
    go: (d) => {
      d.act('DELETE_FILE', READ);
      vote(d, 'approve');
      d.propose(proposal('DELETE_FILE', READ));
      vote(d, 'reject');
      d.facts(ONE_FILE);
    },
    ends: ['DENIED', 'AUTHORIZE', 'approval.rejected', 0],
  },
  'C96: FINISH waits, until the request is rejected': {
    policies: WAITING,
    go: (d) => vote(finishing(d), 'reject'),
    ends: ['SUCCESS', null, null, 0],
  },
  'C96: FINISH waits, until one request is rejected and the other approved': {
    policies: WAITING,
    go: (d) => {
      finishingTwo(d);
      vote(d, 'reject');
      vote(d, 'approve', SECOND_TRY);
    },
    ends: ['DENIED', 'AUTHORIZE', 'finish.request_approved', 0],
  },
  'C96: FINISH waits, is woken early, and again when the request has expired': {
    policies: WAITING,
    go: (d) => void (wake(finishing(d)), wake(d.wait(3_600_000))),
    ends: ['SUCCESS', null, null, 0],
  },
  'C96: FINISH waits, and one request is approved before the other expires': {
    policies: WAITING,
    go: (d) => {
      d.act('DELETE_FILE', { path: '/sandbox/b.txt' });
      finishing(d.wait(60_000));
      vote(d, 'approve', SECOND_TRY);
      wake(d.wait(3_600_000 - 30_000));
    },
    ends: ['DENIED', 'AUTHORIZE', 'finish.request_approved', 0],
  },
  'FINISH waits, and is cancelled': {
    policies: WAITING,
    go: (d) => void finishing(d).cancel(),
    ends: ['DENIED', 'AUTHORIZE', 'lifecycle.run_ending', 0],
  },
  'FINISH waits, and is interrupted': {
    policies: WAITING,
    go: (d) => void finishing(d).send({ kind: 'interrupt', run_id: AGENT }),
    ends: ['DENIED', 'AUTHORIZE', 'lifecycle.run_ending', 0],
  },
  'U-08: executed by the caller': {
    ...{ policies: CALLER, governed: true },
    go: (d) => void (d.act('CALL_TOOL', SHELL), report(d, GATEWAY)),
    ends: ['SUCCESS', null, null, 0],
  },
  'U-08: executed by the caller, with an approval': {
    ...{ policies: CALLER_APPROVED, governed: true },
    go: (d) => {
      d.act('CALL_TOOL', SHELL);
      vote(d, 'approve');
      d.act('CALL_TOOL', SHELL);
      report(d, SECOND_TRY);
    },
    ends: ['SUCCESS', null, null, 0],
  },
  'U-08: executed by the caller, after its facts': {
    ...{ policies: CALLER_COUNTED, governed: true },
    go: (d) => {
      shellBeforeFacts(d);
      const calls = { name: 'calls', key: `run:${AGENT}`, used: 0, since: null, adds: 1 };
      d.send({ kind: 'facts', run_id: AGENT, facts: { paths: [], usage: null }, counters: [calls] });
      report(d, GATEWAY);
    },
    ends: ['SUCCESS', null, null, 0],
  },
  'U-08: for the caller, and cancelled before its facts': {
    ...{ policies: CALLER_COUNTED, governed: true },
    go: (d) => void (shellBeforeFacts(d), d.cancel()),
    ends: ['DENIED', 'AUTHORIZE', 'lifecycle.run_ending', 0],
  },
  'over its budget, without a run to deny': {
    policies: editedPolicy({ actions: [['steps_per_run_max: 100000', 'steps_per_run_max: 1']] }),
    go: (d) => void (d.act('THINK', {}), d.act('THINK', {})),
    ends: ['DENIED', 'AUTHORIZE', 'budget.steps', 0],
  },
  'C19: repeated, and rejected': { go: twice, ends: ['VALIDATION_ERROR', 'VALIDATE_SCHEMA', 'proposal.id_used', 0] },
  'C19: repeated, and replayed': { policies: REPLAY, go: twice, ends: ['SUCCESS', null, null, 0] },
  THINK: { go: act('THINK', {}), ends: ['SUCCESS', null, null, 0] },
  FINISH: { go: act('FINISH', { response: '' }), ends: ['SUCCESS', null, null, 0] },
  READ_FILE: { go: executed('READ_FILE', READ, GATEWAY), ends: ['SUCCESS', null, null, 1] },
  LIST_FILES: { go: executed('LIST_FILES', { path: '/sandbox/' }, GATEWAY), ends: ['SUCCESS', null, null, 1] },
  WRITE_FILE: { go: executed('WRITE_FILE', WRITE, `${GATEWAY}.1`), ends: ['SUCCESS', null, null, 1] },
  CREATE_DIRECTORY: {
    go: executed('CREATE_DIRECTORY', { path: '/sandbox/d' }, `${GATEWAY}.1`),
    ends: ['SUCCESS', null, null, 1],
  },
  DELETE_FILE: { go: executed('DELETE_FILE', READ, `${GATEWAY}.1`), ends: ['SUCCESS', null, null, 1] },
  RENAME_FILE: {
    go: executed('RENAME_FILE', { source: '/sandbox/a.txt', destination: '/sandbox/b.md' }, `${GATEWAY}.1`),
    ends: ['SUCCESS', null, null, 1],
  },
};

describe('S0-03 S0-04 S2-19 S2-20: a step has one outcome, one trace and one response, and one effect per attempt, in', () => {
  test.each(Object.entries(PATHS))('%s', (_name, path) => {
    const d = driverOf(path);
    path.go(d);
    const [outcome, phase_failed_at, rule_id, performed] = path.ends;
    const steps = d.inputs.filter(({ recorded }) => recorded.kind === 'proposal').length;
    expect(d.traces.map(({ step_index }) => step_index)).toEqual(d.traces.map((_trace, i) => i + 1));
    expect([d.traces.length, d.responses.length]).toEqual([steps, steps]);
    expect(d.traces.at(-1)).toMatchObject({ outcome, phase_failed_at, rule_id });
    expect(d.responses.at(-1)).toMatchObject({ outcome });
    expect(d.commands.filter(({ kind }) => kind === 'perform')).toHaveLength(performed);
    expect(d.tree.pending).toEqual([]);
  });
});

test('S0-12 S0-13 S2-17: these paths take every transition of the chart, and every guard both ways', () => {
  const taken = new Set<string>();
  const held = new Map<string, Set<boolean>>();
  for (const path of Object.values(PATHS)) {
    const watch = (event: InspectionEvent): void => {
      if (event.type !== '@xstate.microstep' || !(event.actorRef as AnyActorRef).id.endsWith('/step')) return;
      for (const { source, eventType, guard, target } of event._transitions as readonly Transition[]) {
        for (const to of target ?? [source]) {
          const edge = {
            from: source.path.join('.'),
            event: String(eventType),
            guard: guard === undefined ? null : guardText(guard),
            to: to.path.join('.'),
          };
          taken.add(edgeText(edge));
          noteGuards(edge);
        }
      }
    };
    path.go(driverOf(path, watch));
  }
  const edges = edgesOf(machines.step);
  expect([...taken].sort()).toEqual(edges.map(edgeText).sort());
  expect([...held].filter(([, ways]) => ways.size < 2).map(([key]) => key)).toEqual([]);

  /** The taken branch held; those before it, for the same event of the same state, did not. */
  function noteGuards(edge: Edge): void {
    let decided = false;
    for (const { from, event, guard, to } of edgesOf(machines.step)) {
      if (from !== edge.from) continue;
      // In a state that waits for an event, none of its `always` guards held.
      const [same, waiting] = [event === edge.event, event === '' && edge.event !== ''];
      if (!waiting && (!same || decided)) continue;
      const chosen = same && guard === edge.guard && to === edge.to;
      const key = `${from} ${event} ${guard ?? ''}`;
      if (guard !== null) held.set(key, (held.get(key) ?? new Set<boolean>()).add(chosen));
      decided ||= chosen;
    }
  }
});
