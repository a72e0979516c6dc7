// S4-73, C92: measures on labelled texts what the search of promoted records finds, and tests that it decides about a
// promotion. The figures are exact: a change of the search shows here, group by group.

import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { createCatalogue, NO_REGISTRATIONS } from '../../../src/core/contract/policy/catalogue.js';
import type { ContentChecks } from '../../../src/core/contract/policy/content-checks.js';
import type { PromoteOptions } from '../../../src/runtime/high-risk-options.js';
import { systemPace } from '../../../src/system/system-pace.js';
import { CaseHistory } from '../../../src/runtime/case/case-history.js';
import { findCarriedOver, ContentSearch, RECORD_CHARS_MAX } from '../../../src/features/promotions/content-search.js';
import { printFigure, sized } from '../../fixtures/campaign.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_ID, caseTexts, CLIENTS, LABELLED, STATEMENTS } from '../../fixtures/promoted-texts.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const { targets } = service();
const catalogue = createCatalogue({ ...NO_REGISTRATIONS, targets: targets.map(({ definition }) => definition) });
const TEXTS = caseTexts().map((text) => Buffer.from(text));

/** The findings of a record with this text, in a case with these texts. */
function found(text: string, checks: ContentChecks = {}, texts: readonly Uint8Array[] = TEXTS): readonly string[] {
  const target = catalogue.target('shared_playbooks');
  const search = ContentSearch.create({ record: { id: 'p-1', text }, target, checks, catalogue, ids: [CASE_ID] });
  if (search === null) return ['passage'];
  const embedded = texts.map((bytes) => search.read(bytes)).includes(true);
  return embedded ? ['passage', ...search.findings] : search.findings;
}

/** The one false alarm is a commonplace of seven words that also occurs in the case. */
const FIGURES = [
  'name and birth date: 6 of 6',
  'full name: 6 of 6',
  'name turned round: 6 of 6',
  'surname alone: 6 of 6',
  'name with a title: 6 of 6',
  'name in lower case: 6 of 6',
  'name with zero-width signs: 6 of 6',
  'birth date in digits: 6 of 6',
  'birth date without a word of birth: 6 of 6',
  'phone of the case: 6 of 6',
  'passport of the case: 6 of 6',
  'email: 4 of 4',
  'email spelt out: 1 of 1',
  'account: 4 of 4',
  'card: 3 of 3',
  'account by its word: 1 of 1',
  'phone: 5 of 5',
  'document: 5 of 5',
  'docket of the case: 1 of 1',
  'case: 2 of 2',
  'mark: 3 of 3',
  'seven words alone: 8 of 8',
  'seven words in a sentence: 8 of 8',
  'six words in a clause: 8 of 8',
  'five words alone: 8 of 8',
  'in base64: 8 of 8',
  'in base64url behind a letter: 8 of 8',
  'in base64 over lines: 8 of 8',
  'in hex: 8 of 8',
  'in hex with colons: 8 of 8',
  'in escapes: 8 of 8',
  'in percent escapes: 8 of 8',
  'in entities: 8 of 8',
  'in ROT13: 8 of 8',
  'reversed: 8 of 8',
  'with its words reversed: 8 of 8',
  'in capitals: 8 of 8',
  'with zero-width signs: 8 of 8',
  'in single letters: 8 of 8',
  'without spaces: 8 of 8',
  'in base64 of hex: 8 of 8',
  'harmless: 1 false alarms of 70',
  'beyond: 0 of 6',
];

interface Figures {
  texts: number;
  /** Texts with all of their labels found, and texts with a finding that has no label. */
  whole: number;
  more: number;
}

test('S4-73: recall and false alarms on labelled texts', () => {
  const groups = new Map<string, Figures>();
  for (const { group, text, holds } of LABELLED) {
    const all = found(text);
    const figures = groups.get(group) ?? { texts: 0, whole: 0, more: 0 };
    groups.set(group, figures);
    figures.texts += 1;
    if (holds.length > 0 && holds.every((kind) => all.includes(kind))) figures.whole += 1;
    if (holds.length === 0 && all.length > 0) figures.more += 1;
  }
  const lines = [...groups].map(([group, { texts, whole, more }]) =>
    group === 'harmless' ? `${group}: ${more} false alarms of ${texts}` : `${group}: ${whole} of ${texts}`,
  );
  printFigure(lines.join('\n'));
  expect(lines).toEqual(FIGURES);
});

describe('S4-73: a lane configures the search', () => {
  test('each value is searched separately; column names and listed words are not searched', () => {
    const seven = 'client never signed the side letter that';
    expect(found(seven)).toEqual(['passage']);
    expect(found(seven.split(' ').slice(0, 4).join(' '))).toEqual([]);
  });

  test('passages have the configured length', () => {
    const clause = 'In short, nobody had inspected the boiler since, as ever';
    expect(found(clause)).toEqual(['passage']);
    const inside = 'We saw that nobody had inspected the boiler and left';
    expect([found(inside), found(inside, { passage_words: 5 })]).toEqual([[], ['passage']]);
  });

  test('names come from the configured columns, and known names do not count', () => {
    const record = JSON.stringify({
      action: 'WRITE_RECORD',
      args: { target: 'facts', record: { id: 'f', text: 'Rosalind Wetherby' } },
    });
    const texts = [Buffer.from(record)];
    expect(found('Wetherby had a point.', {}, texts)).toEqual([]);
    expect(found('Wetherby had a point.', { names: { facts: ['text'] } }, texts)).toEqual(['person_name']);
    expect(found('Rosalind Wetherby had a point.', {}, texts)).toEqual(['person_name']);
    expect(found('Rosalind Wetherby had a point.', { known_names: ['Rosalind Wetherby'] }, texts)).toEqual([]);
  });

  test('phone numbers without a prefix are found for the configured countries', () => {
    expect(found('Ring 030 901820 first.')).toEqual([]);
    expect(found('Ring 030 901820 first.', { countries: ['DE'] })).toEqual(['phone']);
  });

  test('the written form of a phone number is found, also of one that is not in use', () => {
    for (const text of ['(555) 123-4567', '(555)123.4567', 'Ring (555) 123 4567 first.']) {
      expect(found(text)).toEqual(['phone']);
    }
    for (const text of ['(555) 123-45678', '(5555) 123-4567', 'Section (555) 12-4567']) expect(found(text)).toEqual([]);
  });

  test('a record with too much text counts as embedded text', () => {
    expect(found('a '.repeat(RECORD_CHARS_MAX / 2))).toEqual(['passage']);
  });

  test('hostile texts take no longer than others of their length', () => {
    const units = [
      '%41',
      '\\x41',
      '&#65;',
      'QUJD',
      '4 1',
      '@a',
      'born ',
      'A. ',
      'Aa Bb ',
      '4111 ',
      'account ',
      'no. 1',
    ];
    const start = process.cpuUsage();
    for (const unit of units) found(unit.repeat(20_000 / unit.length));
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(20_000);
  });
});

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

/** A home whose case has a record with a name, and one with a statement and a birth date. */
async function openCase(edit: NonNullable<BenchOptions['edit']> = serviceEdit): Promise<Bench> {
  const { tools, targets: tables } = service();
  const of = await Bench.open({ edit, tools, targets: tables });
  const agent = await of.turnpike.startAgent({ ...CASE_AGENT });
  const write = (target: string, record: object) =>
    agent.submit(
      JSON.stringify(proposal('WRITE_RECORD', { target, mode: target === 'facts' ? 'append' : 'upsert', record })),
    );
  await write('entities', { id: 'e-1', name: CLIENTS[0].name });
  await write('facts', { id: 'f-1', text: `${STATEMENTS[0]} She was born on ${CLIENTS[0].born}.` });
  await agent.end();
  return of;
}
const open = async (edit?: BenchOptions['edit']): Promise<Bench> => (bench = await openCase(edit));

const promotion = (text: string, over: Partial<PromoteOptions> = {}): PromoteOptions => ({
  actor: 'anna',
  role: 'ATTORNEY_ADMIN',
  case: 'case-local',
  ticket: 'T-17',
  target: 'shared_playbooks',
  record: { id: 'p-1', text },
  ...over,
});

const flagsOf = async (of: Bench): Promise<readonly unknown[]> =>
  (await of.entries()).flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'start_run' && body.run_kind === 'promotion' ? [body.facts.artifact_flags] : [],
  );

describe('S4-73: a promotion is denied for its findings, which its input records', () => {
  let shared: Bench;
  beforeAll(async () => {
    shared = await openCase();
  });
  afterAll(() => shared.close());

  test.each<[string, string, readonly string[], string]>([
    [
      'a full name and a birth date',
      'Maria Hoffmann, born 4 May 1971, won.',
      ['found:birth_date', 'found:person_name'],
      'prohibition.client_identity',
    ],
    [
      'seven words of the case',
      'client never signed the side letter that',
      ['embedded_text'],
      'prohibition.raw_case_text',
    ],
    ['an address', 'Write to m.h@example.org.', ['found:email'], 'prohibition.client_identity'],
    ['a privilege mark', 'Privileged and confidential: ask.', ['found:privilege_mark'], 'prohibition.privileged_notes'],
    ['the id of the case', 'See case-local for more.', ['found:case_reference'], 'prohibition.client_identity'],
  ])('%s', async (_what, text, flags, reason) => {
    const run = await shared.turnpike.promote(promotion(text));
    expect(await run.finished).toMatchObject({ state: 'denied', reason });
    expect((await flagsOf(shared)).at(-1)).toEqual(['sanitized_insight', ...flags]);
    expect(await shared.turnpike.replay()).toMatchObject({ ok: true });
  });

  test('a lane that permits a finding allows the promotion, and the finding is recorded', async () => {
    const of = await open((name, text) =>
      name === 'lanes'
        ? serviceEdit(name, text).replace(
            'lane_id: PROMOTE_SHARED_KNOWLEDGE\n',
            '$&    content_checks: { permits: [email] }\n',
          )
        : serviceEdit(name, text),
    );
    const run = await of.turnpike.promote(promotion('Write to help@example.org first.'));
    expect(await run.finished).toMatchObject({ state: 'completed' });
    expect(await flagsOf(of)).toEqual([['sanitized_insight', 'found:email']]);
    const other = await of.turnpike.promote(promotion('Write to help@example.org or Maria Hoffmann.'));
    expect(await other.finished).toMatchObject({ state: 'denied', reason: 'prohibition.client_identity' });
  });

  test('the same insight can be promoted again: an earlier request is not a text of the case', async () => {
    const of = await open();
    for (const id of ['p-1', 'p-2']) {
      const record = { id, text: 'Ask for the old lease before you ask anything else.' };
      const run = await of.turnpike.promote(promotion('', { record }));
      expect(await run.finished).toMatchObject({ state: 'completed' });
    }
  });

  test('D14: after an erasure nothing can be promoted, because the texts of the case are unknown', async () => {
    const of = await open();
    await of.turnpike.erase({ case: 'case-local', actor: 'anna' });
    await expect(of.turnpike.promote(promotion('Ask for the lease first.'))).rejects.toMatchObject({
      code: 'LEDGER_ERASED',
    });
    expect(await flagsOf(of)).toEqual([]);
    // Also if nothing had to be folded before: a text that cannot be read may contain anything.
    await of.turnpike.close();
    const { store } = openHome(homePaths(of.home), { readOnly: true });
    const history = new CaseHistory(store, { case_id: 'case-local', head: await store.head() });
    const record = { id: 'p-1', text: 'Ask for the lease first.' };
    const carried = { record, target: undefined, checks: {}, catalogue, ids: [] };
    expect(await findCarriedOver({ store, pace: systemPace() }, history, carried)).toEqual(['embedded_text']);
    await store.close();
  });

  test('S4-73: a case with too much text counts as embedded text', async () => {
    const of = await open();
    await of.turnpike.close();
    const { store } = openHome(homePaths(of.home), { readOnly: true });
    const history = new CaseHistory(store, { case_id: 'case-local', head: await store.head() });
    const record = { id: 'p-1', text: 'Ask for the lease first.' };
    const carried = { record, target: undefined, checks: {}, catalogue, ids: [] };
    expect(await findCarriedOver({ store, pace: systemPace() }, history, carried)).toEqual([]);
    expect(await findCarriedOver({ store, pace: systemPace(), bytesMax: 100 }, history, carried)).toEqual([
      'embedded_text',
    ]);
    await store.close();
  });
});

describe('S4-73: a text made to slow the search down', () => {
  // Quadratic time on each of these texts would take an hour.
  const LONG = sized(120_000, 1_000_000);
  test.each(['1', '.', 'A', 'Aa', '1,', '9 $'])('costs no more than its length: %j', (unit) => {
    const text = unit.repeat(LONG / unit.length / 8);
    const inCase = Buffer.from(unit.repeat(LONG / unit.length));
    const within = (run: () => unknown): unknown => runInNewContext('run()', { run }, { timeout: 120_000 });
    expect(within(() => found(text, {}, []).length)).toBeGreaterThanOrEqual(0);
    const record = 'John Smith of 10 Elm Street, js@example.com, has 12345678.';
    expect(within(() => found(record, {}, [inCase]).join())).toBe('email');
  });
});

test.each([
  'card 4111 1111 1111 1111 12 27',
  'card 4111111111111111 123',
  'no 7 4111 1111 1111 1111',
  'cards 4111 1111 1111 1111 5500 0000 0000 0004',
])('S4-73: a card number is found next to other numbers: %s', (text) => {
  expect(found(text, {}, [])).toContain('account_number');
});
