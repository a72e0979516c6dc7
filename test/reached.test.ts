// Every source file is imported by a suite, directly or through others, or a suite starts what contains it.

import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, targetOf, textOf } from './sources.js';

const SUITE = /(?:\.test|\.contract|\.conformance)\.ts$/;

/** Programs that suites start, and what they load into a browser. */
const STARTED = [
  'src/features/hooks/commands/program/',
  'src/features/hooks/page/',
  'src/features/sessions/page/',
  'src/features/feature-panels.ts',
  'src/interfaces/cli/',
  'src/interfaces/inspector/page/',
  'src/interfaces/inspector/xstate/',
];

test('no source file is left out by all suites', () => {
  const sources = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
  const reached = new Set(filesIn('test', SUITE));
  for (const path of reached) {
    // Of so many files only what they import is wanted: nothing is parsed for it.
    for (const { fileName } of ts.preProcessFile(textOf(path), true, false).importedFiles) {
      const target = targetOf(path, fileName);
      if (target !== null) reached.add(target);
    }
  }
  const left = sources.filter((path) => !reached.has(path) && !STARTED.some((place) => path.startsWith(place)));
  expect(left).toEqual([]);
});
