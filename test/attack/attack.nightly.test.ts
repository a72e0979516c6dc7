// C29 as a race: a small `npm run campaign -- attack`. The file system is real, and the attacker is another process.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { attack, tableOf, type CampaignReport, type Cell } from './campaign.js';
import { NaiveSandbox } from './naive-sandbox.js';
import { OPERATIONS, type Operation } from './operations.js';
import { SCENES } from './scenes.js';

const ATTACKED = 4_000;
/** In milliseconds; a machine may be busy with other work. */
const PATIENCE_MS = 600_000;

describe(`${ATTACKED} attacked operations`, () => {
  let report: CampaignReport;
  beforeAll(async () => {
    report = await attack({ operations: ATTACKED, seed: 1 });
  }, PATIENCE_MS);

  const sum = (count: (cell: Cell) => number, cells = report.cells): number =>
    cells.reduce((total, cell) => total + count(cell), 0);

  test('C29 S0-47 S0-49: no operation escapes: nothing outside is shown or changed', () => {
    expect(report.escapes).toEqual([]);
    expect(sum(({ escapes }) => escapes)).toBe(0);
    expect(sum(({ operations }) => operations)).toBeGreaterThanOrEqual(ATTACKED);
  });

  test('C29: the naive sandbox escapes in the same scenes, by reading, writing and deleting', () => {
    const control = (operation: string): number =>
      sum(
        (cell) => cell.control?.escapes ?? 0,
        report.cells.filter((cell) => cell.operation === operation),
      );
    for (const operation of ['READ_FILE', 'WRITE_FILE over', 'DELETE_FILE']) {
      expect([operation, control(operation)]).not.toEqual([operation, 0]);
    }
  });

  test.each(SCENES.map(({ name }) => name))('%s: operations met both the honest object and the attacker’s', (scene) => {
    const cells = report.cells.filter((cell) => cell.scene === scene);
    expect(sum(({ meetings }) => meetings.honest, cells)).toBeGreaterThan(0);
    expect(sum(({ meetings }) => meetings.met, cells)).toBeGreaterThan(0);
  });

  test('D8 D9: no temporary file, name or descriptor is left, and every ledger verifies and replays', () => {
    expect(report.problems).toEqual([]);
    expect(tableOf(report).split('\n')).toHaveLength(report.cells.length + 1);
  });
});

const ROUNDS_MAX = 12;

test(
  'detects a sandbox that follows links, for every operation',
  async () => {
    const scenes = SCENES.filter(({ name }) => name === 'parent');
    const open = (root: string): NaiveSandbox => new NaiveSandbox(root, { checks: false });
    // Settling reveals little, and rarely.
    const missing = new Set<Operation>(OPERATIONS.filter((operation) => operation !== 'settle'));
    // A test cannot control the schedule of the two processes: each operation is repeated until it has met the
    // attacker's link.
    for (let seed = 2; seed < 2 + ROUNDS_MAX && missing.size > 0; seed += 1) {
      const report = await attack({ operations: 40 * missing.size, seed, scenes, open, only: new Set(missing) });
      for (const { escapes, operation } of report.cells) if (escapes > 0) missing.delete(operation);
    }
    expect([...missing]).toEqual([]);
  },
  PATIENCE_MS,
);
