// The session as a machine: what its runs do while it is paused, resumed and ended, and that both interpreters reach
// the same state from any point of its history.

import { sessionOf } from '../../../../src/features/sessions/tree/session-of.js';
import { describe, expect, test } from '@jest/globals';
import { artifactRef, type Artifact } from '../../../../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { Fold } from '../../../../src/kernel/fold.js';
import { TABLE_DRIVEN } from '../../../../src/kernel/interpreter/interpreter.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../../../src/kernel/tree.js';
import { EMPTY_LABEL } from '../../../../src/core/policy/authorize-run.js';
import { sized } from '../../../fixtures/campaign.js';
import { RandomSession } from '../../../fixtures/random-session.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import { MAINTAINER, RUNNER, SESSION, SessionDriver, type SessionOptions } from '../../../fixtures/session.js';
import { editedPolicy, essence, proposal, tell } from '../../../fixtures/tree.js';
import { xstateInterpretation } from '../../../../src/kernel/interpreter/xstate-actors.js';

const XSTATE = xstateInterpretation();
const stored = (tree: Tree): TreeSnapshot => JSON.parse(JSON.stringify(tree.snapshot())) as TreeSnapshot;
const ended = (d: SessionDriver) => d.decisions.flatMap(({ ended: all }) => all.map(({ run_id }) => run_id));
const eventsNamed = (d: SessionDriver, event: string) =>
  d.bodies('session_event').filter((body) => body.event === event);
const codeOf = ({ error }: SessionAnswer) => error?.code ?? null;

const GATE = { reviewer: 'callback' } as const;
const TWO = spec(phase('p1', [make('a'), verify('v')], GATE), phase('p2', [make('b')]));
const startWorking = (options: SessionOptions = {}): SessionDriver => {
  const d = new SessionDriver({ spec: TWO, ...options }).start();
  d.next();
  return d;
};
const verifying = (): SessionDriver => {
  const d = startWorking();
  d.work();
  return d;
};
const startCheck = (d: SessionDriver): void => {
  const { step, type } = d.outstanding;
  const { step_id, phase_id } = step;
  const name = type === 'run_fidelity_gate' ? 'review' : 'verify';
  expect(name === 'verify' ? d.ask({ name, step_id }) : d.ask({ name, step_id, phase_id: phase_id ?? '' })).toBeNull();
};
/** The agent of the step has started a write that has no result yet. */
const writing = (d: SessionDriver): string => {
  const agent = d.outstanding.step.run_id ?? '';
  d.act('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }, { paths: [], usage: { bytes: 0, files: 0 } }, agent);
  return d.tree.pending.find(({ kind }) => kind === 'perform')?.run_id ?? 'nothing';
};

describe('the runs of an activation', () => {
  const started = {
    actor: { actor_type: 'agent', actor_id: 'somebody' },
    role_id: 'SANDBOX_AGENT',
    lane_id: 'SANDBOX_FILES',
    overlay: null,
  } as const;

  test.each([SESSION, `${SESSION}.1`])('are started only by the session: no input starts one in %s', (run_id) => {
    const d = startWorking();
    const { refused, entries } = d.send({
      kind: 'start_agent',
      run_id,
      ...started,
      exposure: 'detailed',
      link: 'attached',
      idle_ms: null,
      budget: null,
    });
    expect([refused, entries.length]).toEqual([true, 2]);
    // Its runs have the ids that the session expects.
    expect(d.work().data?.next_step?.run_id).toBe(`${SESSION}.1.2`);
    expect(d.created(`${SESSION}.1.2`).actor.actor_id).toBe('agent');
    expect(d.work().success).toBe(true);
  });

  test('include no promotion or export', () => {
    const d = startWorking();
    const bytes = Buffer.from('{"action":"EXPORT_BUNDLE","args":{}}');
    const request: Artifact = { kind: 'request', case_id: 'case-1', bytes };
    const { refused } = d.send(
      {
        kind: 'start_run',
        run_id: `${SESSION}.1`,
        ...started,
        run_kind: 'export',
        request: artifactRef(request),
        inputs: [],
        facts: { artifact_flags: [], label: EMPTY_LABEL },
      },
      [request],
    );
    expect(refused).toBe(true);
    expect(d.work().data?.next_step?.run_id).toBe(`${SESSION}.1.2`);
  });
});

describe('U-01 U-06: random sessions', () => {
  const SEEDS = Array.from({ length: sized(20, 100) }, (_, i) => 9_001 + i);
  const runRandomSession = (seed: number): SessionDriver =>
    new RandomSession(seed).live({ inputs: 30, maimed: true }).driver;

  test('D16: decide the same in both interpreters, each continued from the snapshots of the other', () => {
    let inputs = 0;
    for (const seed of SEEDS.slice(0, sized(10, 60))) {
      const d = runRandomSession(seed);
      let [ours, theirs] = [new Tree(d.tree_id, TABLE_DRIVEN), new Tree(d.tree_id, XSTATE)];
      for (const [i, input] of d.inputs.entries()) {
        const decided = [ours.decide(input), theirs.decide(input), d.decisions[i]!].map(essence);
        expect([seed, i, new Set(decided).size]).toEqual([seed, i, 1]);
        expect(canonicalJson(stored(theirs))).toBe(canonicalJson(stored(ours)));
        [ours, theirs] = [
          restoreTree(stored(theirs), d.policies, TABLE_DRIVEN),
          restoreTree(stored(ours), d.policies, XSTATE),
        ];
        expect(sessionOf(ours)).toEqual(sessionOf(theirs));
        inputs += 1;
      }
      expect(ours.hasEnded).toBe(d.tree.hasEnded);
    }
    expect(inputs).toBeGreaterThan(sized(250, 1_500));
  }, 120_000);

  test('fold from their record to the same state, with every reply', () => {
    for (const seed of SEEDS) {
      const d = runRandomSession(seed);
      const fold = new Fold(d.tree_id);
      const replies = d.decisions.flatMap(({ entries, artifacts }) =>
        entries.flatMap(({ text, entry }, i) => {
          const applied = fold.apply({ seq: entry.seq, text }, i === 0 ? artifacts : []);
          if ('difference' in applied) throw new Error(`seed ${seed}: ${JSON.stringify(applied.difference)}`);
          return 'decision' in applied ? (applied.decision?.replies ?? []) : [];
        }),
      );
      expect(fold.finish()).toBeNull();
      expect(replies).toEqual(d.decisions.flatMap((decision) => decision.replies));
      expect(sessionOf(fold.tree)).toEqual(d.session);
      expect(fold.tree.head).toEqual(d.tree.head);
    }
  }, 120_000);

  test('answer every command once: at once, or when the awaited run has ended', () => {
    for (const seed of SEEDS) {
      const d = runRandomSession(seed);
      const requested = d.inputs.flatMap(({ recorded }, i) =>
        recorded.kind === 'session' && d.decisions[i]?.refused === false ? [recorded.input_id] : [],
      );
      const answered = d.decisions.flatMap(({ replies }) =>
        replies.flatMap(({ run_id, input_id }) => (run_id === SESSION ? [input_id] : [])),
      );
      const waiting = d.session.check?.input_id ?? [];
      expect([...answered, ...[waiting].flat()].sort()).toEqual([`${SESSION}/open`, ...requested].sort());
    }
  });
});

describe('an opened session', () => {
  test('has an activation: an orchestrator run that waits for its steps', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    expect(d.story()).toEqual([
      'input:open_session',
      `created:orchestrator@${SESSION}.1`,
      'session:start(running)',
      `authz_decision:allow(orchestrator.pinned)@${SESSION}.1`,
      `system:success(running)@${SESSION}.1`,
    ]);
    expect(d.created(`${SESSION}.1`)).toMatchObject({
      root_run_id: `${SESSION}.1`,
      parent_run_id: null,
      case_id: 'case-1',
    });
    const [{ response, input_id } = { response: '{}', input_id: '' }] = d.decisions[0]?.replies ?? [];
    expect(input_id).toBe(`${SESSION}/open`);
    expect(JSON.parse(response)).toMatchObject({ success: true, data: { status: 'running', state_version: 1 } });
  });

  test('is opened once', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    const { session } = d;
    expect(d.start().decisions.at(-1)?.refused).toBe(true);
    expect(d.session).toEqual(session);
  });

  test.each(['lanes', 'roles', 'actions'] as const)('fails for good without a valid pin of %s', (name) => {
    const d = new SessionDriver({ spec: TWO }).start({ problems: { [name]: 'dirty' } });
    expect(d.session).toMatchObject({ status: 'failed', failure_reason: 'activation_denied', outstanding: null });
    expect(eventsNamed(d, 'fail')).toMatchObject([
      { detail: { reason: 'activation_denied', rule_id: `pin.missing.${name}` } },
    ]);
    const { response } = d.decisions[0]!.replies[0]!;
    expect(JSON.parse(response)).toMatchObject({
      success: false,
      error: { code: 'SESSION_UNRECOVERABLE', details: [`pin.missing.${name}`] },
      data: { loop_signal: 'failed' },
    });
    expect(codeOf(d.next())).toBe('SESSION_UNRECOVERABLE');
    expect(codeOf(d.resume({ force: true }))).toBe('SESSION_UNRECOVERABLE');
    expect(codeOf(d.rebase(TWO))).toBe('SESSION_UNRECOVERABLE');
    expect(ended(d)).toEqual([`${SESSION}.1`, `${SESSION}.2`, `${SESSION}.3`]);
    expect(d.end().success).toBe(true);
    expect(d.tree.hasEnded).toBe(true);
  });

  test('rejects inputs for a run, because it is not a run', () => {
    const d = startWorking();
    const { session } = d;
    const strange = [
      d.cancel(SESSION),
      d.send({ kind: 'end', run_id: SESSION }),
      d.send({ kind: 'interrupt', run_id: SESSION }),
      d.wake(SESSION),
      d.startAgent({ run_id: SESSION }),
      d.propose(proposal('THINK', {}), null, SESSION),
      d.facts({ paths: [], usage: null }, SESSION),
    ];
    expect(strange.map(({ refused }) => refused)).toEqual(strange.map(() => true));
    expect(d.session).toEqual(session);
    expect(d.work().success).toBe(true);
  });
});

describe('a session that ends', () => {
  test.each<readonly [string, (d: SessionDriver) => unknown, string]>([
    ['by its end', (d) => d.end(), 'ended'],
    [
      'by the last of its steps',
      (d) => {
        while (d.session.status === 'running') d.work();
      },
      'completed',
    ],
  ])('%s ends its activation first', (_how, end, status) => {
    const d = startWorking();
    end(d);
    expect(d.session.status).toBe(status);
    expect(ended(d).slice(-2)).toEqual([`${SESSION}.1`, SESSION]);
    expect(d.tree.hasEnded).toBe(true);
    expect(d.tree.ending).toEqual(
      status === 'ended' ? { state: 'cancelled', reason: 'ended' } : { state: 'completed', reason: 'completed' },
    );
    expect(d.endings[`${SESSION}.1`]).toBe(status === 'ended' ? 'completed:ended:testing' : 'completed:completed');
    // No input changes the session any more.
    for (const decision of [d.cancel(`${SESSION}.1`), d.send({ kind: 'end', run_id: `${SESSION}.1` })]) {
      expect(decision.refused).toBe(true);
    }
  });

  test('waits for the effect in flight in its sandbox, and rejects inputs meanwhile', () => {
    const d = startWorking();
    const run_id = writing(d);
    d.end();
    expect(d.session.status).toBe('ended');
    expect(d.tree.hasEnded).toBe(false);
    expect(codeOf(d.resume())).toBe('INVALID_STATE_TRANSITION');
    expect(d.next().data).toMatchObject({ status: 'ended', next_step: null, loop_signal: 'paused_needs_attention' });
    d.done(run_id, { bytes_written: 1 });
    expect(d.tree.hasEnded).toBe(true);
    expect(ended(d).at(-1)).toBe(SESSION);
  });

  test('during a check answers the waiting client, and then ends', () => {
    const d = verifying();
    startCheck(d);
    d.end();
    expect(d.tree.hasEnded).toBe(false);
    expect(codeOf(d.checked())).toBe('CHECK_FAILED');
    expect(d.session).toMatchObject({ status: 'ended', check: null });
    expect(d.tree.hasEnded).toBe(true);
  });

  test('during a pause, without an activation, ends at once', () => {
    const d = startWorking();
    d.pause();
    d.end();
    expect(d.tree.hasEnded).toBe(true);
  });
});

describe('a pause', () => {
  test('ends the activation as completed, with the agent of the step', () => {
    const d = startWorking();
    d.pause();
    expect(d.endings).toMatchObject({
      [`${SESSION}.1.1`]: 'cancelled:paused:user',
      [`${SESSION}.1`]: 'completed:paused:user',
    });
    expect(d.tree.hasEnded).toBe(false);
  });

  test('keeps the outstanding step: it is reported later with the same proof', () => {
    const d = startWorking();
    const report = d.report();
    d.pause();
    expect(d.next().data?.next_step?.type).toBe('pause');
    const { data } = d.resume();
    expect(data?.next_step).toEqual({ ...d.outstanding.step, run_id: `${SESSION}.2.1` });
    expect(d.created(`${SESSION}.2.1`)).toMatchObject({ parent_run_id: `${SESSION}.2`, root_run_id: `${SESSION}.2` });
    expect(d.tree.isLive(`${SESSION}.2.1`)).toBe(true);
    expect(d.next(report).data?.next_step?.task_id).toBe('v');
  });

  test('without an outstanding step leaves none: the loop requests the next one', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    d.pause();
    expect(d.resume().data).toMatchObject({ status: 'running', next_step: null, loop_signal: null });
    expect(d.next().data?.next_step?.task_id).toBe('a');
  });

  test('during a check cancels it, and the step is verified again after the pause', () => {
    const d = verifying();
    startCheck(d);
    d.pause();
    expect(d.session.check).not.toBeNull();
    d.resume();
    const { step_id } = d.outstanding.step;
    expect(codeOf(d.tell({ name: 'verify', step_id }))).toBe('AGENT_BUSY');
    expect(codeOf(d.next(d.report('skipped')))).toBe('AGENT_BUSY');
    expect(codeOf(d.checked())).toBe('CHECK_FAILED');
    expect(d.outstanding.receipt).toBeNull();
    expect(d.work().data?.next_step?.type).toBe('run_fidelity_gate');
  });

  test('during a write waits for it in the old activation, and continues in a new one', () => {
    const d = startWorking();
    const run_id = writing(d);
    d.pause();
    expect(d.endings[`${SESSION}.1`]).toBeUndefined();
    d.resume();
    // Two agents of one step would conflict: the report is rejected until the first agent has ended.
    expect(codeOf(d.next(d.report()))).toBe('AGENT_BUSY');
    d.done(run_id, { bytes_written: 1 });
    expect(d.endings[`${SESSION}.1`]).toBe('completed:paused:user');
    expect(d.session.status).toBe('running');
    expect(d.next(d.report()).success).toBe(true);
  });

  test('leads to a new activation each time, with its own number and run', () => {
    const d = startWorking();
    for (let i = 0; i < 5; i += 1) {
      d.pause();
      d.resume();
    }
    expect(d.session.activation).toBe(6);
    const activations = d.bodies('run_created').filter(({ run_kind }) => run_kind === 'orchestrator');
    expect(activations.map(({ run_id }) => run_id)).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${SESSION}.${n}`));
    expect(d.outstanding.run_ids).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${SESSION}.${n}.1`));
    expect(d.work().success).toBe(true);
  });
});

describe('C93: a cancel of an activation from outside is refused', () => {
  /** The events of the session and its status do not change. */
  function expectRefused(d: SessionDriver): void {
    const [before, events] = [d.session, d.bodies('session_event').length];
    expect(d.cancel(`${SESSION}.1`, 'operator').refused).toBe(true);
    expect(d.session).toEqual(before);
    expect(d.bodies('session_event')).toHaveLength(events);
  }

  test('while it works, is paused and has been resumed', () => {
    const d = startWorking();
    expectRefused(d);
    d.pause();
    expectRefused(d);
    d.resume();
    expectRefused(d);
    expect(d.work().success).toBe(true);
  });

  test('during a check, which keeps its result', () => {
    const d = verifying();
    startCheck(d);
    expectRefused(d);
    expect(codeOf(d.checked())).toBeNull();
  });

  test('while its agent writes, which delays a check', () => {
    const d = verifying();
    const run_id = writing(d);
    expectRefused(d);
    d.done(run_id, { bytes_written: 1 });
    startCheck(d);
    expect(codeOf(d.checked())).toBeNull();
  });

  test('for the run of a check too', () => {
    const d = verifying();
    startCheck(d);
    expect(d.cancel(d.checking.run_id, 'operator').refused).toBe(true);
    expect(codeOf(d.checked())).toBeNull();
  });
});

describe('the agent run of a step', () => {
  test('may finish: its step is still to be reported', () => {
    const d = startWorking();
    d.propose(proposal('FINISH', { response: 'done' }), null, `${SESSION}.1.1`);
    expect(d.endings[`${SESSION}.1.1`]).toBe('completed:finished');
    expect(d.session.status).toBe('running');
    expect(codeOf(d.next())).toBe('STEP_RESULT_REQUIRED');
    expect(d.work().success).toBe(true);
  });

  test('may be cancelled: its step is still to be reported', () => {
    const d = startWorking();
    d.cancel(`${SESSION}.1.1`, 'operator');
    expect(d.session.status).toBe('running');
    expect(d.work().success).toBe(true);
  });

  test('may be denied by the overlay: its step can be reported, and done once the rule is gone', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    d.overlay = { epoch: null, problem: 'invalid' };
    d.next();
    expect(d.endings[`${SESSION}.1.1`]).toBe('denied:overlay.unusable');
    expect(d.work('failure').success).toBe(true);
    d.overlay = null;
    d.work('failure');
    expect(d.tree.isLive(d.outstanding.step.run_id ?? '')).toBe(true);
  });

  test('may be denied by policy, in the lane of its task: its step can be reported, and the spec corrected', () => {
    const lane = 'EXPORT_CASE_DATA';
    const d = startWorking({
      spec: spec(phase('p', [make('a', [], { lane })])),
      limits: { max_consecutive_errors: 2 },
    });
    expect(d.outstanding.step.lane_id).toBe(lane);
    expect(d.endings[`${SESSION}.1.1`]).toMatch(/^denied:/);
    d.work('failure');
    d.work('failure');
    expect(d.session.pause_reason).toBe('error_threshold');
    d.rebase(spec(phase('p', [make('a')])));
    d.next();
    expect(d.tree.isLive(d.outstanding.step.run_id ?? '')).toBe(true);
  });

  test('is a new one for every step, and only that of the outstanding step is live', () => {
    const d = startWorking();
    const live = (): string[] =>
      d.tree.runs.flatMap(({ context: { run_id, run_kind } }) =>
        run_kind === 'agent' && d.tree.isLive(run_id) ? [run_id] : [],
      );
    for (let i = 0; i < 3; i += 1) {
      expect(live()).toEqual([d.outstanding.step.run_id]);
      d.work();
    }
  });
});

describe('a check', () => {
  test('has no result if its outcome is unknown', () => {
    const d = verifying();
    startCheck(d);
    d.result(d.checking.run_id, { status: 'unknown' });
    expect(d.session).toMatchObject({ check: null, outstanding: { refused: 1, receipt: null } });
    expect(d.work().success).toBe(true);
  });

  test('that no policy allows is denied, and its answer reports that', () => {
    const policies = editedPolicy({ lanes: [['tools: [session.verify, session.review]', 'tools: [session.review]']] });
    const d = new SessionDriver({ spec: TWO, policies }).start();
    d.next();
    d.work();
    expect(codeOf(d.tell({ name: 'verify', step_id: d.outstanding.step.step_id }))).toBe('CHECK_FAILED');
    expect(d.endings[`${SESSION}.1.3`]).toMatch(/^denied:/);
    expect(d.tree.pending).toEqual([]);
  });

  test('ends neither the activation nor the agent of the step', () => {
    const d = verifying();
    d.check();
    expect(d.tree.isLive(`${SESSION}.1`)).toBe(true);
    expect(d.tree.isLive(d.outstanding.step.run_id ?? '')).toBe(true);
  });
});

describe('its ledger entries', () => {
  test('name the actor, the time, the version and the subject of every event', () => {
    const d = verifying();
    d.check();
    d.pause();
    d.resume();
    d.work();
    const events = d.bodies('session_event');
    expect(events.map(({ event, role }) => `${event} ${role}`)).toEqual([
      'start maintainer',
      'step_issued autonomy_runner',
      'step_consumed autonomy_runner',
      'step_issued autonomy_runner',
      'verification maintainer',
      'pause maintainer',
      'resume maintainer',
      'step_issued maintainer',
      'verification maintainer',
      'step_consumed autonomy_runner',
      'step_issued autonomy_runner',
    ]);
    expect(events[2]).toMatchObject({ actor: RUNNER.actor, step_type: 'implement_task', task_id: 'a', phase_id: 'p1' });
    expect(events[5]).toMatchObject({ actor: MAINTAINER.actor, pause_reason: 'user', status: 'paused' });
    expect(events.every(({ timestamp_utc }) => /^2026-01-01T00:00:\d\d\.000Z$/.test(timestamp_utc))).toBe(true);
  });

  test('have an input first, then its events, then the entries of the runs', () => {
    const d = startWorking();
    d.work();
    expect(d.decisions.at(-1)?.entries.map(tell)).toEqual([
      'input:session',
      'session:step_consumed(running)',
      'session:step_issued(running)',
      `system:success(completed:end_of_input)@${SESSION}.1.1`,
      `created:agent@${SESSION}.1.2`,
      `authz_decision:allow(agent.lane_granted)@${SESSION}.1.2`,
      `system:success(running)@${SESSION}.1.2`,
    ]);
  });
});
