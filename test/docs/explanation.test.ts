// docs/explanation: what the diagrams show is in the machines, and each page shows its diagrams.

import { expect, test } from '@jest/globals';
import { ENTRY_TYPES } from '../fixtures/features.js';
import { FAULTS } from '../../src/core/contract/fault.js';
import { PHASES } from '../../src/core/contract/run/phase.js';
import { childRunId, RUN_KINDS, RUN_STATES } from '../../src/core/contract/run/run-context.js';
import { consistencyRanges, inclusionRanges } from '../../src/core/ledger/proof/merkle-proof.js';
import { edgesOf, machines } from '../machines/chart.js';
import { filesIn, textOf } from '../sources.js';

const FOLDER = 'docs/explanation';
const PAGES = filesIn(FOLDER, /\.md$/);
const DIAGRAMS = filesIn(FOLDER, /\.svg$/);

const diagram = (name: string): string => textOf(`${FOLDER}/${name}.svg`);

/** The values of a data attribute, in the order of the file. */
const valuesOf = (name: string, attribute: string): readonly string[] =>
  [...diagram(name).matchAll(new RegExp(` data-${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) => value);

/** Each different text once, sorted. */
const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts)].sort();

const transitionsIn = (name: string): readonly string[] =>
  distinct(
    [...diagram(name).matchAll(/ data-from="(\w+)" data-to="(\w+)"/g)].map(([, from = '', to = '']) => `${from} ${to}`),
  );

/** The transitions between the top states of machines; what happens inside a state is left out. */
const transitionsOf = (...charts: readonly Parameters<typeof edgesOf>[0][]): readonly string[] =>
  distinct(
    charts
      .flatMap(edgesOf)
      .map(({ from, to }) => [from.split('.')[0] ?? '', to.split('.')[0] ?? ''] as const)
      .filter(([from, to]) => from !== '' && from !== to)
      .map((pair) => pair.join(' ')),
  );

test('the states and transitions of a run are those of the run machines', () => {
  expect(valuesOf('run-states', 'state')).toEqual([...RUN_STATES]);
  expect(transitionsIn('run-states')).toEqual(transitionsOf(machines.orchestrator, machines.agent, machines.mediated));
});

test('the phases of a step and the ways between them are those of the step machine', () => {
  expect(valuesOf('step-phases', 'phase')).toEqual([...PHASES]);
  expect(transitionsIn('step-phases')).toEqual(transitionsOf(machines.step));
});

test('each phase ends a step with the outcome of its faults', () => {
  const shown = [...diagram('step-phases').matchAll(/ data-outcome-of="(\w+)">(\w+)</g)];
  expect(distinct(shown.map(([, phase = '', outcome = '']) => `${phase} ${outcome}`))).toEqual(
    distinct(Object.values(FAULTS).map(({ phase, outcome }) => `${phase} ${outcome}`)),
  );
});

test('the run tree shows every kind of run, each under the id of its parent', () => {
  expect(distinct(valuesOf('run-tree', 'kind'))).toEqual([...RUN_KINDS].sort());
  const nodes = [...diagram('run-tree').matchAll(/ data-(?:kind|root)="(\w+)">[^]*?class="middle mono">([\w.]+)</g)];
  const kinds = new Map(nodes.map(([, kind = '', id = '']) => [id, kind]));
  const links = [...kinds].flatMap(([id, kind]) => {
    const parent = id.replace(/\.\d+$/, '');
    if (parent === id) return [];
    expect(childRunId(parent, Number(id.split('.').at(-1)))).toBe(id);
    return kinds.get(parent) === 'session' ? [] : [`${kinds.get(parent) ?? 'nothing'} ${kind}`];
  });
  const drawn = [...diagram('run-tree').matchAll(/ data-parent="(\w+)" data-child="(\w+)"/g)];
  expect(drawn.map(([, parent = '', child = '']) => `${parent} ${child}`).sort()).toEqual(links.sort());
});

test('the entries of the ledger are of all types', () => {
  expect(distinct(valuesOf('ledger', 'entry'))).toEqual([...ENTRY_TYPES].sort());
});

test('the hashes of the proofs are those that the log gives', () => {
  const textsOf = (ranges: readonly { readonly start: number; readonly end: number }[]): readonly string[] =>
    ranges.map(({ start, end }) => `${start}-${end}`).sort();
  expect([...valuesOf('proofs', 'inclusion')].sort()).toEqual(textsOf(inclusionRanges(2, 7)));
  expect([...valuesOf('proofs', 'consistency')].sort()).toEqual(textsOf(consistencyRanges(6, 7)));
});

test('every diagram is on a page, has a title, and loads nothing', () => {
  const pages = PAGES.map(textOf).join('\n');
  for (const path of DIAGRAMS) {
    expect(pages).toContain(`](${path.split('/').at(-1) ?? ''})`);
    expect(textOf(path)).toMatch(/ aria-labelledby="([\w-]+)"[^]*<title id="\1">[^<]+<\/title>/);
    expect(textOf(path).replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|href|<script|@import/);
  }
});
