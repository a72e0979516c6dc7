import { expect, test } from '@jest/globals';
import { createActor, type InspectionEvent } from 'xstate';
import { toDirectedGraph, type DirectedGraphNode } from 'xstate/graph';
import { createMachines } from '../../machines/index.js';
import { testPolicy } from '../fixtures/policy.js';
import { rootContext } from '../../src/kernel/decision-builder.js';
import { TreeDriver } from '../fixtures/tree.js';
import type { OpenInput } from '../../src/core/contract/run/entry.js';

const NO_MORE = { overlay: null, digest: null } as const;

const machines = createMachines(testPolicy());

const statesOf = (node: DirectedGraphNode): string[] => [node.id, ...node.children.flatMap(statesOf)];
const edgesOf = (node: DirectedGraphNode): number =>
  node.edges.length + node.children.reduce((sum, child) => sum + edgesOf(child), 0);

test.each([
  ['orchestrator', machines.orchestrator, ['created', 'running', 'completed', 'failed', 'denied', 'cancelled']],
  ['agent', machines.agent, ['created', 'running', 'completed', 'failed', 'denied', 'cancelled']],
  ['mediated', machines.mediated, ['created', 'running', 'completed', 'failed', 'denied', 'cancelled']],
  ['step', machines.step, ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA', 'AUTHORIZE', 'EXECUTE', 'RECORD', 'RESPOND']],
] as const)('U-01 U-05: the %s machine can be drawn, with every state and transition', (name, machine, states) => {
  const graph = toDirectedGraph(machine);
  expect(statesOf(graph)).toEqual(expect.arrayContaining(states.map((state) => `${name}.${state}`)));
  expect(edgesOf(graph)).toBeGreaterThan(4);
});

test('U-05: a live machine reports its actors, events and states to an inspector, in plain JSON', () => {
  const driver = new TreeDriver();
  driver.open();
  const run = rootContext(driver.inputs[0]!.recorded as OpenInput);
  const seen: InspectionEvent[] = [];
  const actor = createActor(machines.orchestrator, {
    id: run.run_id,
    input: { run },
    inspect: (event) => seen.push(event),
  });
  actor.start();
  actor.send({
    type: 'AUTHORIZE',
    verdict: { decision: 'allow', rule_id: 'orchestrator.pinned', cause: null },
    ...NO_MORE,
  });
  actor.send({ type: 'CANCEL', reason: 'seen enough' });
  expect(new Set(seen.map(({ type }) => type))).toEqual(
    new Set(['@xstate.actor', '@xstate.event', '@xstate.snapshot', '@xstate.microstep', '@xstate.action']),
  );
  const values = seen.flatMap((event) =>
    event.type === '@xstate.snapshot' ? [JSON.parse(JSON.stringify(event.snapshot)) as { value: unknown }] : [],
  );
  expect(values.map(({ value }) => value)).toEqual(['created', { running: 'working' }, 'cancelled']);
});
