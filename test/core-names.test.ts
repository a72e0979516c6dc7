// Core, kernel and engine know no feature: they import none, and identifiers have the name of one only where the
// specification makes it a term, or at the interface that the feature installs.

import { expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ALLOWED_TERMS, LOWER_FOLDERS, type AllowedTerm } from './feature-terms.js';
import { filesIn, importsOf, nodesOf, parse, ROOT, targetOf } from './sources.js';

const FILES = LOWER_FOLDERS.flatMap((folder) => filesIn(folder, /\.ts$/));
const FEATURES = readdirSync(join(ROOT, 'src/features'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
/** A part of the feature conditions that its name does not say. */
const PARTS = ['counters'];

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

const TERMS = [...FEATURES, ...PARTS].map((feature) => ({ feature, terms: termsOf(feature) }));

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
  expect(NAMED.filter((named) => !ALLOWED_TERMS.some((allowed) => allows(allowed, named)))).toEqual([]);
});

test('every allowed term is in use, in every place', () => {
  const unused = ALLOWED_TERMS.flatMap((allowed) =>
    allowed.in.filter((place) => !NAMED.some((named) => allows({ ...allowed, in: [place] }, named))),
  );
  expect(unused).toEqual([]);
});
