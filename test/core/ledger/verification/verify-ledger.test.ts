// Each rule about entries on its own (see forged-ledger.ts). tamper.test.ts tests clumsy forgers, and attacks on files.

import { describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../../../src/core/contract/json.js';
import { NO_PREV } from '../../../../src/core/contract/run/entry.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import type { LedgerRule } from '../../../../src/core/ledger/verification/ledger-problem.js';
import { EMPTY_HEAD, leafHash } from '../../../../src/core/ledger/proof/merkle.js';
import {
  PROBLEMS_MAX,
  verifyLedger,
  type LedgerSource,
} from '../../../../src/core/ledger/verification/verify-ledger.js';
import type { StoredEntry } from '../../../../src/engine/ports/ledger/ledger-store.js';
import {
  A,
  altered,
  B,
  CREATED,
  EVENT,
  forge,
  headOf,
  ledger,
  ONLY_ENTRIES,
  problemsOf,
  SIZE,
  sourceOf,
  type Members,
} from './forged-ledger.js';

describe('an unchanged ledger', () => {
  test('S4-86: verifies, with the number of its entries and trees and its root', async () => {
    const head = headOf(ledger.entries);
    expect(ledger.entries).toHaveLength(SIZE);
    expect(await verifyLedger(sourceOf(ledger, { externalHeadStore: head }), ONLY_ENTRIES)).toEqual({
      ok: true,
      verdict: 'verified',
      entries: SIZE,
      trees: 2,
      root: head.root,
    });
    expect(await problemsOf(sourceOf(forge(-1, (entry) => entry)))).toEqual([]);
  });

  test('verifies if it is empty', async () => {
    const empty = { entries: [], artifacts: new Map() };
    const expected = { ok: true, verdict: 'verified', entries: 0, trees: 0, root: sha256('') };
    expect(await verifyLedger(sourceOf(empty))).toEqual(expected);
    expect(await verifyLedger(sourceOf(empty, { externalHeadStore: EMPTY_HEAD }))).toEqual(expected);
  });

  test.each([0, 1, 7, 16, SIZE])(
    'D15: matches an external head at %i entries that the ledger has since extended',
    async (size) => {
      expect(await problemsOf(sourceOf(ledger, { externalHeadStore: headOf(ledger.entries.slice(0, size)) }))).toEqual(
        [],
      );
    },
  );

  test('verifies although entries are committed while it is read', async () => {
    const heads = [5, 5, SIZE].map((size) => headOf(ledger.entries.slice(0, size)));
    const source = { ...sourceOf(ledger), head: () => Promise.resolve(heads.length > 1 ? heads.shift()! : heads[0]!) };
    heads.shift();
    expect(await problemsOf(source)).toEqual([]);
  });
});

describe('the text of an entry', () => {
  test.each<[string, LedgerRule, (entry: Members) => unknown]>([
    ['is truncated', 'text.not_json', (entry) => canonicalJson(entry).slice(0, -1)],
    ['is empty', 'text.not_json', () => ''],
    [
      'has its members in another order',
      'text.not_canonical',
      ({ type, ...rest }) => JSON.stringify({ type, ...rest }),
    ],
    ['has white space', 'text.not_canonical', (entry) => `${canonicalJson(entry)}\n`],
    [
      'has a member twice',
      'text.not_canonical',
      (entry) => canonicalJson(entry).replace('{"body":', '{"body":{},"body":'),
    ],
    [
      'spells a number in another way',
      'text.not_canonical',
      (entry) => canonicalJson(entry).replace(/"seq":(\d+)/, '"seq":$1.0'),
    ],
    ['has one member more', 'entry.envelope', (entry) => ({ ...entry, note: 'x' })],
    ['has one member less', 'entry.envelope', (entry) => ({ ...entry, prev: undefined })],
    ['has a type that there is not', 'entry.envelope', (entry) => ({ ...entry, type: 'note' })],
    ['has a body that is not an object', 'entry.envelope', (entry) => ({ ...entry, body: 'x' })],
    ['is not an object', 'entry.envelope', () => '[1,2]'],
    ['has a body with a member more', 'entry.body', (entry) => ({ ...entry, body: { ...entry.body, note: 'x' } })],
    ['has a body of another type', 'entry.body', (entry) => ({ ...entry, body: {} })],
  ])('an entry that %s is named: %s', async (_what, rule, edit) => {
    expect(await problemsOf(sourceOf(forge(CREATED, edit)))).toEqual([[CREATED, rule]]);
  });

  test('a text that is too deep to be canonical is named, and does not stop the verification', async () => {
    const body = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const deep = `{"body":${body},"prev":"${NO_PREV}","seq":2,"tree_id":"${A}","type":"run_created"}`;
    expect((await problemsOf(sourceOf(forge(CREATED, () => deep))))[0]).toEqual([CREATED, 'text.not_canonical']);
  });

  test.each<[string, Partial<StoredEntry>]>([
    ['tree', { tree_id: B }],
    ['seq', { seq: 7 }],
    ['type', { type: 'audit_event' }],
  ])('S4-86: an entry that is stored under another %s than in its text is named', async (_what, columns) => {
    expect(await problemsOf(sourceOf(altered(CREATED, columns)))).toEqual([[CREATED, 'entry.columns']]);
  });

  test('S4-86: an entry whose stored hash was changed is named, and only that one', async () => {
    expect(await problemsOf(sourceOf(altered(CREATED, { leaf_hash: 'f'.repeat(64) })))).toEqual([
      [CREATED, 'entry.leaf_hash'],
    ]);
  });

  test('S4-86: an entry whose text was changed is named, not the one after it', async () => {
    const text = ledger.entries[CREATED]!.text.replace('sandbox.read_file', 'sandbox.reed_file');
    const source = sourceOf(altered(CREATED, { text }), { head: headOf(ledger.entries) });
    expect(await problemsOf(source)).toEqual([
      [CREATED, 'entry.leaf_hash'],
      [null, 'head.stored'],
    ]);
  });

  test.each([
    ['event_id', `${A}:99`],
    ['event_id', `${B}:3`],
    ['sequence', 99],
  ])('S4-09: an audit event with %s %s is out of place', async (member, value) => {
    const forged = forge(EVENT, (entry) => ({ ...entry, body: { ...entry.body, [member]: value } }));
    expect(await problemsOf(sourceOf(forged))).toEqual([[EVENT, 'event.place']]);
  });
});

describe('the order of entries', () => {
  test('C61: a removed entry is named by its place', async () => {
    const entries = ledger.entries.filter((_stored, index) => index !== CREATED);
    const found = await problemsOf(sourceOf({ ...ledger, entries }, { head: headOf(entries) }));
    expect(found).toEqual([
      [CREATED, 'log.gap'],
      [CREATED + 1, 'tree.seq'],
    ]);
  });

  test('C61: a removed entry is named in its tree even if the log was renumbered', async () => {
    const entries = ledger.entries
      .filter((_stored, index) => index !== CREATED)
      .map((stored, log_index) => ({ ...stored, log_index }));
    const artifacts = new Map(
      [...ledger.artifacts].map(([place, brought]) => [place > CREATED ? place - 1 : place, brought]),
    );
    expect(await problemsOf(sourceOf({ entries, artifacts }))).toEqual([[CREATED, 'tree.seq']]);
  });

  test('two exchanged entries are named', async () => {
    const [first, second] = [ledger.entries[EVENT]!, ledger.entries[EVENT + 1]!];
    const exchanged = ledger.entries
      .with(EVENT, { ...second, log_index: EVENT })
      .with(EVENT + 1, { ...first, log_index: EVENT + 1 });
    const found = await problemsOf(sourceOf({ ...ledger, entries: exchanged }));
    expect(found.map(([place]) => place)).toEqual(expect.arrayContaining([EVENT, EVENT + 1]));
  });

  test('C61: an entry whose prev is not the hash of its predecessor is named', async () => {
    const forged = forge(CREATED, (entry) => ({ ...entry, prev: 'a'.repeat(64) }));
    expect(await problemsOf(sourceOf(forged))).toEqual([[CREATED, 'tree.prev']]);
    const first = forge(0, (entry) => ({ ...entry, prev: 'a'.repeat(64) }));
    expect(await problemsOf(sourceOf(first))).toEqual([[0, 'tree.prev']]);
  });

  test('the next entry of the tree reveals an entry that was changed together with its hash', async () => {
    const text = ledger.entries[CREATED]!.text.replace('sandbox.read_file', 'sandbox.reed_file');
    const found = await problemsOf(sourceOf(altered(CREATED, { text, leaf_hash: leafHash(text) })));
    expect(found).toEqual([[CREATED + 1, 'tree.prev']]);
  });
});

describe('the limit', () => {
  test(`reports at most ${PROBLEMS_MAX} problems, and does not read the rest`, async () => {
    const entries = Array.from({ length: 500 }, (_, log_index) => ({ ...ledger.entries[0]!, log_index, text: '' }));
    let read = 0;
    const source: LedgerSource = {
      ...sourceOf({ ...ledger, entries }),
      // eslint-disable-next-line @typescript-eslint/require-await
      async *log() {
        for (const entry of entries) {
          read += 1;
          yield entry;
        }
      },
    };
    const verdict = await verifyLedger(source, ONLY_ENTRIES);
    expect(verdict.ok ? 0 : verdict.problems.length).toBe(PROBLEMS_MAX);
    expect(read).toBeLessThanOrEqual(PROBLEMS_MAX);
    const few = await verifyLedger(source, { ...ONLY_ENTRIES, problems_max: 3 });
    expect(few.ok ? 0 : few.problems.length).toBe(3);
  });
});

test('a problem states its place and its rule', async () => {
  const verdict = await verifyLedger(sourceOf(altered(CREATED, { leaf_hash: 'f'.repeat(64) })), ONLY_ENTRIES);
  expect(verdict).toEqual({
    ok: false,
    verdict: 'refused',
    problems: [
      {
        log_index: CREATED,
        tree_id: A,
        seq: 3,
        rule: 'entry.leaf_hash',
        kind: 'altered',
        message: expect.stringMatching(/^the leaf hash of the text is /),
      },
    ],
  });
});
