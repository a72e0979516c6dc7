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
import { emptyBook } from '../../src/core/policy/approval/approval.js';
import { EMPTY_LABEL } from '../../src/core/policy/labels.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { limitsOf, openAccount } from '../../src/core/run/budget.js';
import { ABSENT, AGENT, CASE, editedPolicy, FILE, ONE_FILE, proposal, SHIPPED, TreeDriver } from '../fixtures/tree.js';
import { edgesOf, edgeText, guardText, recordMachine, machines, type Edge } from './chart.js';

const GATEWAY = `${AGENT}.1`;
const REPLAY = editedPolicy({ actions: [['duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay']] });
const RETRYING = editedPolicy({ actions: [['knobs:\n', 'retries: { max: 1, backoff_ms: 60000 }\nknobs:\n']] });
const APPROVED = editedPolicy({
  actions: [
    [
      'knobs:\n',
      'approvals:\n  - { for: DELETE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\nknobs:\n',
    ],
  ],
});

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
  if (actor.getSnapshot().matches({ AUTHORIZE: 'gathering' })) actor.send({ type: 'FACTS', facts });
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
const JUDGED = [...CHECKS, 'AUTHORIZE.judging'];
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
      [...JUDGED, 'AUTHORIZE.deciding', ...END],
    ],
    [
      'AUTHORIZE rejects by the facts',
      machines.step,
      stepInput(proposal('READ_FILE', READ)),
      { paths: [{ status: 'refused', kind: 'symlink' }], usage: null },
      [...JUDGED, 'AUTHORIZE.gathering', 'AUTHORIZE.deciding', ...END],
    ],
    [
      'everything allows',
      machines.step,
      stepInput(proposal('READ_FILE', READ)),
      ONE_FILE,
      [...JUDGED, 'AUTHORIZE.gathering', 'AUTHORIZE.deciding', 'EXECUTE.performing', ...END],
    ],
    [
      'the action has no privilege',
      machines.step,
      stepInput(proposal('THINK', {})),
      ONE_FILE,
      [...JUDGED, 'EXECUTE.performing', ...END],
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
    'RECEIVE -[refused]-> RECORD',
    'RECEIVE --> PARSE',
    'PARSE -[refused]-> RECORD',
    'PARSE --> VALIDATE_SCHEMA',
    'VALIDATE_SCHEMA -[refused]-> RECORD',
    'VALIDATE_SCHEMA -[repeated]-> RECORD',
    'VALIDATE_SCHEMA --> VALIDATE_ACTION',
    'VALIDATE_ACTION -[refused]-> RECORD',
    'VALIDATE_ACTION --> VALIDATE_ARGS',
    'VALIDATE_ARGS -[refused]-> RECORD',
    'VALIDATE_ARGS --> AUTHORIZE',
    'AUTHORIZE -BOOK-> AUTHORIZE',
    'AUTHORIZE -STOP_RETRYING-> AUTHORIZE',
    'AUTHORIZE.judging -[refused]-> RECORD',
    'AUTHORIZE.judging -[mustWait]-> AUTHORIZE.waiting',
    'AUTHORIZE.judging -[unprivileged]-> EXECUTE',
    'AUTHORIZE.judging -[judgedExternal]-> AUTHORIZE.delegating',
    'AUTHORIZE.judging -[judged]-> AUTHORIZE.deciding',
    'AUTHORIZE.judging --> AUTHORIZE.gathering',
    'AUTHORIZE.waiting -BOOK-> AUTHORIZE.counted',
    'AUTHORIZE.waiting -WAKE[votesPending]-> AUTHORIZE.waiting',
    'AUTHORIZE.waiting -WAKE[approvedMeanwhile]-> RECORD',
    'AUTHORIZE.waiting -WAKE-> EXECUTE',
    'AUTHORIZE.waiting -CANCEL-> RECORD',
    'AUTHORIZE.waiting -STOP_RETRYING-> RECORD',
    'AUTHORIZE.counted -[votesPending]-> AUTHORIZE.waiting',
    'AUTHORIZE.counted -[approvedMeanwhile]-> RECORD',
    'AUTHORIZE.counted --> EXECUTE',
    'AUTHORIZE.gathering -FACTS[external]-> AUTHORIZE.delegating',
    'AUTHORIZE.gathering -FACTS-> AUTHORIZE.deciding',
    'AUTHORIZE.gathering -CANCEL[external]-> AUTHORIZE.delegating',
    'AUTHORIZE.gathering -CANCEL-> AUTHORIZE.deciding',
    'AUTHORIZE.delegating -STARTED[approved]-> EXECUTE',
    'AUTHORIZE.delegating -STARTED-> EXECUTE',
    'AUTHORIZE.delegating -REFUSED-> RECORD',
    'AUTHORIZE.deciding -STARTED[approved]-> EXECUTE',
    'AUTHORIZE.deciding -STARTED-> EXECUTE',
    'AUTHORIZE.deciding -xstate.done.actor.*-> RECORD',
    'EXECUTE -STOP_RETRYING-> EXECUTE',
    'EXECUTE.performing -xstate.done.actor.*[mayTryAgain]-> EXECUTE.resting',
    'EXECUTE.performing -xstate.done.actor.*-> RECORD',
    'EXECUTE.performing -CANCEL-> EXECUTE.performing',
    'EXECUTE.performing -[external]-> RECORD',
    'EXECUTE.performing -[unprivileged]-> RECORD',
    'EXECUTE.resting -WAKE[due]-> EXECUTE.retrying',
    'EXECUTE.resting -WAKE-> EXECUTE.resting',
    'EXECUTE.resting -CANCEL-> RECORD',
    'EXECUTE.resting -STOP_RETRYING-> RECORD',
    'EXECUTE.retrying -STARTED-> EXECUTE.performing',
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
/** An approver answers the request for which the first run was denied. */
const vote = (d: TreeDriver, decision: 'approve' | 'reject') => {
  const digests = [d.audit(GATEWAY)[0]?.request_hash_sha256 ?? ''];
  const approver = { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN' } as const;
  return d.send({ kind: 'vote', run_id: AGENT, digests, decision, approver, overlay: null });
};
const SECOND_TRY = `${AGENT}.2`;

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
  test.each(Object.entries(PATHS))('%s', (_name, { policies = SHIPPED, scope = {}, go, ends }) => {
    const d = new TreeDriver({ policies }).ready({ scope });
    go(d);
    const [outcome, phase_failed_at, rule_id, performed] = ends;
    const steps = d.inputs.filter(({ recorded }) => recorded.kind === 'proposal').length;
    expect(d.traces.map(({ step_index }) => step_index)).toEqual(d.traces.map((_trace, i) => i + 1));
    expect([d.traces.length, d.responses.length]).toEqual([steps, steps]);
    expect(d.traces.at(-1)).toMatchObject({ outcome, phase_failed_at, rule_id });
    expect(d.responses.at(-1)).toMatchObject({ outcome });
    expect(d.commands.filter(({ kind }) => kind === 'perform')).toHaveLength(performed);
    expect(d.tree.pending).toEqual([]);
  });
});

/**
 * The parts of a FINISH that waits for votes (test/host/finish-with-pending-request.test.ts) and of actions that the
 * caller executes (test/runtime/agents/action-reports.test.ts), which are tested there.
 */
const ELSEWHERE = {
  states: ['AUTHORIZE.waiting', 'AUTHORIZE.counted', 'AUTHORIZE.delegating'],
  guards: ['mustWait', 'judgedExternal', 'external'],
};
const isElsewhere = ({ from, to, guard }: Edge): boolean =>
  ELSEWHERE.states.some((state) => from === state || to === state) || ELSEWHERE.guards.some((name) => name === guard);

test('S0-12 S0-13 S2-17: these paths take every other transition of the chart, and every guard both ways', () => {
  const taken = new Set<string>();
  const held = new Map<string, Set<boolean>>();
  for (const { policies = SHIPPED, scope = {}, go } of Object.values(PATHS)) {
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
    go(new TreeDriver({ policies, watch }).ready({ scope }));
  }
  const edges = edgesOf(machines.step).filter((edge) => !isElsewhere(edge));
  expect([...taken].sort()).toEqual(edges.map(edgeText).sort());
  const guards = [...held].filter(([key]) => !ELSEWHERE.guards.some((name) => key.endsWith(` ${name}`)));
  expect(guards.map(([, ways]) => [...ways].sort())).toEqual(guards.map(() => [false, true]));

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
