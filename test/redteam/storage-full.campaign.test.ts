import { beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { mountNamespace } from '../crash/mount-namespace.js';
import { bundled } from '../fixtures/bundled.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { fullDiskFindings } from './storage-full.js';

const PROGRAM = 'build/test/redteam/storage-full';
const MS_MAX = 120_000;
const namespace = mountNamespace();
const onFullDisk = namespace === null ? test.skip : test;
const folder = diskFolder('storage-full');

beforeAll(() => bundled(folder, { [PROGRAM]: 'test/redteam/storage-full.ts' }), MS_MAX);

const findings = (planted: boolean): readonly string[] => {
  const program = join(folder, `${PROGRAM}.js`);
  return fullDiskFindings({ program, folder: mkdtempSync(join(folder, 'case-')), planted }, namespace ?? []);
};

onFullDisk(
  'D2 C35: on a full disk a running step is recorded and every run can be ended; no new work starts',
  () => {
    expect(findings(false)).toEqual([]);
  },
  MS_MAX,
);

onFullDisk(
  'detects a home without a reserve',
  () => {
    expect(findings(true)).toEqual(expect.arrayContaining([expect.stringMatching(/running step|has not stopped/)]));
  },
  MS_MAX,
);
