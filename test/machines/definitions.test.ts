import { expect, test } from '@jest/globals';
import { createMachine, type AnyStateMachine } from 'xstate';
import { flagsOf, FLAGS } from '../../machines/flags.js';
import { machineDefinitions } from '../../machines/index.js';
import { createCatalogue, NO_REGISTRATIONS } from '../../src/core/contract/policy/catalogue.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import { POLICIES } from '../fixtures/random-tree.js';
import { AGENT, machinesArtifact, SHIPPED, TreeDriver } from '../fixtures/tree.js';
import { edgesOf, edgeText, machines, type Edge } from './chart.js';

const NAMES = ['agent', 'mediated', 'orchestrator', 'step'] as const;
const text = machineDefinitions(machines, createCatalogue(NO_REGISTRATIONS));
const parsed = JSON.parse(text) as Record<string, object>;

test('U-01: the definitions are canonical JSON of the four machines and of the registrations', () => {
  expect(canonicalJson(parsed)).toBe(text);
  expect(Object.keys(parsed)).toEqual(['agent', 'mediated', 'orchestrator', 'registrations', 'step']);
  expect(parsed['registrations']).toEqual(NO_REGISTRATIONS);
});

test('U-06: they are the ones that existing ledgers pin: never change a definition, add a flag', () => {
  expect(sha256(text)).toBe('4bdd1283aca251693b6fd955df3f8dcc01595db1dbd1195ca999c44855da02dd');
});

test('U-06: they name the flags in force, in ascending order, and no flags without any', () => {
  const definitionsWith = (flags: readonly number[]): unknown =>
    JSON.parse(machineDefinitions(machines, createCatalogue(NO_REGISTRATIONS), new Set(flags)));
  expect(definitionsWith([])).toEqual(parsed);
  expect(definitionsWith([10, 2, 13, 0])).toEqual({ ...parsed, flags: [0, 2, 10, 13] });
  expect(definitionsWith([0, 2, 10, 13])).toEqual({ ...parsed, flags: [0, 2, 10, 13] });
  expect(definitionsWith([10, 2])).toEqual({ ...parsed, flags: [2, 10] });
  expect(definitionsWith([13, 10, 2, 0])).toEqual({ ...parsed, flags: [0, 2, 10, 13] });
});

test('U-06: the flags have ascending numbers, and the texts with which they were published', () => {
  const numbers = [...flagsOf(FLAGS)];
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(FLAGS.map(({ number, what }) => [number, sha256(what).slice(0, 16)])).toEqual([]);
});

test('S2-06: they are the same under any policy, so that their pin identifies only the machines', () => {
  for (const policies of Object.values(POLICIES)) {
    const policy = policyOf(policies);
    expect(machineDefinitions(machinesFor(policy), policy.catalogue)).toBe(text);
  }
});

test.each(NAMES)('U-01: the chart made from the text of %s has every transition of the machine', (name) => {
  const made = createMachine(parsed[name] as Parameters<typeof createMachine>[0]);
  expect(ordered(edgesOf(made))).toEqual(ordered(edgesOf(machines[name])));
});

/** By state and event; the branches of one event stay in the order of their guards. */
function ordered(edges: readonly Edge[]): string[] {
  const key = ({ from, event }: Edge): string => `${from} ${event}`;
  return [...edges].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0)).map(edgeText);
}

/** The paths of functions in a definition. */
function functionsIn(value: unknown, path: string): string[] {
  if (typeof value === 'function') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => functionsIn(member, `${path}.${key}`));
}

test.each(NAMES)('S2-06: in the states of %s only the output of an end is a function', (name) => {
  const { states } = (machines[name] as AnyStateMachine).config;
  const outputs = functionsIn(states, 'states').filter((path) => !/^states\.[a-z]+\.output$/.test(path));
  expect(outputs).toEqual([]);
});

/** The names in guard and action positions of a definition. */
function namesIn(value: unknown, kinds: readonly string[]): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    kinds.includes(key) ? [member].flat().map(nameOf) : namesIn(member, kinds),
  );
}

const nameOf = (named: unknown): string => (typeof named === 'string' ? named : (named as { type: string }).type);

test.each(NAMES)('S2-06: every guard and action of %s has a name, is implemented, and is used', (name) => {
  const machine = machines[name] as AnyStateMachine;
  const { guards, actions } = machine.implementations;
  const unique = (names: string[]): string[] => [...new Set(names)].sort();
  expect(unique(namesIn(parsed[name], ['guard']))).toEqual(Object.keys(guards).sort());
  expect(unique(namesIn(parsed[name], ['actions', 'entry', 'exit']))).toEqual(Object.keys(actions).sort());
});

test('S4-25: every run pins their hash', () => {
  const d = new TreeDriver().ready();
  d.act('WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' });
  expect(Buffer.from(machinesArtifact(SHIPPED).bytes).toString('utf8')).toBe(text);
  expect(d.bodies('run_created').map(({ policy_versions }) => policy_versions.machines)).toEqual(
    Array.from({ length: 4 }, () => sha256(text)),
  );
  expect(d.created(AGENT).policy_versions.machines).toBe(sha256(text));
});
