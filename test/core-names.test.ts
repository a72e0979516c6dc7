// Core, kernel and engine know no feature: they import none, and their identifiers have the name of a feature only where
// the specification makes it vocabulary, or at the interface that the feature installs.

import { expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesIn, importsOf, nodesOf, parse, ROOT, targetOf } from './sources.js';

const FOLDERS = ['src/core', 'src/kernel', 'src/engine'];
const FILES = FOLDERS.flatMap((folder) => filesIn(folder, /\.ts$/));
const FEATURES = readdirSync(join(ROOT, 'src/features'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
/** No folder yet: their rules are in core, and they would be found if they were a feature. */
const FORMER = ['counters'];

/** A term that is the name of a feature, and where it may be. */
interface AllowedTerm {
  readonly feature: string;
  /** The paths that may have it begin so. */
  readonly in: readonly string[];
  readonly reason: string;
}

/** Ids are those of the requirements of the specification. */
const ALLOWED: readonly AllowedTerm[] = [
  { feature: 'decisions', in: FOLDERS, reason: 'S2-07, S4-09: every step and every run has a decision' },
  { feature: 'promotions', in: ['src/core/'], reason: 'S4-11, S4-49: a kind of run, and its event' },
  { feature: 'exports', in: ['src/core/'], reason: 'S4-02, S4-11, S4-50: a kind of run, its event and its bundle' },
  {
    feature: 'approvals',
    in: ['src/core/', 'src/kernel/'],
    reason: 'S4-78: recorded of runs; the rules are behind approval-decider.ts',
  },
  { feature: 'identity', in: FOLDERS, reason: 'S4-31, S4-73: who acts, and whom content identifies' },
  {
    feature: 'conditions',
    in: FOLDERS,
    reason: 'a file of the policy that ledgers pin (pins.ts), asked through conditions.ts; also the state of an engine',
  },
  {
    feature: 'decision-points',
    in: ['src/core/', 'src/engine/ports/effects/decision-service.ts'],
    reason: 'a key of the actions file, asked through decision-queries.ts; the port of their services',
  },
  { feature: 'counters', in: FOLDERS, reason: 'provisional: they move to a feature of their own' },
  { feature: 'hooks', in: ['src/core/policy/calls.ts'], reason: 'the interface that the feature installs names it' },
  {
    feature: 'evidence',
    in: ['src/core/contract/evidence/', 'src/core/ledger/proof/key-history.ts'],
    reason: 'S4-09: the format of an extract of the ledger, which everyone can verify',
  },
  {
    feature: 'backup',
    in: ['src/core/contract/evidence/lost-entries.ts', 'src/core/run/audit-events.ts'],
    reason: 'S4-09: a ledger records from which backup it was restored',
  },
  {
    feature: 'sessions',
    in: [
      'src/core/contract/inspection/inspection.ts',
      'src/core/contract/run/run-context.ts',
      'src/core/contract/run/run-record.ts',
      'src/engine/ports/token-book.ts',
      'src/kernel/interpreter/inert-inspector.ts',
    ],
    reason: 'S4-34: the scope of a run names the session of its client; XState has the name for an actor',
  },
  {
    feature: 'upstreams',
    in: ['src/core/contract/policy/upstreams.ts', 'src/engine/ports/effects/upstream.ts'],
    reason: 'the file of the policy that pins servers, and their port',
  },
  { feature: 'cluster', in: ['src/engine/ports/ledger/cluster.ts'], reason: 'the port that lists workers' },
  { feature: 'telemetry', in: ['src/engine/ports/telemetry.ts'], reason: 'the port of measurements' },
];

const pluralOf = (word: string): string => (word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`);

/** The words of a name, each between spaces. */
const wordsOf = (name: string): string =>
  ` ${name
    .replace(/([a-z0-9])([A-Z])/gu, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/gu, '$1 $2')
    .replace(/[^A-Za-z0-9]+/gu, ' ')
    .trim()
    .toLowerCase()} `;

/** The terms of a feature: its name, singular and plural. */
function termsOf(feature: string): readonly string[] {
  const words = feature.replaceAll('-', ' ');
  const singular = words.replace(/s$/u, '');
  return [` ${singular} `, ` ${pluralOf(singular)} `];
}

const TERMS = [...FEATURES, ...FORMER].map((feature) => ({ feature, terms: termsOf(feature) }));

/** The features that a name has a term of; of a longer term the shorter one within it does not count. */
function featuresIn(name: string): readonly string[] {
  const words = wordsOf(name);
  const found = TERMS.filter(({ terms }) => terms.some((term) => words.includes(term)));
  const rest = found
    .filter(({ feature }) => feature.includes('-'))
    .flatMap(({ terms }) => terms)
    .reduce((text, term) => text.replaceAll(term, '  '), words);
  return found
    .filter(({ feature, terms }) => feature.includes('-') || terms.some((term) => rest.includes(term)))
    .map(({ feature }) => feature);
}

interface Named {
  readonly feature: string;
  readonly path: string;
  readonly name: string;
}

/** Every identifier with the term of a feature, once for each file. */
const NAMED: readonly Named[] = FILES.flatMap((path) => {
  const nodes = nodesOf(parse(path)).filter((node) => ts.isIdentifier(node) || ts.isPrivateIdentifier(node));
  const names = [...new Set(nodes.map((node) => (node as ts.Identifier).text))];
  return names.flatMap((name) => featuresIn(name).map((feature) => ({ feature, path, name })));
});

const allows = ({ feature, in: places }: AllowedTerm, named: Named): boolean =>
  feature === named.feature && places.some((place) => named.path.startsWith(place));

test('the terms of a feature are found as whole words', () => {
  expect(featuresIn('isDoctorRun')).toEqual(['doctor']);
  expect(featuresIn('UPSTREAM_TOOLS_MAX')).toEqual(['upstreams']);
  expect(featuresIn('identities')).toEqual(['identity']);
  expect(featuresIn('DecisionPointRules')).toEqual(['decision-points']);
  expect(featuresIn('decisionOfDecisionPoint')).toEqual(['decision-points', 'decisions']);
  expect(featuresIn('modelled')).toEqual([]);
});

test('core, kernel and engine import no feature', () => {
  const edges = FILES.flatMap((path) => importsOf(parse(path)).map((name) => [path, targetOf(path, name)]));
  expect(edges.filter(([, target]) => target?.startsWith('src/features/') === true)).toEqual([]);
});

test('core, kernel and engine name no feature but by terms of the specification and at its interface', () => {
  expect(NAMED.filter((named) => !ALLOWED.some((allowed) => allows(allowed, named)))).toEqual([]);
});

test('every allowed term is in use, in every place', () => {
  const unused = ALLOWED.flatMap((allowed) =>
    allowed.in.filter((place) => !NAMED.some((named) => allows({ ...allowed, in: [place] }, named))),
  );
  expect(unused).toEqual([]);
});
