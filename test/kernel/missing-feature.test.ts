/** @modules own */
// A ledger with entries of a feature that this installation does not have: what the feature has recorded is reported as
// not checked, and everything else is verified.

import { describe, expect, test } from '@jest/globals';
import { installedVocabularies } from '../../src/core/contract/run/feature-vocabulary.js';
import { canonicalJson } from '../../src/core/contract/json.js';
import type { ForPolicyFiles } from '../../src/core/contract/policy/pins.js';
import { Fold } from '../../src/kernel/fold.js';
import { loadPolicy } from '../../src/core/policy/files/check-policy.js';
import type { StoredEntry } from '../../src/engine/ports/ledger/ledger-store.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { memoryHeadStore } from '../../src/stores/memory/memory-head-store.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';
import { readGolden } from '../fixtures/golden-store.js';
import { shippedBytes } from '../fixtures/shipped-policy.js';

const NEEDS = 'the feature sessions has recorded this, and this installation does not have it';

describe('a ledger of a feature that is not installed', () => {
  test('is verified but for the trees of the feature, which are not checked', async () => {
    expect(installedVocabularies()).toEqual([]);
    const verdict = await readGolden('everything', (reader) => reader.verify());
    expect(verdict).toMatchObject({ ok: false, verdict: 'by_hash_alone', problems: [] });
    const { withheld } = verdict as { readonly withheld: { readonly trees: number; readonly unsupported?: unknown } };
    expect(withheld.trees).toBe(1);
    expect(withheld.unsupported).toMatchObject([{ tree_id: expect.stringMatching(/^ses_/) as unknown, needs: NEEDS }]);
  });

  test('replays but for the trees of the feature', async () => {
    const report = await readGolden('everything', (reader) => reader.replay());
    expect(report).toMatchObject({ ok: false, verdict: 'by_hash_alone', difference: null });
    expect(report.not_recomputed).toMatchObject([{ needs: NEEDS }]);
  });

  test('is still altered if an entry of the feature is changed', async () => {
    const found = await readGolden('everything', async (reader, store) => {
      for await (const entry of store.log()) if (entry.text.includes('"feature":"sessions"')) return entry;
      return null;
    });
    const text = found!.text.replace('"kind":"open_session"', '"kind":"open_other"');
    const { verdict } = await readGolden('everything', async (_reader, store) => {
      const changed = new ForwardingStore(store);
      changed.log = async function* (from?: number): AsyncGenerator<StoredEntry> {
        for await (const entry of store.log(from)) {
          yield entry.log_index === found!.log_index ? { ...entry, text } : entry;
        }
      };
      return new LedgerReader(changed, memoryHeadStore(await store.head())).verify();
    });
    expect(verdict).toBe('refused');
  });
});

describe('a ledger whose policy needs a feature that is not installed', () => {
  const NO_CONDITIONS = 'this installation does not have the feature conditions';
  const NO_POINTS = 'this installation does not have the feature decision-points';
  const NO_HOOKS = 'this installation does not have the feature hooks';

  test.each([
    ['conditions', NO_CONDITIONS],
    ['counters', NO_CONDITIONS],
    ['call-rules', NO_HOOKS],
  ])('is verified but for its decisions, which are not checked: %s', async (history, missing) => {
    const verdict = await readGolden(history, (reader) => reader.verify());
    expect(verdict).toMatchObject({ ok: false, verdict: 'by_hash_alone', problems: [] });
    const { withheld } = verdict as { readonly withheld: { readonly unsupported?: unknown } };
    const needs = expect.stringContaining(missing) as unknown;
    expect(withheld.unsupported).toEqual(expect.arrayContaining([expect.objectContaining({ needs })]));
    const report = await readGolden(history, (reader) => reader.replay());
    expect(report).toMatchObject({ ok: false, verdict: 'by_hash_alone', difference: null });
    expect(report.not_recomputed).toEqual(expect.arrayContaining([expect.objectContaining({ needs })]));
  });

  test('is still altered if the text of the opening is written in another way', async () => {
    const report = await readGolden('conditions', async (_reader, store) => {
      const changed = new ForwardingStore(store);
      changed.log = async function* (from?: number): AsyncGenerator<StoredEntry> {
        for await (const entry of store.log(from))
          yield { ...entry, text: entry.text.replace('"conditions":{', '"conditions": {') };
      };
      return new LedgerReader(changed, memoryHeadStore(await store.head())).replay();
    });
    expect(report).toMatchObject({ ok: false, difference: { rule: 'entry.differs' } });
  });

  const { lanes, actions, roles } = shippedBytes();
  const bytes = Buffer.from('');
  const text = Buffer.from(lanes).toString();
  const calls = '    calls: [{ id: reads, tools: [sandbox.read_file], decision: allow }]\n    scope:';

  const POINTS =
    '\ndecision_points: [{ name: a, protocol: opa, url: "https://a.example", actions: [WRITE_FILE], timeout_ms: 50 }]\n';

  test.each<[string, Partial<ForPolicyFiles<Uint8Array>>, string]>([
    ['conditions', { conditions: bytes }, NO_CONDITIONS],
    ['counters', { counters: bytes }, NO_CONDITIONS],
    ['call rules', { lanes: Buffer.from(text.replace('    scope:', calls)) }, NO_HOOKS],
    ['decision points', { actions: Buffer.from(`${Buffer.from(actions).toString()}${POINTS}`) }, NO_POINTS],
  ])('loads no policy with %s', (_name, own, missing) => {
    const message = expect.stringContaining(missing) as unknown;
    expect(() => loadPolicy({ lanes, actions, roles, ...own })).toThrow(
      expect.objectContaining({ code: 'POLICY_UNSUPPORTED', message }),
    );
  });
});

describe('a fold', () => {
  const entryOf = (body: object): { readonly seq: number; readonly text: string } => ({
    seq: 0,
    text: canonicalJson({ body, prev: '0'.repeat(64), seq: 0, tree_id: 'run_a', type: 'input' }),
  });

  test('names the feature of an input that it lacks', () => {
    const outcome = new Fold('run_a').apply(entryOf({ feature: 'tags', kind: 'tag' }), []);
    expect(outcome).toMatchObject({
      unsupported: { code: 'LEDGER_UNSUPPORTED', message: expect.stringContaining('tags') as unknown },
    });
  });

  test.each([
    { feature: 'tags', kind: 'end' },
    { kind: 'tag' },
    { feature: 'No Name', kind: 'tag' },
    { feature: 7, kind: 'tag' },
  ])('takes an unknown input without the name of a feature as a difference: %j', (body) => {
    expect(new Fold('run_a').apply(entryOf(body), [])).toMatchObject({ difference: { rule: 'entry.unexpected' } });
  });
});
