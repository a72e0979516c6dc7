// The session machine: the state of each status, its activations that have not ended.

import { describe, expect, test } from '@jest/globals';
import type { InspectionEvent } from 'xstate';
import type { SessionMachineInput, SessionMemory } from '../../../../src/features/sessions/machine/session-machine.js';
import { rootContext } from '../../../../src/kernel/decision-builder.js';
import { actorIdOf } from '../../../../src/core/contract/inspection/xstate-fields.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { SESSION, SessionDriver } from '../../../fixtures/session.js';
import { machines, recordMachine, runAction, stateText } from '../../../machines/chart.js';
import { createSessionMachine } from '../../../../src/features/sessions/machine/session-machine.js';

const SESSION_MACHINE = createSessionMachine(machines.orchestrator);

const ONE = spec(phase('p1', [make('a')]));
const FIRST = `${SESSION}.1`;
const SECOND = `${SESSION}.2`;
const OTHER_HASH = { structure_hash: 'f'.repeat(64) };

const working = (): SessionDriver => {
  const d = new SessionDriver({ spec: ONE }).start();
  d.next();
  return d;
};
const memoryOf = (d: SessionDriver): SessionMemory => d.tree.actorState(SESSION)?.memory as unknown as SessionMemory;

/** The input of the machine, as the kernel starts it for this session. */
function machineInput(d: SessionDriver): SessionMachineInput {
  const open = d.inputs[0]?.recorded;
  if (open?.kind !== 'open_session') throw new Error('the first input opens the session');
  return { base: rootContext(open), open, spec: ONE };
}

describe('C53 C64: the state of the machine', () => {
  test.each<readonly [string, (d: SessionDriver) => unknown]>([
    ['running', (d) => d.heartbeat()],
    ['paused', (d) => d.pause()],
    ['failed', (d) => d.next(d.report(), { spec: OTHER_HASH })],
    ['completed', (d) => d.work()],
    ['ended', (d) => d.end()],
  ])('is %s if the session is', (status, bring) => {
    const states: string[] = [];
    const watch = (event: InspectionEvent): void => {
      if (event.type === '@xstate.microstep' && actorIdOf(event.actorRef) === SESSION)
        states.push(stateText(event.snapshot));
    };
    const d = new SessionDriver({ spec: ONE, watch }).start();
    d.next();
    bring(d);
    expect(d.session.status).toBe(status);
    expect(states.at(-1)).toBe(status);
    expect(d.tree.hasEnded).toBe(status === 'completed' || status === 'ended');
  });

  test('is closing while an activation is left', () => {
    const d = working();
    const agent = d.outstanding.step.run_id ?? '';
    const facts = { paths: [], usage: { bytes: 0, files: 0 } };
    d.act('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }, facts, agent);
    d.end();
    expect(d.tree.actorState(SESSION)?.path).toEqual(['closing']);
  });
});

test('C53: a session that ends waits for its last activation after an earlier one has ended', () => {
  const d = working();
  const write = (): string => {
    const agent = d.outstanding.step.run_id ?? '';
    const facts = { paths: [], usage: { bytes: 0, files: 0 } };
    d.act('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }, facts, agent);
    return d.tree.pending.find(({ kind, run_id }) => kind === 'perform' && run_id.startsWith(agent))?.run_id ?? '';
  };
  const first = write();
  d.pause();
  d.resume();
  const second = write();
  expect(memoryOf(d).live).toEqual([FIRST, SECOND]);
  d.done(first, { bytes_written: 1 });
  expect(memoryOf(d).live).toEqual([SECOND]);
  d.end();
  expect(d.tree.hasEnded).toBe(false);
  d.done(second, { bytes_written: 1 });
  expect(d.tree.hasEnded).toBe(true);
});

test('its time is that of the last command', () => {
  const d = working();
  d.wait(60_000).heartbeat();
  expect(memoryOf(d).now).toBe(d.inputs.at(-1)?.recorded.time);
});

test('C91: a session without a recorded configuration has no inputs', () => {
  const { actor, errors } = recordMachine(SESSION_MACHINE, SESSION, machineInput(working()));
  expect(actor.getSnapshot().context).toMatchObject({ inputs: [], live: [FIRST] });
  expect(errors).toEqual([]);
});

/** The memory of a working session, with members of the session replaced. */
const inMemory = (over: object) => {
  const memory = memoryOf(working());
  return { ...memory, session: { ...memory.session, ...over } };
};
const check = { kind: 'verify', run_id: `${FIRST}.9`, input_id: 'in-7', step_id: 's', gate_attempt_id: null };

describe('the end of an activation', () => {
  const ended = (actorId: string) => ({
    type: `xstate.done.actor.${actorId}`,
    actorId,
    output: { run_id: actorId, state: 'cancelled', end: { reason: 'stop', error: null }, done: null, spent: null },
  });

  test('answers the command that waits for a check of it, and takes it from the list', () => {
    const { context, emissions, stopped } = runAction(
      SESSION_MACHINE,
      'noteActivation',
      inMemory({ status: 'ended', check }),
      ended(FIRST),
    );
    const replies = emissions.filter(({ type }) => type === 'reply');
    expect(replies).toMatchObject([{ reply: { run_id: SESSION, input_id: 'in-7' } }]);
    expect(context).toMatchObject({ live: [], session: { check: null } });
    expect(stopped).toEqual([FIRST]);
  });

  test('answers no command if none waits', () => {
    const { context, emissions } = runAction(SESSION_MACHINE, 'noteActivation', inMemory({}), ended(FIRST));
    expect(emissions.map(({ type }) => type)).toEqual(['feature_entry']);
    expect(context).toMatchObject({ live: [], session: { status: 'paused' } });
  });
});
