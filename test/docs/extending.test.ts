/** @modules own */
// docs/explanation/extending.md: the feature that it builds is that of extending/tags.ts, and works.

import { describe, expect, test } from '@jest/globals';
import { loadFeatureOf, declareFeature } from '../../src/core/contract/run/feature-vocabulary.js';
import { Fold } from '../../src/kernel/fold.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { installedFeature, installTreeFeature, type TreeFeature } from '../../src/kernel/tree-feature.js';
import { AGENT, essence, TreeDriver } from '../fixtures/tree.js';
import { textOf } from '../sources.js';

const PAGE = textOf('docs/explanation/extending.md');
const SOURCE = textOf('test/docs/extending/tags.ts').replaceAll("'../../../src/", "'../../");
/** It is no part of the program that is compiled: its inputs would be inputs everywhere. */
const TAGS_FILE = './extending/tags.js';
const ANNA = { actor_type: 'human', actor_id: 'anna' } as const;

declareFeature({
  feature: 'tags',
  load: async () => installTreeFeature(((await import(TAGS_FILE)) as { readonly TAGS: TreeFeature }).TAGS),
});

const opened = (): TreeDriver => {
  const d = new TreeDriver().ready();
  d.startAgent();
  return d;
};
const tag = (d: TreeDriver, run_id = AGENT, name = 'reviewed') =>
  d.send({ kind: 'tag', feature: 'tags', run_id, tag: name, actor: ANNA } as never);

test('the page shows the whole feature', () => {
  expect(PAGE).toContain(`\`\`\`ts\n${SOURCE.trimEnd()}\n\`\`\``);
  expect(textOf('src/features/declare-features.ts')).toContain('load: () => install(import(');
});

describe('the feature of the page', () => {
  test('is loaded with the first input that names it, and by nothing before', async () => {
    expect(installedFeature('tags')).toBeNull();
    expect(loadFeatureOf({ kind: 'proposal' })).toBeNull();
    await loadFeatureOf({ kind: 'tag', feature: 'tags' });
    expect(installedFeature('tags')?.feature).toBe('tags');
    expect(loadFeatureOf({ kind: 'tag', feature: 'tags' })).toBeNull();
  });

  test('records a tag with its time, and refuses what it cannot accept', () => {
    const d = opened();
    const { entries, refused } = tag(d);
    expect(refused).toBe(false);
    expect(entries.map(({ entry }) => entry.type)).toEqual(['input', 'tag_event']);
    const { time } = d.inputs.at(-1)!.recorded;
    expect(entries[1]?.entry.body).toMatchObject({ event: 'tagged', tag: 'reviewed', timestamp_utc: time });
    for (const again of [tag(d), tag(d, 'run_nobody')]) {
      expect(again.refused).toBe(true);
      expect(again.entries.map(({ entry }) => entry.type)).toEqual(['input', 'audit_event']);
    }
    expect(tag(d, AGENT, 'second').refused).toBe(false);
  });

  test('continues from a snapshot with the same tags', () => {
    const d = opened();
    tag(d);
    const stored = JSON.parse(JSON.stringify(d.tree.snapshot())) as TreeSnapshot;
    expect(stored.parts).toEqual({ tags: { [AGENT]: ['reviewed'] } });
    const restored = restoreTree(stored, d.policies);
    const again = tag(d);
    expect(essence(restored.decide(d.inputs.at(-1)!))).toBe(essence(again));
    expect(again.refused).toBe(true);
  });

  test('folds from its record to the same state', () => {
    const d = opened();
    tag(d);
    const fold = new Fold(d.tree_id);
    for (const { entries, artifacts } of d.decisions)
      for (const [at, { text, entry }] of entries.entries())
        expect(fold.apply({ seq: entry.seq, text }, at === 0 ? artifacts : [])).toHaveProperty('decision');
    expect(fold.finish()).toBeNull();
    expect(fold.tree.snapshot()).toEqual(d.tree.snapshot());
  });
});
