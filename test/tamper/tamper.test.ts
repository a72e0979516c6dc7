// A small part of the campaign (`npm run campaign -- tamper` runs all of it: 200 runs, every attack), attacks that a
// plain hash chain does not reveal, and the kinds of manual attacks on one ledger.

import { describe, expect, test } from '@jest/globals';
import type { ProblemKind } from '../../src/core/ledger/verification/ledger-problem.js';
import { ReplayCheck } from '../../src/kernel/replay/check-replay.js';
import { sized } from '../fixtures/campaign.js';
import { tamper } from './campaign.js';
import { headOf, problemsOf, randomLedger, rechained, type Ledger, type Row } from './ledgers.js';

test('S4-86 C61 D15: in random runs every attack on any entry is found at the entry, and reported with its kind', async () => {
  const tallies = await tamper({ seed: 7_000, runs: sized(1, 6), every: 11 });
  expect(tallies.flatMap(({ violations }) => violations)).toEqual([]);
  for (const { cases } of tallies) expect(cases).toBeGreaterThan(sized(40, 80));
}, 120_000);

/** A privileged run that was allowed, on behalf of an agent. */
const ALLOW = /"authz_decision".*"decision":"allow".*"parent_run_id":"run_random\d+\.\d"/;
/** The first ledger that has one. */
const ledger = Array.from({ length: 40 }, (_, seed) => seed).reduce<Ledger>(
  (found, seed) => (found.rows.some(({ text }) => ALLOW.test(text)) ? found : randomLedger(seed, 14)),
  randomLedger(0, 14),
);
const written = (rows: readonly Row[]): Ledger => {
  const forged = rechained(rows);
  return { rows: forged, head: headOf(forged), externalHeadStore: headOf(forged) };
};
const whereText = (part: RegExp): number => ledger.rows.findIndex(({ text }) => part.test(text));

describe('attacks that a hash chain does not reveal, because its writer can rewrite it', () => {
  test('D15 C61: the external head reveals a truncated tail with an intact chain, and a rewritten ledger', async () => {
    for (let size = 0; size < ledger.rows.length; size += 5) {
      const cut = written(ledger.rows.slice(0, size));
      const problems = await problemsOf({ ...cut, externalHeadStore: ledger.externalHeadStore });
      expect(problems).toContainEqual(expect.objectContaining({ rule: 'head.below', kind: 'cut', log_index: size }));
    }
    const other = written(randomLedger(8).rows);
    expect(
      (await problemsOf({ ...other, externalHeadStore: ledger.externalHeadStore })).map(({ rule }) => rule),
    ).toContain(other.head.size < ledger.externalHeadStore.size ? 'head.below' : 'head.differs');
  });

  test('S4-44..50: a removed required event is found without the machines, although all hashes were corrected', async () => {
    let tried = 0;
    for (const [index, { type, text, tree_id }] of ledger.rows.entries()) {
      if (type !== 'audit_event' || text.includes('INVALID_STATE_TRANSITION')) continue;
      // A tree without the end of its root looks unfinished: only the machines know that it is not.
      if (text.includes(`"run_id":"${tree_id}"`) && /"outcome_reason":"(?!running)/.test(text)) continue;
      const problems = await problemsOf(written(ledger.rows.toSpliced(index, 1)));
      const own = problems.filter(({ rule }) => !/^(?:replay|head)\./.test(rule));
      expect([text, own.length]).not.toEqual([text, 0]);
      tried += 1;
    }
    expect(tried).toBeGreaterThan(8);
  });

  test('S4-81: a privileged effect without its allow, and a run that ended twice, are reported by rule and entry', async () => {
    const allow = whereText(ALLOW);
    const { seq, tree_id } = ledger.rows[allow]!;
    expect(await problemsOf(written(ledger.rows.toSpliced(allow, 1)))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ rule: 'run.unjudged', kind: 'incomplete', tree_id, seq }),
        expect.objectContaining({ rule: 'replay.differs', kind: 'missing', tree_id, seq }),
      ]),
    );
    const end = whereText(/"outcome_reason":"(?:completed|cancelled|failed)/);
    const row = ledger.rows[end]!;
    expect(await problemsOf(written(ledger.rows.toSpliced(end, 0, row)))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ rule: 'run.over', kind: 'inserted', seq: row.seq + 1 }),
        expect.objectContaining({ rule: expect.stringMatching(/^replay\./), kind: 'duplicated', seq: row.seq + 1 }),
      ]),
    );
  });
});

describe('attacks that this ledger alone cannot reveal', () => {
  test('D15: a whole tree that was removed by an attacker who can write the external head', async () => {
    const [{ tree_id }] = ledger.rows as readonly [Row];
    const rest = ledger.rows.filter((row) => row.tree_id !== tree_id);
    expect(rest.length).toBeGreaterThan(0);
    expect(await problemsOf(written(rest))).toEqual([]);
    const known = await problemsOf({ ...written(rest), externalHeadStore: ledger.externalHeadStore });
    expect(known.map(({ rule }) => rule)).toContain('head.below');
  });
});

describe('the kind of an attack', () => {
  const at = whereText(/"outcome_reason":"running"/);
  const row = ledger.rows[at]!;
  test.each<[ProblemKind, readonly Row[]]>([
    ['missing', ledger.rows.toSpliced(at, 1)],
    ['duplicated', ledger.rows.toSpliced(at, 0, row)],
    ['altered', ledger.rows.with(at, { ...row, text: row.text.replace('"v1"', '"v2"') })],
    ['cut', ledger.rows.slice(0, at)],
  ])('an entry that is %s', async (kind, rows) => {
    const problems = await problemsOf({ ...ledger, rows });
    expect(problems.map((problem) => problem.kind)).toContain(kind);
  });
});

test('S4-86: an ended tree that is referred to later is folded again, and entries that were added to it are found', async () => {
  const rows = randomLedger(21).rows;
  const [{ tree_id }] = rows as readonly [Row];
  const tree = rows.filter((one) => one.tree_id === tree_id);
  const stored = tree.map((one, log_index) => ({ ...one, log_index }));
  let again = 0;
  const check = new ReplayCheck({
    async *tree() {
      again += 1;
      yield* stored;
      await Promise.resolve();
    },
    artifactsOf: ({ seq }) => Promise.resolve(stored[seq]?.artifacts ?? []),
  });
  for (const one of stored) expect(await check.take(one, one.artifacts, true)).toEqual([]);
  const last = stored.at(-1)!;
  expect(await check.take({ ...last, seq: last.seq + 1, log_index: last.log_index + 1 }, [], true)).toEqual([]);
  expect(again).toBe(1);
  expect([...check.finish()]).toMatchObject([{ finding: { rule: 'replay.unexpected', kind: 'duplicated' } }]);
});
