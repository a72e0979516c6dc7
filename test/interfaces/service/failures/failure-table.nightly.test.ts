// Walks the table of failures of docs/operating.md: each failure is caused for real, and the process shows exactly what
// its row says. Then the remedy of the operator makes it ready again.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mountNamespace } from '../../../crash/mount-namespace.js';
import { diskFolder } from '../../../fixtures/temp-folder.js';
import { CAUSES } from './causes.js';
import { failureRows } from './failure-rows.js';
import { buildMain, WAIT_MS } from './served-process.js';

const MS_MAX = 6 * WAIT_MS;
const ROWS = failureRows();
const namespace = mountNamespace();
const folder = diskFolder('failures');
const atEnd: (() => unknown)[] = [];
let main: string;

beforeAll(async () => {
  main = await buildMain(join(folder, 'built'));
}, MS_MAX);
afterEach(async () => {
  for (const work of atEnd.splice(0).reverse()) await work();
}, MS_MAX);

test('every row has a cause, and every cause a row', () => {
  expect(ROWS.map(({ failure }) => failure)).toEqual(Object.keys(CAUSES));
});

describe.each(ROWS)('$failure', ({ failure, readyz, metrics, log, exitCode }) => {
  test(
    'the process shows what the row says',
    async () => {
      const ground = {
        main,
        folder: mkdtempSync(join(folder, 'row-')),
        namespace,
        atEnd: (work: () => unknown) => void atEnd.push(work),
      };
      const failed = await CAUSES[failure]?.(ground);
      if (failed == null) return;
      const { process, remedy } = failed;
      if (readyz.length === 0) {
        expect(await process.ended).toBe(exitCode);
        expect(await process.admin('/readyz')).toBe('');
      } else {
        const shown = async (): Promise<readonly string[]> => (await process.admin('/readyz?verbose')).split('\n');
        await process.until(`readyz is ${readyz.join()}`, async () => includesAll(await shown(), readyz));
        // No other check fails. Without a database, writing fails too as soon as a step is at its commit.
        const isDown = readyz.some((line) => line.startsWith('[-]database'));
        const isListed = readyz.some((line) => line.startsWith('[-]ledger-write'));
        const failures = (await shown()).filter(
          (line) => line.startsWith('[-]') && !(isDown && !isListed && line.startsWith('[-]ledger-write')),
        );
        expect(failures).toEqual(readyz.filter((line) => line.startsWith('[-]')));
        expect((await process.admin('/metrics')).split('\n')).toEqual(expect.arrayContaining([...metrics]));
        expect(await process.admin('/livez')).toBe('ok');
      }
      await process.until(`the log has ${log.join()}`, () => log.every((text) => process.stderr.includes(text)));
      if (remedy === null) return;
      await remedy();
      await process.untilReady();
      expect(await process.step()).toBe('200 SUCCESS');
    },
    MS_MAX,
  );
});

const includesAll = (lines: readonly string[], expected: readonly string[]): boolean =>
  expected.every((line) => lines.includes(line));
