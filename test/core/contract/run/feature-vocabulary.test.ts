/** @modules own */
import { expect, test } from '@jest/globals';
import Type from 'typebox';
import {
  declareFeature,
  featureActorId,
  featureEntrySchema,
  featureEntryTypes,
  featureInputKind,
  featureLaneId,
  featureStateMembers,
  installVocabulary,
  installedVocabularies,
  loadAllFeatures,
  loadFeatureOf,
  loadFeaturesNamedIn,
  loadFeaturesOfPolicy,
  missingFeature,
  missingFeatureError,
  type FeatureVocabulary,
} from '../../../../src/core/contract/run/feature-vocabulary.js';
import { entryTypes, inputSchema } from '../../../../src/core/contract/run/entry.js';
import { isEntryBody, isRecordedInput } from '../../../../src/core/contract/validators.js';

const INVARIANT = expect.objectContaining({ code: 'INVARIANT' });
const note = Type.Object({ feature: Type.Literal('notes'), kind: Type.Literal('note'), by: Type.String() });
const event = Type.Object({ feature: Type.Literal('notes'), event: Type.Literal('noted') });
const NOTES: FeatureVocabulary = {
  feature: 'notes',
  inputs: {
    note: {
      schema: note,
      references: () => [],
      actorId: ({ by }: { readonly by: string }) => by,
      laneId: () => 'NOTES',
    },
  },
  entries: { note_event: event },
};
const input = { feature: 'notes', kind: 'note', by: 'anna' };
let loads = 0;

test('a declared feature is loaded by what names it, once', async () => {
  expect(loadFeatureOf(input)).toBeNull();
  declareFeature({
    feature: 'notes',
    stateMember: 'notes',
    load: () => {
      loads += 1;
      if (loads > 1) installVocabulary(NOTES);
      return Promise.resolve();
    },
  });
  expect(featureStateMembers()).toEqual(['notes']);
  expect(missingFeature(input)).toBe('notes');
  expect(loadFeaturesNamedIn('{"feature":"other"}')).toBeNull();
  expect(loadFeatureOf({ kind: 'note' })).toBeNull();
  expect(featureInputKind('note')).toBeNull();
  expect(isRecordedInput(input)).toBe(false);
  // A load that installs nothing is an error, and the next one tries again.
  await expect(loadFeaturesNamedIn('{"body":{"feature":"notes"}}')).rejects.toEqual(INVARIANT);
  await loadFeatureOf(input);
  expect(loads).toBe(2);
  await loadAllFeatures();
  expect(loads).toBe(2);
  expect([loadFeatureOf(input), loadFeaturesNamedIn('"feature":"notes"'), missingFeature(input)]).toEqual([
    null,
    null,
    null,
  ]);
});

test('a feature whose modules are missing is not supported, and the error has the cause', async () => {
  const cause = new Error('Cannot find module');
  declareFeature({ feature: 'broken', load: () => Promise.reject(cause) });
  await expect(loadFeatureOf({ feature: 'broken' })).rejects.toMatchObject({
    code: 'LEDGER_UNSUPPORTED',
    message: 'the feature broken cannot be loaded: install this version of Turnpike again',
    cause,
  });
  const load = (): Promise<void> => {
    installVocabulary({ feature: 'broken', inputs: {}, entries: {} });
    return Promise.resolve();
  };
  declareFeature({ feature: 'broken', load });
  await loadFeatureOf({ feature: 'broken' });
  expect(missingFeature({ feature: 'broken' })).toBeNull();
});

test('an installed feature has its inputs and entries', () => {
  expect(installedVocabularies()[0]).toBe(NOTES);
  expect(inputSchema('note')).toBe(note);
  expect(isRecordedInput(input)).toBe(true);
  expect(isRecordedInput({ ...input, by: 7 })).toBe(false);
  expect(featureEntrySchema('note_event')).toBe(event);
  expect(featureEntryTypes()).toEqual(['note_event']);
  expect(entryTypes()).toContain('note_event');
  expect(isEntryBody('note_event' as never, { feature: 'notes', event: 'noted' })).toBe(true);
  expect(isEntryBody('note_event' as never, { feature: 'notes', event: 'lost' })).toBe(false);
  expect([featureActorId(input), featureLaneId(input)]).toEqual(['anna', 'NOTES']);
  expect([featureActorId({ kind: 'end' }), featureLaneId({ kind: 'end' })]).toEqual([null, null]);
});

test('no other feature may have its names, and it is installed once', () => {
  expect(() => installVocabulary(NOTES)).not.toThrow();
  expect(() => installVocabulary({ ...NOTES })).toThrow(INVARIANT);
  expect(() => installVocabulary({ ...NOTES, feature: 'others' })).toThrow(INVARIANT);
  expect(() => installVocabulary({ feature: 'others', inputs: {}, entries: NOTES.entries })).toThrow(INVARIANT);
  declareFeature({ feature: 'notes', load: () => Promise.reject(new Error('declared again')) });
  expect(loadFeatureOf(input)).toBeNull();
});

test('a feature that a policy needs is loaded with it, once', async () => {
  let loaded = 0;
  const bytes = Buffer.from('rules: []');
  declareFeature({
    feature: 'rules',
    isNeededBy: ({ lanes, counters }) => counters !== undefined || lanes?.bytes.includes(0x72) === true,
    load: () => {
      loaded += 1;
      installVocabulary({ feature: 'rules', inputs: {}, entries: {} });
      return Promise.resolve();
    },
  });
  expect(
    loadFeaturesOfPolicy({ lanes: { bytes: Buffer.from('no') }, actions: { bytes }, conditions: undefined }),
  ).toBeNull();
  expect(loadFeaturesOfPolicy({})).toBeNull();
  await Promise.all([loadFeaturesOfPolicy({ lanes: { bytes } }), loadFeaturesOfPolicy({ counters: { bytes } })]);
  expect([loaded, loadFeaturesOfPolicy({ lanes: { bytes } })]).toEqual([1, null]);
});

test('a feature that decides inputs of core is loaded with the first', async () => {
  let loaded = 0;
  declareFeature({
    feature: 'votes',
    inputKinds: ['vote'],
    load: () => {
      loaded += 1;
      installVocabulary({ feature: 'votes', inputs: {}, entries: {} });
      return Promise.resolve();
    },
  });
  expect([loadFeatureOf({ kind: 'end' }), loadFeaturesNamedIn('{"kind":"end"}')]).toEqual([null, null]);
  await Promise.all([loadFeatureOf({ kind: 'vote' }), loadFeaturesNamedIn('{"kind":"vote"}')]);
  expect([loaded, loadFeatureOf({ kind: 'vote' }), loadFeaturesNamedIn('{"kind":"vote"}')]).toEqual([1, null, null]);
});

test('a feature that two need at once is loaded once, and again after a failure', async () => {
  let loads = 0;
  declareFeature({
    feature: 'slow',
    load: async () => {
      loads += 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (loads === 1) throw new Error('the file could not be read');
      installVocabulary({ feature: 'slow', inputs: {}, entries: {} });
    },
  });
  const first = await Promise.allSettled([loadFeatureOf({ feature: 'slow' }), loadFeaturesNamedIn('"feature":"slow"')]);
  expect([loads, ...first.map(({ status }) => status)]).toEqual([1, 'rejected', 'rejected']);
  const second = await Promise.allSettled([
    loadFeatureOf({ feature: 'slow' }),
    loadFeaturesNamedIn('"feature":"slow"'),
  ]);
  expect([loads, ...second.map(({ status }) => status)]).toEqual([2, 'fulfilled', 'fulfilled']);
});

test.each([null, 7, {}, { feature: 7 }, { feature: 'With Space' }, { feature: 'x'.repeat(41) }, { feature: '' }])(
  'a body without the name of a feature lacks none: %j',
  (body) => {
    expect(missingFeature(body)).toBeNull();
  },
);

test('the error for a missing feature names it', () => {
  expect(missingFeatureError('tags')).toMatchObject({
    code: 'LEDGER_UNSUPPORTED',
    message: 'the feature tags has recorded this, and this installation does not have it',
  });
});
