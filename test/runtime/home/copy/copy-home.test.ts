// A copy of an SQLite home to another one. PostgreSQL: copy-home.campaign.test.ts.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { copyHome } from '../../../../src/runtime/home/copy/copy-home.js';
import { resolveLocation } from '../../../../src/runtime/home/copy/copy-location.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { createRichLedger } from './rich-ledger.js';
import { dumpLedger } from './same-ledger.js';

let folder: string;
let home: string;

beforeAll(async () => {
  folder = tempFolder('copy');
  home = await createRichLedger(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('home copy', () => {
  test('copies an SQLite home to another one', async () => {
    const [from, to] = [resolveLocation(home), resolveLocation(join(folder, 'copy'))];
    const report = await copyHome({ from, to });
    expect(report.verdict).toMatchObject({ verdict: 'by_hash_alone', problems: [] });
    expect(await dumpLedger(to)).toEqual(await dumpLedger(from));
  });
});
