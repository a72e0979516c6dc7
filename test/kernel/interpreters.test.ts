// Which interpreter a tree gets, and what happens to XState's actors when the tree leaves memory.

import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  assign,
  createMachine,
  emit,
  spawnChild,
  type AnyActorRef,
  type AnyStateMachine,
  type InspectionEvent,
} from 'xstate';
import type { Actors } from '../../src/kernel/interpreter/actors.js';
import type { Interpreter } from '../../src/kernel/interpreter/interpreter.js';
import type { TreeInput } from '../../src/kernel/decision.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { xstateActors, xstateInterpretation } from '../../src/kernel/interpreter/xstate-actors.js';
import { AGENT, essence, proposal, SHIPPED, TREE, TreeDriver } from '../fixtures/tree.js';

const INVARIANT = expect.objectContaining({ code: 'INVARIANT' });
/** Set by `jest.config.mjs`. */
const { INTERPRETER = 'table-driven' } = globalThis as { readonly INTERPRETER?: Interpreter };

/** Collects the actors of a tree as XState reports them. */
function actorsOf(): { readonly inspect: (event: InspectionEvent) => void; readonly actors: AnyActorRef[] } {
  const actors: AnyActorRef[] = [];
  const inspect = (event: InspectionEvent): void => {
    if (event.type === '@xstate.actor') actors.push(event.actorRef as AnyActorRef);
  };
  return { inspect, actors };
}

const statusOf = (actor: AnyActorRef): string => (actor.getSnapshot() as { readonly status: string }).status;
const active = (actors: readonly AnyActorRef[]): string[] =>
  actors.filter((actor) => statusOf(actor) === 'active').map(({ id }) => id);

/** An agent run with one step that waits for facts. */
const waiting = (watch?: (event: InspectionEvent) => void): TreeDriver => {
  const d = new TreeDriver(watch === undefined ? {} : { watch }).ready();
  d.propose(proposal('READ_FILE', { path: '/sandbox/a.txt' }));
  return d;
};

const fail = (): never => {
  throw new Error('broken');
};
const fragile: AnyStateMachine = createMachine({ on: { BREAK: { actions: assign(fail) } } });
/** Throws before it enters its first state. */
const brittle: AnyStateMachine = createMachine({ entry: assign(fail) });
/** A machine that throws on request, with one child. */
const parentOf = (child: AnyStateMachine): AnyStateMachine =>
  createMachine({
    entry: spawnChild(child, { id: 'child' }),
    on: { BREAK: { actions: assign(fail) }, EMIT: { actions: emit({ type: 'said' }) } },
  });

/** What XState throws in a later turn has been thrown when this resolves, and fails the test. */
const laterTurns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test('a tree without a chosen interpreter runs on the default one of this configuration', () => {
  const { tree, inputs } = waiting();
  tree.stop();
  const decide = () => tree.decide(inputs.at(-1)!);
  // Only XState's actors can be stopped.
  if (INTERPRETER === 'xstate') expect(decide).toThrow(INVARIANT);
  else expect(decide).not.toThrow();
});

describe("XState's actors of a tree that leaves memory", () => {
  test('are all stopped', () => {
    const { inspect, actors } = actorsOf();
    const { tree } = waiting(inspect);
    expect(active(actors)).toEqual([TREE, AGENT, expect.stringContaining(AGENT)]);
    tree.stop();
    expect(actors.map(statusOf)).toEqual(['stopped', 'stopped', 'stopped']);
  });

  test('leave the tree readable, and it decides nothing more', () => {
    const { tree, inputs } = waiting(() => undefined);
    const answers = () => ({
      snapshot: JSON.stringify(tree.snapshot()),
      live: [TREE, AGENT, `${AGENT}.1`, 'run_nobody'].map((id) => tree.isLive(id)),
      standing: tree.actorState(AGENT),
      ended: tree.hasEnded,
    });
    const before = answers();
    tree.stop();
    tree.stop();
    expect(answers()).toEqual(before);
    expect(before.live).toEqual([true, true, false, false]);
    expect(() => tree.decide(inputs.at(-1)!)).toThrow(INVARIANT);
  });

  test('D16: a tree continues from the snapshot of a stopped tree as from any other', () => {
    const stopped = waiting(() => undefined);
    stopped.tree.stop();
    const text = JSON.stringify(stopped.tree.snapshot());
    const again = restoreTree(JSON.parse(text) as TreeSnapshot, SHIPPED, xstateInterpretation());
    const other = new TreeDriver().ready();
    for (const input of stopped.inputs.slice(other.inputs.length)) other.take(input);
    const input: TreeInput = { ...stopped.inputs.at(-1)!, recorded: { ...stopped.inputs.at(-1)!.recorded } };
    expect(essence(again.decide(input))).toBe(essence(other.take(input)));
  });
});

describe("K4: XState's actors that throw", () => {
  const { inspect, actors } = actorsOf();
  const throwOnEmission = (): void => {
    throw new Error('not heard');
  };
  const start = (child: AnyStateMachine): Actors =>
    xstateActors(parentOf(child), 'parent', { input: undefined }, throwOnEmission, inspect);
  beforeEach(() => {
    actors.length = 0;
  });

  test.each([
    ['a child', 'child', 'BREAK', 'broken'],
    ['a parent, which leaves its child behind', 'parent', 'BREAK', 'broken'],
    ['what listens to them', 'parent', 'EMIT', 'not heard'],
  ])('%s: the event throws, nothing is thrown later, and no actor is left', async (_what, id, type, message) => {
    const running = start(fragile);
    expect(active(actors)).toEqual(['parent', 'child']);
    expect(() => running.send(id, { type })).toThrow(message);
    running.stop();
    await laterTurns();
    expect(active(actors)).toEqual([]);
    expect(() => running.send('child', { type: 'EMIT' })).toThrow(INVARIANT);
    expect(running.isLive('child')).toBe(running.stateOf('child') !== null);
  });

  test('when they start: starting throws, nothing is thrown later, and no actor is left', async () => {
    expect(() => start(brittle)).toThrow('broken');
    await laterTurns();
    expect(actors.map(statusOf)).toEqual(['error', 'error']);
  });
});
