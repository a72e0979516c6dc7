import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerModel } from '../../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../../fixtures/ledger-model/model-store.js';
import { memoryHeadStore } from '../../../../src/stores/memory/memory-head-store.js';
import type {
  InputMark,
  LedgerStore,
  MarkKey,
  MarkOf,
  ProposalMark,
} from '../../../../src/engine/ports/ledger/ledger-store.js';
import { LedgerReader } from '../../../../src/runtime/ledger/ledger-reader.js';
import { Bench } from '../../../fixtures/bench.js';
import { ForwardingStore } from '../../../fixtures/forwarding-store.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { proposal } from '../../../fixtures/tree.js';

const json = (value: object): string => JSON.stringify(value);

let folder: string;
let store: LedgerStore;
beforeEach(async () => {
  folder = tempFolder('marks');
  mkdirSync(join(folder, 'case-local'));
  const state = new LedgerModel();
  store = modelStore(state);
  const { turnpike } = await Bench.open({ store, sandbox: folder });
  const agent = await turnpike.startAgent();
  const first = json(proposal('THINK', {}));
  await agent.respond(first, { inputId: 'mine' });
  await agent.respond(first);
  await agent.respond(json(proposal('NO_SUCH', {})));
  await agent.respond('{', { inputId: 'broken' });
  await agent.respond(json(proposal('READ_FILE', { path: '/sandbox/none.txt' })));
  // An id in upper case is remembered in lower case.
  await agent.respond(json(proposal('THINK', {}, { id: '00000000-0000-4000-8000-00000000ABCD' })));
  // Not an id of the engine, although it has the same prefix.
  await agent.respond(json({}), { inputId: `${agent.run_id}0` });
  await agent.end();
  await turnpike.close();
  store = modelStore(state);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const rulesOf = async (from: LedgerStore): Promise<readonly string[]> => {
  const verdict = await new LedgerReader(from, memoryHeadStore(await store.head())).verify();
  return verdict.ok ? [] : verdict.problems.map(({ rule }) => rule);
};

/** What a store with lost or mixed-up marks returns for each key. */
class EditedMarksStore extends ForwardingStore {
  readonly #edit: MarkEdit;
  constructor(inner: LedgerStore, editMark: MarkEdit) {
    super(inner);
    this.#edit = editMark;
  }

  override marks = async <Key extends MarkKey>(keys: readonly Key[]) => {
    const marks = await this.inner.marks(keys);
    return keys.map((key, at) => this.#edit(key, marks[at] ?? null) as MarkOf<Key> | null);
  };
}
type Mark = InputMark | ProposalMark;
type MarkEdit = (key: MarkKey, mark: Mark | null) => Mark | null;

const withoutOwnInputMark: MarkEdit = (key, mark) => ('input_id' in key && key.input_id === 'mine' ? null : mark);
const withWrongSeq: MarkEdit = (key, mark) => ('input_id' in key ? { ...key, seq: (mark?.seq ?? 0) + 1 } : mark);
const withoutInputMarks: MarkEdit = (key, mark) => ('input_id' in key ? null : mark);
const withoutProposalMarks: MarkEdit = (key, mark) => ('proposal_id' in key ? null : mark);
/** Returns for each step another proposal id than was recorded. */
class Altered extends ForwardingStore {
  override log = (fromIndex?: number) => this.#altered(fromIndex);

  async *#altered(fromIndex?: number): ReturnType<LedgerStore['log']> {
    for await (const entry of this.inner.log(fromIndex)) {
      const text =
        entry.type === 'step_trace' ? entry.text.replace('"proposal_id":"0', '"proposal_id":"1') : entry.text;
      yield { ...entry, text };
    }
  }
}
/** Remembers every accepted id, but with the mark of another proposal. */
const withOtherProposal =
  (as: Partial<ProposalMark>): MarkEdit =>
  (key, mark) =>
    'proposal_id' in key && mark !== null ? { ...mark, ...as } : mark;

test('C19 D4: an intact ledger has every mark: of accepted ids, and of inputs with ids from callers', async () => {
  expect(await rulesOf(store)).toEqual([]);
});

test('D4: reports a lost or misplaced mark of an input id', async () => {
  expect(await rulesOf(new EditedMarksStore(store, withoutOwnInputMark))).toEqual(['mark.input']);
  expect(await rulesOf(new EditedMarksStore(store, withWrongSeq))).toEqual(['mark.input', 'mark.input', 'mark.input']);
  expect(await rulesOf(new EditedMarksStore(store, withoutInputMarks))).toEqual([
    'mark.input',
    'mark.input',
    'mark.input',
  ]);
});

test('C19: reports a lost mark of an accepted proposal id; an id that was rejected on receipt needs none', async () => {
  expect(await rulesOf(new EditedMarksStore(store, withoutProposalMarks))).toEqual(Array(4).fill('mark.proposal'));
});

test.each([{ seq: 1 }, { run_id: 'run_other.1' }])(
  'C19: reports an accepted proposal id that is remembered with the wrong %j',
  async (as) => {
    expect(await rulesOf(new EditedMarksStore(store, withOtherProposal(as)))).toEqual(Array(4).fill('mark.proposal'));
  },
);

test('C19: a replayed step needs no mark of its own: its id is remembered with the first', async () => {
  const state = new LedgerModel();
  const edit = (name: string, text: string): string =>
    name === 'actions' ? text.replace('duplicate_proposal_ids: reject', 'duplicate_proposal_ids: replay') : text;
  const { turnpike } = await Bench.open({ store: modelStore(state), sandbox: folder, edit });
  const agent = await turnpike.startAgent();
  const payload = json(proposal('THINK', {}));
  expect(await agent.respond(payload)).toBe(await agent.respond(payload));
  await turnpike.close();
  store = modelStore(state);
  expect(await rulesOf(store)).toEqual([]);
  expect(await rulesOf(new EditedMarksStore(store, withoutProposalMarks))).toEqual(['mark.proposal']);
});

test('reports an altered trace as altered, and not as a missing mark of its new content', async () => {
  const rules = await rulesOf(new Altered(store));
  expect(rules.length).toBeGreaterThan(0);
  expect(rules.filter((rule) => rule.startsWith('mark.'))).toEqual([]);
});
