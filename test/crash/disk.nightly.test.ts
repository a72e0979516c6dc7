// A small part of the crash campaign (`npm run campaign -- crash`): damaged files, failed writes, full disks and locks.
// Nothing here depends on the interpreter of the machines, so it runs once.

import { expect, test } from '@jest/globals';
import { expectNothing, suiteOptions } from './built.js';
import { fullDisk } from './full-disk.js';
import { mountNamespace } from './mount-namespace.js';
import { portFaults } from './port-faults.js';
import { stoppedWriter, twoProcesses } from './processes.js';
import { tornHead } from './torn-head.js';
import { tornWal } from './torn-wal.js';
import { torn } from './torn.js';

const MS_MAX = 300_000;
const options = await suiteOptions('disk-test', 7);

test(
  'D15: with torn pages, no loss below the head file is undetected',
  async () => {
    const tally = await torn({ ...options, samples: 4, kinds: ['killed'], pages: 2 });
    expectNothing(tally);
    expect(tally.notes.get('refused LEDGER_BELOW_HEAD')).toBeGreaterThan(0);
  },
  MS_MAX,
);

test(
  'D15: a damaged head file returns one of its two heads, or is reported as damaged',
  async () => {
    const tally = await tornHead(options, 97);
    expectNothing(tally);
    expect(tally.notes.get('refused LEDGER_TAMPERED')).toBeGreaterThan(0);
    expect(tally.notes.get('says the newest head')).toBeGreaterThan(0);
  },
  MS_MAX,
);

test(
  'D2 C35: a failed commit or head write (ENOSPC, EIO) stops everything, and the next opening completes the ledger',
  async () => {
    expectNothing(await portFaults(options, ['commit.before', 'commit.after', 'externalHeadStore.before'], 16));
  },
  MS_MAX,
);

test(
  'D13: a second process is locked out until the first is killed',
  async () => {
    expectNothing(await twoProcesses(options, 1));
  },
  MS_MAX,
);

test(
  'D13: a writer that lost its lock while stopped gets LEDGER_CONFLICT, acknowledges nothing, and starts nothing',
  async () => {
    expectNothing(await stoppedWriter(options, [{ point: 'commit.before', nth: 4 }], []));
  },
  MS_MAX,
);

test(
  'D15: bytes of the last entries in the database log, cut, zeroed, filled or flipped: refused, or not below the head',
  async () => {
    const tally = await tornWal(options, 997);
    expectNothing(tally);
    // A process that also writes has met each outcome.
    expect(tally.notes.get('opened whole')).toBeGreaterThanOrEqual(tally.notes.get('different outcomes') ?? Infinity);
    expect([...tally.notes.keys()]).toEqual(expect.arrayContaining(['whole', 'refused LEDGER_BELOW_HEAD']));
  },
  MS_MAX,
);

/** If no disk can be filled here, the report says that the test was skipped. */
const onFullDisk = mountNamespace() === null ? test.skip : test;

onFullDisk(
  'D2 D3 D8 C35: a process on a full disk restarts when there is space: remote runs continue, no effect runs twice',
  () => {
    const tally = fullDisk(options, [1_200, 1_600], 'restarted');
    expect(tally.violations).toEqual([]);
    expect(tally.notes.get('ledger stopped')).toBe(2);
  },
  MS_MAX,
);
