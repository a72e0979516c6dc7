// The table-driven form of a machine. R3 is an invariant of run.ts.

import { describe, expect, test } from '@jest/globals';
import {
  assign,
  createMachine,
  emit,
  enqueueActions,
  fromPromise,
  raise,
  sendParent,
  sendTo,
  setup,
  type AnyStateMachine,
} from 'xstate';
import { createMachines } from '../../../machines/index.js';
import { tableDrivenActors, compileMachine } from '../../../src/kernel/interpreter/table-driven-actors.js';
import { testPolicy } from '../../fixtures/policy.js';

const never = (): boolean => false;

/** Definitions that XState accepts and our interpreter does not support: each must be rejected when it is compiled. */
const FOREIGN: Readonly<Record<string, () => AnyStateMachine>> = {
  'a parallel state': () => createMachine({ type: 'parallel', states: { a: {}, b: {} } }),
  'a history state': () => createMachine({ initial: 'a', states: { a: {}, h: { type: 'history' } } }),
  'a timer': () => createMachine({ initial: 'a', states: { a: { after: { 10: 'b' } }, b: {} } }),
  'an invoked promise': () =>
    createMachine({ initial: 'a', states: { a: { invoke: { src: fromPromise(() => Promise.resolve(1)) } } } }),
  'an exit action': () =>
    setup({ actions: { note: assign({}) } }).createMachine({ initial: 'a', states: { a: { exit: 'note' } } }),
  'a raised event': () => setup({ actions: { again: raise({ type: 'X' }) } }).createMachine({ entry: 'again' }),
  'an inline action': () => createMachine({ entry: () => undefined }),
  'an inline guard': () =>
    createMachine({ initial: 'a', states: { a: { on: { X: { guard: never, target: 'b' } } }, b: {} } }),
  'an action without an implementation': () => createMachine({ entry: 'nobody' }),
  'a wildcard for all events': () => createMachine({ initial: 'a', states: { a: { on: { '*': 'b' } }, b: {} } }),
  'a final state that is not at the top': () =>
    createMachine({ initial: 'a', states: { a: { initial: 'b', states: { b: { type: 'final' } } } } }),
  'a transition that reenters its own state': () =>
    createMachine({ initial: 'a', states: { a: { on: { X: { target: 'a', reenter: true } } } } }),
  'a transition that reenters the common parent': () =>
    createMachine({ initial: 'a', states: { a: { on: { X: { target: 'b', reenter: true } } }, b: {} } }),
  'an action of an initial transition': () =>
    setup({ actions: { note: assign({}) } }).createMachine({
      initial: 'a',
      states: { a: { initial: { target: 'b', actions: 'note' }, states: { b: {} } } },
    }),
  'a transition without an event and a target': () =>
    setup({ actions: { note: assign({}) } }).createMachine({ always: { actions: 'note' } }),
  'a delayed message': () =>
    setup({ actions: { later: sendTo('x', { type: 'X' }, { delay: 5 }) } }).createMachine({ entry: 'later' }),
};

describe('a chart', () => {
  test.each(Object.keys(FOREIGN))('U-01: rejects %s', (name) => {
    expect(() => compileMachine(FOREIGN[name]!())).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });

  test('is compiled once per machine, and for every machine of ours', () => {
    const { orchestrator, agent, step, mediated } = createMachines(testPolicy());
    for (const machine of [orchestrator, agent, step, mediated]) {
      expect(compileMachine(machine)).toBe(compileMachine(machine));
    }
    expect(() => compileMachine(orchestrator).actor('nobody')).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    expect(() => compileMachine(orchestrator).nodeAt(['nowhere'])).toThrow(
      expect.objectContaining({ code: 'INVARIANT' }),
    );
  });
});

/**
 * Cases that our machines never use, although a chart could: children that outlive an event, and messages without a
 * receiver.
 */
const grandchild = createMachine({ id: 'grandchild', initial: 'here', states: { here: {} } });
const child = setup({
  actors: { grandchild },
  actions: {
    begin: enqueueActions(({ enqueue }) => enqueue.spawnChild('grandchild', { id: 'grandkid' })),
    hi: emit({ type: 'hi' }),
    answer: sendParent({ type: 'ANSWER' }),
  },
}).createMachine({
  id: 'child',
  entry: 'begin',
  initial: 'here',
  states: { here: { on: { GO: { actions: 'hi' }, ASK: { actions: 'answer' }, END: 'gone' } }, gone: { type: 'final' } },
});
const parent = setup({
  actors: { child },
  actions: {
    begin: enqueueActions(({ enqueue }) => enqueue.spawnChild('child', { id: 'kid' })),
    stop: enqueueActions(({ enqueue }) => {
      enqueue.sendTo('kid', { type: 'GO' });
      enqueue.stopChild('kid');
    }),
    ask: enqueueActions(({ enqueue }) => {
      enqueue.sendTo('kid', { type: 'ASK' });
      enqueue.emit({ type: 'asked' });
    }),
    sayAnswered: emit({ type: 'answered' }),
    toNobody: enqueueActions(({ enqueue }) => enqueue.sendTo('nobody', { type: 'GO' })),
  },
}).createMachine({
  id: 'parent',
  context: {},
  entry: 'begin',
  initial: 'here',
  states: {
    here: {
      on: {
        STOP: { actions: 'stop' },
        ASK: { actions: 'ask' },
        ANSWER: { actions: 'sayAnswered' },
        LOSE: { actions: 'toNobody' },
        END: 'gone',
      },
    },
    gone: { type: 'final' },
  },
});

describe('actors of a chart', () => {
  const lively = (): { received: string[]; actors: ReturnType<typeof tableDrivenActors> } => {
    const received: string[] = [];
    const actors = tableDrivenActors(
      compileMachine(parent),
      'root',
      { input: {} },
      ({ type }) => void received.push(type),
    );
    return { received, actors };
  };

  test('a stopped child first takes the messages sent to it before, and none after', () => {
    const { received, actors } = lively();
    expect(actors.isLive('kid')).toBe(true);
    expect(actors.send('root', { type: 'STOP' })).toBe(true);
    expect(received).toEqual(['hi']);
    expect(actors.isLive('kid')).toBe(false);
    expect(actors.send('kid', { type: 'GO' })).toBe(false);
    // And the children below it.
    expect(actors.isLive('grandkid')).toBe(false);
  });

  test('a reply to a busy actor waits until the actor is done', () => {
    const { received, actors } = lively();
    expect(actors.isLive('grandkid')).toBe(true);
    expect(actors.send('root', { type: 'ASK' })).toBe(true);
    expect(received).toEqual(['asked', 'answered']);
  });

  test('R3: children end with their parent', () => {
    const { actors } = lively();
    actors.send('root', { type: 'END' });
    expect([actors.isLive('root'), actors.isLive('kid')]).toEqual([false, false]);
  });

  test('a message without a receiver is an error', () => {
    expect(() => lively().actors.send('root', { type: 'LOSE' })).toThrow(
      expect.objectContaining({ code: 'INVARIANT' }),
    );
  });
});
