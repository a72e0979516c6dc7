// The actions of an orchestrator run one by one.

import { describe, expect, test } from '@jest/globals';
import { createMachines } from '../../machines/index.js';
import {
  newChildContext,
  type LiveChild,
  type OrchestratorMemory,
  type StartAgentEvent,
} from '../../machines/orchestrator.js';
import type { RunOutput } from '../../machines/run.js';
import { artifactRef, type ArtifactRef } from '../../src/core/contract/artifact-ref.js';
import type { RunContext } from '../../src/core/contract/run/run-context.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { amountsOf, limitsOf, openAccount } from '../../src/core/run/budget-account.js';
import { ANNA } from '../fixtures/governed.js';
import { RUN } from '../fixtures/privileged.js';
import { shippedPolicy } from '../fixtures/shipped-policy.js';
import { NO_EFFECTS, recordMachine, runAction, without } from './chart.js';

const ROOT: RunContext = {
  ...RUN,
  run_id: 'run_root',
  run_kind: 'orchestrator',
  parent_run_id: null,
  lane_id: null,
  scope: { export_reason: 'discovery' },
};
const [FIRST, SECOND] = ['run_root.1', 'run_root.2'];
const SHIPPED = shippedPolicy();
const { orchestrator } = createMachines(SHIPPED);

const live = (run_id: string): LiveChild => ({ run_id, grant: null });
const memory = (over: Partial<OrchestratorMemory> = {}): OrchestratorMemory => ({
  run: ROOT,
  is_activation: false,
  inputs: [],
  outputs: [],
  end: null,
  ending: null,
  children: 2,
  live: [live(FIRST), live(SECOND)],
  account: openAccount(limitsOf({})),
  ...over,
});
const ref = (text: string): ArtifactRef => artifactRef({ kind: 'result', case_id: null, bytes: Buffer.from(text) });
const [CONFIGURATION, PROMPT, ONE, TWO] = ['configuration', 'prompt', '1', '2'].map(ref) as [
  ArtifactRef,
  ArtifactRef,
  ArtifactRef,
  ArtifactRef,
];

const START_AGENT: StartAgentEvent = {
  type: 'START_AGENT',
  actor: { actor_type: 'agent', actor_id: 'tester' },
  role_id: 'SANDBOX_AGENT',
  lane_id: 'SANDBOX_FILES',
  exposure: 'detailed',
  link: 'attached',
  idle_ms: null,
  budget: null,
  given: [PROMPT],
  overlay: null,
  time: '2026-01-01T00:00:00.000Z',
};
const START_EXPORT = {
  type: 'START_RUN',
  run_kind: 'export',
  ...ANNA,
  lane_id: 'EXPORT_CASE_DATA',
  act: { action: 'EXPORT_BUNDLE', args: {} },
  request: null,
  inputs: [],
  facts: { artifact_flags: ['export_bundle'], label: EMPTY_LABEL },
  overlay: null,
  time: '2026-01-01T00:00:00.000Z',
};
const ended = (run_id: string, outputs?: readonly ArtifactRef[]) => {
  const end = { reason: 'finished', error: null };
  const output: RunOutput = { run_id, state: 'completed', end, done: null, spent: null };
  const withOutputs = outputs === undefined ? output : { ...output, outputs };
  return { type: `xstate.done.actor.${run_id}`, actorId: run_id, output: withOutputs };
};

describe('C91: an agent run starts', () => {
  const inputOf = (over: Partial<OrchestratorMemory>, event: Partial<StartAgentEvent> = {}) => {
    const { spawned } = runAction(orchestrator, 'startAgent', memory(over), { ...START_AGENT, ...event });
    expect(spawned.map(([src, id]) => [src, id])).toEqual([['agent', 'run_root.3']]);
    return spawned[0]?.[2];
  };

  test('with the configuration of its tree and its own material, if the tree records them', () => {
    expect(inputOf({ inputs: [CONFIGURATION] })).toMatchObject({ inputs: [CONFIGURATION, PROMPT] });
    const { spawned } = runAction(orchestrator, 'startAgent', memory({ inputs: [CONFIGURATION] }), {
      ...without(START_AGENT, 'given'),
      type: START_AGENT.type,
    });
    expect(spawned[0]?.[2]).toMatchObject({ inputs: [CONFIGURATION] });
  });

  test('with nothing in a tree that does not record them', () => {
    expect(inputOf({})).toMatchObject({ inputs: [] });
  });

  test('C87: with the person of its actor, or none', () => {
    const person = { canonical_id: 'anna', skeletons: ['anna', 'anna'], looks: ['anna'], tables: 'unicode-15.1.0' };
    expect(inputOf({}, { person })).toMatchObject({ person });
    expect(inputOf({})).toMatchObject({ person: null });
  });
});

describe('D7: a run that a person starts', () => {
  const start = (policy: Policy) => {
    const machine = createMachines(policy).orchestrator;
    return runAction(machine, 'startRun', memory(), START_EXPORT);
  };
  const rule = { for: 'export', approver_roles: ['ATTORNEY_ADMIN'], quorum: 1, expires_minutes: 60 };

  test('gets its verdict at once if it needs no approval', () => {
    const { spawned, sent } = start({ ...SHIPPED, approvals: [] });
    expect(spawned).toMatchObject([['export', 'run_root.3', { approval: null }]]);
    expect(sent).toMatchObject([
      ['run_root.3', { type: 'AUTHORIZE', verdict: { decision: 'allow', rule_id: 'lane.granted' } }],
    ]);
  });

  test('gets none if it must wait for its approval', () => {
    const { spawned, sent } = start({ ...SHIPPED, approvals: [rule] });
    expect(spawned).toMatchObject([['export', 'run_root.3', { approval: { rule } }]]);
    expect(sent).toEqual([]);
  });
});

describe('C53: the end of a child', () => {
  test('is ordered of a live child, and of no other run', () => {
    const order = (run_id: string) =>
      runAction(orchestrator, 'endChild', memory(), { type: 'END_CHILD', run_id } as never);
    expect(order(SECOND)).toEqual({ ...NO_EFFECTS, sent: [[SECOND, { type: 'END' }]] });
    expect(order('run_root.9')).toEqual(NO_EFFECTS);
  });

  test('is requested with the reason of the run, or for the end of its parent', () => {
    const end = { reason: 'stop', error: null };
    const cancelled = (reason: string) => [FIRST, SECOND].map((run_id) => [run_id, { type: 'CANCEL', reason }]);
    expect(runAction(orchestrator, 'cancelChildren', memory({ end }), { type: 'CANCEL' }).sent).toEqual(
      cancelled('stop'),
    );
    expect(runAction(orchestrator, 'cancelChildren', memory(), { type: 'CANCEL' }).sent).toEqual(
      cancelled('parent_ended'),
    );
  });

  test('adds its products to those of earlier children', () => {
    const outputsAfter = (event: { readonly type: string }) =>
      runAction(orchestrator, 'applyChildEnd', memory({ outputs: [ONE] }), event).context['outputs'];
    expect(outputsAfter(ended(FIRST, [TWO]))).toEqual([ONE, TWO]);
    expect(outputsAfter(ended(FIRST))).toEqual([ONE]);
  });

  test('C52: a cancel changes no end that was decided before', () => {
    const cancel = (over: Partial<OrchestratorMemory>) =>
      runAction(orchestrator, 'applyCancel', memory(over), { type: 'CANCEL', reason: 'stop' } as never).context;
    expect(cancel({})).toEqual({ ending: 'cancelled', end: { reason: 'stop', error: null } });
    expect(cancel({ ending: 'failed' })).toEqual({});
  });
});

describe('S4-12: an orchestrator run', () => {
  const deny = {
    type: 'AUTHORIZE',
    verdict: { decision: 'deny', rule_id: 'pin.missing.lanes', cause: 'LANE' },
    overlay: null,
    digest: null,
  } as const;

  test('has no inputs unless it is started with some, and returns how it ended', () => {
    const { actor, errors } = recordMachine(orchestrator, ROOT.run_id, { run: ROOT });
    expect(actor.getSnapshot().context).toMatchObject({ is_activation: false, inputs: [], outputs: [], live: [] });
    actor.send(deny);
    expect(actor.getSnapshot().output).toEqual({
      run_id: ROOT.run_id,
      state: 'denied',
      end: { reason: 'pin.missing.lanes', error: null },
      done: null,
      spent: amountsOf({}),
      outputs: [],
    });
    expect(errors).toEqual([]);
  });
});

test('D12: a child run in a lane without a case has none', () => {
  const { lane_id, ...child } = { actor: ROOT.actor, role_id: 'SANDBOX_AGENT', lane_id: 'SANDBOX_FILES' };
  const lane = SHIPPED.lanes.get(lane_id)!;
  const caseIn = (policy: Policy, id = lane_id) =>
    newChildContext({ run: ROOT, children: 0 }, { ...child, lane_id: id }, 'agent', policy).case_id;
  const lanes = new Map([[lane_id, { ...lane, inherits_case_id: false }]]);
  expect(caseIn({ ...SHIPPED, lanes })).toBeNull();
  expect(caseIn(SHIPPED)).toBe(ROOT.case_id);
  expect(caseIn(SHIPPED, 'NOWHERE')).toBe(ROOT.case_id);
});
