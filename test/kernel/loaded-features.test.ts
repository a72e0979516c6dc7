/** @modules own */
// A reader of a ledger loads the features that its trees need by itself: those that entries name, and those that the
// pinned policies need. Without them: `missing-feature.test.ts`.

import { expect, test } from '@jest/globals';
import { installedVocabularies } from '../../src/core/contract/run/feature-vocabulary.js';
import { findLedgerFacts } from '../../src/engine/ledger-facts.js';
import { declareFeatures } from '../../src/features/declare-features.js';
import { readGolden } from '../fixtures/golden-store.js';

const installedNames = (): readonly string[] => installedVocabularies().map(({ feature }) => feature);

test.each([
  ['finish-rules', 'approvals'],
  ['call-rules', 'hooks'],
  ['conditions', 'conditions'],
])('verifying the history %s loads the feature %s', async (history, feature) => {
  declareFeatures();
  expect(installedNames()).not.toContain(feature);
  const verdict = await readGolden(history, (reader) => reader.verify());
  expect(verdict).toMatchObject({ ok: true, verdict: 'verified' });
  expect(installedNames()).toContain(feature);
  // Conditions alone read facts of the ledger.
  expect(findLedgerFacts() !== null).toBe(feature === 'conditions');
});
