// The members of XState's objects that its types do not promise, with every supported version. A version enters
// `VERSIONS` and package.json together.

import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as xstate from 'xstate';
import {
  actorIdOf,
  builtInActionOf,
  implementationsOf,
  isGuardCombinator,
  logicOf,
  parentOf,
  PARENT_TARGET,
  sourceOf,
  SUPPORTED_XSTATE,
  TRANSITIONS_FIELD,
  transitionsOf,
  withActorFields,
} from '../../../src/core/contract/inspection/xstate-fields.js';
import { ROOT } from '../../root.js';

const VERSIONS: Readonly<Record<string, typeof xstate>> = { '5.33.3': xstate };

/** Types only: XState reads no values from `types`. */
const TYPES: { context: { count: number } } = { context: { count: 0 } };

const packageOf = (path: string): { version: string; dependencies: Record<string, string> } =>
  JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8')) as never;

test('U-07: package.json requires the versions that these tests cover', () => {
  expect(packageOf('.').dependencies['xstate']).toBe(SUPPORTED_XSTATE);
  expect(Object.keys(VERSIONS)).toEqual([packageOf('node_modules/xstate').version]);
});

describe.each(Object.entries(VERSIONS))('XState %s', (_version, { and, createActor, setup, ...actions }) => {
  const childMachine = setup({ actions: { report: actions.sendParent({ type: 'REPORTED' }) } }).createMachine({
    id: 'child',
    initial: 'ready',
    states: { ready: { on: { REPORT: { actions: 'report' } } } },
  });
  const parentMachine = setup({
    types: TYPES,
    actors: { child: childMachine },
    guards: { always: () => true, both: and(['always', () => true]) },
    actions: {
      count: actions.assign({ count: ({ context }) => context.count + 1 }),
      announce: actions.emit({ type: 'ANNOUNCED' }),
      forward: actions.sendTo('first', { type: 'REPORT' }),
      discard: actions.stopChild('first'),
      spawn: actions.enqueueActions(({ enqueue }) => enqueue.spawnChild('child', { id: 'first' })),
      log: actions.log('text'),
    },
  }).createMachine({
    id: 'parent',
    context: { count: 0 },
    initial: 'running',
    states: { running: { entry: 'spawn', on: { FORWARD: { actions: 'forward' }, REPORTED: { actions: 'count' } } } },
  });
  const actionNamed = (machine: object, name: string) =>
    builtInActionOf<{ context: { count: number } }>(implementationsOf(machine).actions[name]);

  test('U-01: every kind of built-in action is recognized with its members', () => {
    const assign = actionNamed(parentMachine, 'count');
    const assignment = assign?.kind === 'assign' ? assign.assignment : null;
    const { count } = assignment as unknown as { count: (args: object) => number };
    expect(count({ context: { count: 4 } })).toBe(5);
    expect(actionNamed(parentMachine, 'announce')).toEqual({ kind: 'emit', event: { type: 'ANNOUNCED' } });
    expect(actionNamed(parentMachine, 'forward')).toEqual({
      kind: 'sendTo',
      to: 'first',
      event: { type: 'REPORT' },
      delay: undefined,
    });
    expect(actionNamed(parentMachine, 'discard')).toEqual({ kind: 'stopChild', actorRef: 'first' });
    expect(actionNamed(parentMachine, 'spawn')).toEqual({ kind: 'enqueueActions', collect: expect.any(Function) });
    expect(actionNamed(parentMachine, 'log')).toBeNull();
    expect(actionNamed(childMachine, 'report')).toMatchObject({ kind: 'sendTo', to: PARENT_TARGET });
  });

  test('U-01: actors and guards are found by name, and combinators are distinguished from predicates', () => {
    const { actors, guards } = implementationsOf(parentMachine);
    expect(actors['child']).toBe(childMachine);
    expect(isGuardCombinator(guards['both'] as object)).toBe(true);
    expect(isGuardCombinator(guards['always'] as object)).toBe(false);
  });

  test('U-01: inspection events carry the parent, the logic, the source and the transitions', () => {
    const events: xstate.InspectionEvent[] = [];
    const root = createActor(parentMachine, { id: 'root', inspect: (event) => events.push(event) }).start();
    root.send({ type: 'FORWARD' });
    const child = events.map(({ actorRef }) => actorRef).find((actor) => actorIdOf(actor) === 'first');
    if (child === undefined) throw new Error('the child was not inspected');
    expect(parentOf(child)).toBe(root);
    expect(parentOf(root)).toBeUndefined();
    expect(sourceOf(child)).toBe('child');
    expect(logicOf(child)?.config).toBe(childMachine.config);
    expect(logicOf(child)?.definition).toMatchObject({ id: 'child', key: 'child' });
    const step = events.find((event) => event.type === '@xstate.microstep' && TRANSITIONS_FIELD in event);
    expect(transitionsOf(step ?? {})).toEqual(
      expect.arrayContaining([expect.objectContaining({ eventType: 'FORWARD' })]),
    );
    expect(root.getSnapshot().context.count).toBe(1);
    root.stop();
  });
});

test('U-01: a copy has the members under which inspectors look', () => {
  const parent = { id: 'p' };
  const copy = withActorFields({ id: 'c' }, { parent, logic: { id: 'm' } });
  expect(parentOf(copy)).toBe(parent);
  expect(logicOf(copy)).toEqual({ id: 'm' });
  expect(withActorFields({ id: 'c' }, { parent: undefined, logic: undefined })).toEqual({ id: 'c' });
});
