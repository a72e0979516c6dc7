/** @modules own */
import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { type Entry } from '../../../src/core/contract/run/entry.js';
import { ENTRY_TYPES } from '../../fixtures/features.js';
import { sealEntry } from '../../../src/core/ledger/entry-text.js';
import { content, happened, opening, Scribe, step, treeId } from '../../fixtures/entries.js';

const TREE = treeId(1);
const sealed = new Scribe().prepare([
  opening(TREE),
  ...step(TREE, content('raw_payload', '{"a":1}'), content('result', 'r')),
  happened(TREE),
]).entries;

describe('a sealed entry', () => {
  test('S4-09: its text is the canonical JSON of the entry, of every type', () => {
    expect(new Set(sealed.map(({ entry }) => entry.type))).toEqual(new Set(ENTRY_TYPES));
    for (const { entry, text } of sealed) expect(text).toBe(canonicalJson(entry));
  });

  test('its text does not depend on the order of members, and has exactly the five members of the envelope', () => {
    for (const { entry, text } of sealed) {
      const reversed = Object.fromEntries(Object.entries(entry).reverse()) as unknown as Entry;
      expect(sealEntry(reversed).text).toBe(text);
      expect(Object.keys(JSON.parse(text) as object)).toEqual(['body', 'prev', 'seq', 'tree_id', 'type']);
    }
  });

  test('its leaf hash is SHA-256 of a zero byte and the UTF-8 text', () => {
    for (const { text, leaf_hash } of sealed) {
      expect(leaf_hash).toBe(createHash('sha256').update(Buffer.of(0)).update(text, 'utf8').digest('hex'));
    }
    expect(sealed.some(({ text }) => text.includes('ü'))).toBe(true);
  });

  test('S4-86: members of a body named seq, prev, type or tree_id stay inside the body', () => {
    const [{ entry }] = sealed as unknown as [{ entry: Entry }];
    const forged = {
      ...entry,
      body: { ...entry.body, seq: 99, prev: 'f'.repeat(64), tree_id: 'other', type: 'audit_event' },
    };
    const { seq, prev, tree_id, type } = JSON.parse(sealEntry(forged as Entry).text) as Entry;
    expect({ seq, prev, tree_id, type }).toEqual({ seq: 0, prev: entry.prev, tree_id: TREE, type: 'input' });
  });

  test.each([
    ['a tree_id with a quote', { tree_id: 'a","seq":7,"x":"' }],
    ['a prev with a quote', { prev: '","seq":7,"x":"' }],
  ])('%s cannot escape from the body', (_what, part) => {
    const entry: Entry = { ...sealed[0]!.entry, ...part };
    expect(JSON.parse(sealEntry(entry).text)).toMatchObject({ seq: 0, ...part });
  });

  test.each([
    ['a lone surrogate', { reason: '\ud800' }],
    ['a number that is not finite', { count: NaN }],
  ])('%s cannot be sealed', (_what, part) => {
    const entry = { ...sealed[0]!.entry, body: { ...sealed[0]!.entry.body, ...part } } as unknown as Entry;
    expect(() => sealEntry(entry)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });
});
