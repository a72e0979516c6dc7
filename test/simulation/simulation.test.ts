// A small campaign. `npm run campaign -- simulate` runs the full one: 200 seeds of 5,000 steps.

import { describe, expect, test } from '@jest/globals';
import { sized } from '../fixtures/campaign.js';
import { machineUses } from './machine-uses.js';
import { besideBusyLoops, BUSY_LOOPS, simulatePaces } from './paces.js';
import { MORE_PLANTS, PLANTS } from './planted.js';
import { Random } from './random.js';
import { simulate, type Report } from './simulate.js';
import { QUOTA } from './world.js';

/** Bugs that these steps find soon; the campaign plants all of them. */
const SOON: readonly string[] = ['rings-early', 'never-answers'];
/** Seeds at which a bug is found within a few hundred steps, and not only after thousands. */
const SEEDS: Readonly<Record<string, number>> = { 'settles-blindly': 14, 'tries-again': 1 };
const planted = MORE_PLANTS.filter(({ name }) => sized(0, 1) === 1 || SOON.includes(name));

/** A failing seed is shown with everything that is needed to reproduce it. */
const summaryOf = ({ seed, steps, violation, tail }: Report) =>
  violation === null ? null : { seed, steps, violation, tail };

describe('the whole system on seeded clock, ids, store, sandbox and scheduler', () => {
  test.each([2, 3, 4].slice(0, sized(1, 3)))(
    'S0-04 D2 D3 D4 D8 C35 C47 C53 C78: seed %i satisfies every invariant after every step',
    async (seed) => {
      const report = await simulate({ seed, steps: sized(200, 300) });
      expect(summaryOf(report)).toBeNull();
      expect(report.proposals).toBeGreaterThan(20);
    },
  );

  test.each([31, 32, 33].slice(0, sized(1, 3)))(
    'S0-50 C82: with seed %i, the agents of a case never write more than its quota',
    async (seed) => {
      const report = await simulate({ seed, steps: sized(250, 2_000), quota: QUOTA });
      expect(summaryOf(report)).toBeNull();
      expect(report.outcomes.get('DENIED') ?? 0).toBeGreaterThan(0);
    },
  );

  test('D11 D16: the same seed gives the same history byte for byte, another seed another one', async () => {
    const steps = sized(100, 250);
    const first = await simulate({ seed: 5, steps });
    const again = await simulate({ seed: 5, steps });
    const other = await simulate({ seed: 6, steps });
    expect(first.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });

  // Of seeds with few steps, these divide most of their work.
  test.each([125, 111, 102].slice(0, sized(1, 3)))(
    'D11 D16: seed %i gives one history however often long work yields',
    async (seed) => {
      const reports = await simulatePaces(seed, 200);
      expect(reports.map(summaryOf)).toEqual([null, null, null]);
      expect(new Set(reports.map(({ digest }) => digest)).size).toBe(1);
      expect(reports[0]?.calls.get('pace')).toBeGreaterThan(50);
    },
  );

  test('D11 D16: a history does not depend on other load of the processor', async () => {
    const run = (): Promise<Report> => simulate({ seed: 16, steps: sized(120, 200) });
    expect(await besideBusyLoops(BUSY_LOOPS, run)).toEqual(await run());
  });

  test('C39: a simulation uses no time, randomness, timers or turns of the machine', async () => {
    const machine = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await new Promise((resolve) => setImmediate(resolve));
      Date.now();
      new Date().toISOString();
      process.hrtime();
      expect(process.env['NO_SUCH']).toBeUndefined();
    };
    const kinds = new Set((await machineUses(machine)).map((use) => use.split(' ')[0]));
    expect(kinds).toEqual(new Set(['Date.now', 'Immediate', 'Timeout', 'new', 'process.env', 'process.hrtime']));
    let calls: Report['calls'] = new Map();
    const simulated = async (): Promise<void> => {
      // A seed whose agents promote: the search for content works in slices.
      ({ calls } = await simulate({ seed: 66, steps: 200 }));
    };
    expect(await machineUses(simulated)).toEqual([]);
    expect(calls.get('pace')).toBeGreaterThan(50);
  });

  // Their trees leave memory after every tick, and return from snapshots (21), or from their entries (22).
  test.each([21, 22].slice(0, sized(1, 2)))(
    'U-01 D11 D16: seed %i has the same history with both interpreters, byte for byte',
    async (seed) => {
      const [tables, xstate] = [
        await simulate({ seed, steps: sized(100, 250), interpreter: 'table-driven' }),
        await simulate({ seed, steps: sized(100, 250), interpreter: 'xstate' }),
      ];
      expect(summaryOf(tables)).toBeNull();
      expect(tables.proposals).toBeGreaterThan(10);
      expect(xstate).toEqual(tables);
    },
  );

  test('the printed seed and steps reproduce a violation in the same step', async () => {
    const [plant] = PLANTS;
    const found = await simulate({ seed: 7, steps: 10_000, plant: plant! });
    const again = await simulate({ seed: 7, steps: found.steps, plant: plant! });
    expect(found.violation).not.toBeNull();
    expect(again).toEqual(found);
  });
});

describe('the intended invariant finds a planted bug within 10,000 steps', () => {
  const cases = [
    ...PLANTS.flatMap((plant) => [1, 2].slice(0, sized(1, 2)).map((seed) => [plant.name, seed, plant] as const)),
    ...planted.map((plant) => [plant.name, SEEDS[plant.name] ?? 24, plant] as const),
  ];

  test.each(cases)('%s, seed %i', async (_name, seed, plant) => {
    const report = await simulate({ seed, steps: 10_000, plant, quota: plant.quota === true ? QUOTA : null });
    expect(report.violation?.invariant).toBe(plant.expects);
    expect(report.steps).toBeLessThanOrEqual(10_000);
  });

  test('S0-04 C19 C78 S4-44 S4-56: the five required bugs are planted', () => {
    expect(PLANTS.map(({ name, expects }) => [name, expects])).toEqual([
      ['no-dedupe', 'proposal.once'],
      ['ack-before-commit', 'acknowledged.durable'],
      ['effect-before-commit', 'effect.allowed'],
      ['missing-event', 'events.required'],
      ['child-without-pins', 'run.inherits'],
    ]);
  });
});

describe('randomness', () => {
  test('a stream is a function of its name, and its parts do not depend on each other', () => {
    const drawn = (random: Random): number[] => [1, 2, 3, 4].map(() => random.below(1_000_000));
    expect(drawn(new Random('a'))).toEqual(drawn(new Random('a')));
    expect(drawn(new Random('a'))).not.toEqual(drawn(new Random('b')));
    const moved = new Random('a');
    drawn(moved);
    expect(drawn(moved.split('x'))).toEqual(drawn(new Random('a').split('x')));
  });

  test('a weight of 0 is never drawn, and the others are', () => {
    const random = new Random('weights');
    const drawn = new Set(
      Array.from({ length: 200 }, () => random.weighted({ never: 0, often: 3, seldom: 1, last: 0 })),
    );
    expect([...drawn].sort()).toEqual(['often', 'seldom']);
  });
});
