// The chart of a machine, compared with the machine as XState resolves it.

import { describe, expect, test } from '@jest/globals';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { createMachines, machineDefinitions } from '../../../machines/index.js';
import { type JsonObject, canonicalJson } from '../../../src/core/contract/json.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { machineChartOf, chartsOf } from '../../../src/kernel/replay/machine-chart.js';
import { testPolicy } from '../../fixtures/policy.js';

const policy = testPolicy();
const machines = createMachines(policy);
const definitions = JSON.parse(machineDefinitions(machines, policy.catalogue)) as JsonObject;
const charts = chartsOf(definitions);

test('U-05: recorded definitions give a chart of every machine, under the hash of its definition', () => {
  expect(charts.map(({ machine }) => machine).sort()).toEqual(Object.keys(machines).sort());
  for (const { machine, hash } of charts) expect(hash).toBe(sha256(canonicalJson(definitions[machine])));
});

describe.each(Object.entries(machines))('the chart of %s', (name, machine: AnyStateMachine) => {
  const chart = charts.find((each) => each.machine === name)!;
  const states: AnyStateNode[] = [];
  const visit = (state: AnyStateNode): void => {
    states.push(state);
    Object.values(state.states).forEach((inner) => visit(inner as AnyStateNode));
  };
  visit(machine.root);
  const idOf = (state: AnyStateNode): string => state.path.join('.');

  test('U-05: has its states', () => {
    const found = chart.nodes.map(({ id, parent, type, initial }) => ({ id, parent, type, initial }));
    const expected = states.map((state) => ({
      id: idOf(state),
      parent: state.parent === undefined ? null : idOf(state.parent),
      type: state.type,
      initial: state.type === 'compound' ? idOf(state.initial.target[0] as AnyStateNode) : null,
    }));
    const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1);
    expect(found.sort(byId)).toEqual(expected.sort(byId));
  });

  test('U-05: has its transitions, each with the target of the machine', () => {
    const expected = states.flatMap((state) =>
      [...state.transitions, ['always', state.always ?? []] as const].flatMap(([event, edges]) =>
        edges.map(({ target }, place) => ({
          id: `${idOf(state)}|${event.replace('xstate.done.actor.*', 'done')}|${place}`,
          source: idOf(state),
          target: target?.[0] === undefined ? null : idOf(target[0] as AnyStateNode),
        })),
      ),
    );
    const found = chart.edges.map(({ id, source, target }) => ({ id, source, target }));
    const byId = (one: { id: string }, other: { id: string }): number => (one.id < other.id ? -1 : 1);
    expect(found.sort(byId)).toEqual(expected.sort(byId));
  });
});

test('guards are shown with their parameters, and the last of several transitions as else', () => {
  const step = charts.find(({ machine }) => machine === 'step')!;
  const mediated = charts.find(({ machine }) => machine === 'mediated')!;
  const guard = (edges: typeof step.edges, id: string) => edges.find((edge) => edge.id === id)?.guard;
  expect(guard(step.edges, 'AUTHORIZE.authorizing|always|0')).toBe('hasFault');
  expect(guard(step.edges, 'AUTHORIZE.authorizing|always|5')).toBe('else');
  expect(guard(step.edges, 'AUTHORIZE.awaitingVotes|APPROVALS_CHANGED|0')).toBeNull();
  expect(guard(mediated.edges, 'running.awaitingWriteRun|done|1')).toBe('isChildEnd: failed');
  expect(mediated.nodes.find(({ id }) => id === 'completed')?.entry).toEqual([
    'recordEnd: completed',
    'emitRunEnded: completed',
  ]);
});

test('an unknown form of definition is drawn as far as possible: targets in any form, regions, no target', () => {
  const { nodes, edges } = machineChartOf('odd', {
    id: 'odd',
    type: 'parallel',
    on: { OUT: '#far', IN: '.a.two' },
    states: {
      a: {
        initial: 'one',
        states: { one: { on: { GO: [{ target: ['two', '#odd.b'] }], BACK: '#odd.a.two', LOST: 'nowhere' } }, two: {} },
      },
      b: { initial: 'x', states: { x: { id: 'far' } } },
    },
  });
  expect(nodes.map(({ id, type }) => `${id} ${type}`)).toEqual([
    ' compound',
    'a compound',
    'a.one atomic',
    'a.two atomic',
    'b compound',
    'b.x atomic',
  ]);
  expect(edges.map(({ id, target }) => `${id} -> ${target}`)).toEqual([
    '|OUT|0 -> b.x',
    '|IN|0 -> a.two',
    'a.one|GO|0 -> a.two',
    'a.one|BACK|0 -> a.two',
    'a.one|LOST|0 -> null',
  ]);
});
