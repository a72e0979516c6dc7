// What the storage guard admits for a given free space and given budgets. The disk is simulated: the test sets its free
// space.

import '../../fixtures/features.js';
import { describe, expect, test } from '@jest/globals';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { DiskSpace } from '../../../src/engine/ports/disk-space.js';
import type { TreeAppend } from '../../../src/engine/ports/ledger/ledger-store.js';
import {
  StorageGuard,
  recordedBytes,
  StorageAccounts,
  type StorageAccountIds,
  type StorageOptions,
} from '../../../src/runtime/storage/storage-guard.js';

const MIB = 2 ** 20;
const ME: StorageAccountIds = { tree_id: 'run_a', case_id: 'case-a', actor_id: 'anna' };

/** `free` excludes the reserve. */
class Disk implements DiskSpace {
  reserved = 0;
  free: number;
  readonly total = 100 * MIB;

  constructor(free: number) {
    this.free = free;
  }

  measure = () => ({ free: this.free, total: this.total });
  reservedBytes = (): number => this.reserved;

  reserve(bytes: number): boolean {
    if (this.free + this.reserved < bytes) return false;
    this.free += this.reserved - bytes;
    this.reserved = bytes;
    return true;
  }

  release(): void {
    this.free += this.reserved;
    this.reserved = 0;
  }
}

const clock = { now: () => Date.parse('2026-01-01T00:00:00.000Z') };
const guardOf = (space: DiskSpace | null, options: StorageOptions = {}, at = clock): StorageGuard => {
  const guard = new StorageGuard({ options, space, clock: at, log: winstonLog('silent') });
  guard.open();
  return guard;
};

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'taken',
    (error: unknown) => (error as { readonly code: string }).code,
  );
const nothing = (): Promise<void> => Promise.resolve();

/** One append to a tree, with an input at `time` and some bytes of content. */
function appendOf(bytes: number, time = '2026-01-01T00:00:00.000Z', over: Partial<TreeAppend> = {}): TreeAppend {
  const entry = { type: 'input', body: { kind: 'proposal', time } };
  const artifact = { kind: 'raw_payload', case_id: 'case-a', bytes: new Uint8Array(bytes) };
  return {
    tree_id: 'run_a',
    opened: null,
    ended: false,
    entries: [{ text: '', entry }],
    artifacts: [{ entry: 0, artifact, sha256: '' }],
    ...over,
  } as unknown as TreeAppend;
}

/** The same append, with an input that starts an agent. */
function startedBy(actor_id: string, append: TreeAppend): TreeAppend {
  const [first] = append.entries;
  const { body } = first?.entry as { body: object };
  const actor = { actor_type: 'agent', actor_id };
  const entry = { type: 'input', body: { ...body, kind: 'start_agent', actor } };
  return { ...append, entries: [{ ...first, entry }] } as unknown as TreeAppend;
}

describe('the free space of the disk', () => {
  test('below the low-water mark no run starts, and only small content is accepted', async () => {
    const disk = new Disk(50 * MIB);
    const guard = guardOf(disk);
    expect(disk.reserved).toBe(MIB);
    expect(await codeOf(guard.admitStart(ME, nothing))).toBe('taken');
    expect(await codeOf(guard.admitContent(ME, MIB, nothing))).toBe('taken');
    disk.free = 5 * MIB - 1;
    expect(await codeOf(guard.admitStart(ME, nothing))).toBe('STORAGE_LOW');
    expect(await codeOf(guard.admitContent(ME, 16_385, nothing))).toBe('STORAGE_LOW');
    expect(await codeOf(guard.admitContent(ME, 16_384, nothing))).toBe('taken');
    disk.free = 5 * MIB;
    expect(await codeOf(guard.admitStart(ME, nothing))).toBe('taken');
  });

  test('a commit without room gets the reserve; then nothing is accepted until there is room for both again', async () => {
    const disk = new Disk(50 * MIB);
    const guard = guardOf(disk);
    disk.free = MIB / 4;
    guard.prepare({ epoch: 1, trees: [appendOf(1_000)] });
    expect(disk.reserved).toBe(MIB);
    guard.prepare({ epoch: 1, trees: [appendOf(100_000)] });
    expect([disk.reserved, disk.free]).toEqual([0, 1.25 * MIB]);
    expect(await codeOf(guard.admitContent(ME, 1, nothing))).toBe('STORAGE_LOW');
    disk.free = 6 * MIB - 1;
    expect(await codeOf(guard.admitContent(ME, 1, nothing))).toBe('STORAGE_LOW');
    disk.free = 6 * MIB;
    expect(await codeOf(guard.admitContent(ME, 1, nothing))).toBe('taken');
    expect(disk.reserved).toBe(MIB);
  });

  test('the reserve of an earlier process is reused, or given up if the disk is low', () => {
    const disk = new Disk(5 * MIB);
    disk.reserved = MIB;
    guardOf(disk);
    expect([disk.reserved, disk.free]).toEqual([MIB, 5 * MIB]);
    disk.free = MIB;
    const guard = new StorageGuard({ options: {}, space: disk, clock, log: winstonLog('silent') });
    guard.releaseReserveIfLow();
    guard.releaseReserveIfLow();
    expect([disk.reserved, disk.free]).toEqual([0, 2 * MIB]);
  });

  test('if it is unknown or cannot be measured, only budgets decide', async () => {
    const unknown: DiskSpace = {
      measure: () => null,
      reservedBytes: () => 0,
      reserve: () => false,
      release: () => undefined,
    };
    for (const space of [null, unknown]) {
      const guard = guardOf(space);
      guard.prepare({ epoch: 1, trees: [] });
      guard.releaseReserveIfLow();
      expect(await codeOf(guard.admitStart(ME, nothing))).toBe('taken');
    }
  });

  test('marks are validated options', async () => {
    const disk = new Disk(50 * MIB);
    expect(await codeOf(guardOf(disk, { freeBytesMin: 50 * MIB, reservedBytes: 7 }).admitStart(ME, nothing))).toBe(
      'STORAGE_LOW',
    );
    for (const runBytes of [0, -1, 1.5, Number.NaN]) {
      expect(() => guardOf(null, { runBytes })).toThrow('storage.runBytes: a whole number of bytes');
    }
  });
});

describe('storage budgets', () => {
  const CALLERS = 64;

  test.each(['runBytes', 'caseBytes', 'actorBytes'] as const)('%s holds for 64 concurrent callers', async (name) => {
    const guard = guardOf(null, { [name]: 10 * 100_000 });
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    const codes = Array.from({ length: CALLERS }, () => codeOf(guard.admitContent(ME, 100_000 - 24_576, () => gate)));
    go();
    const admitted = (await Promise.all(codes)).filter((code) => code === 'taken');
    expect(admitted).toHaveLength(10);
    // The bytes of failed work are available again.
    expect(await codeOf(guard.admitContent(ME, 1, nothing))).toBe('taken');
  });

  test('are charged with recorded bytes; other budgets are unaffected', async () => {
    const guard = guardOf(null, { caseBytes: 200_000 });
    guard.onCommitted({ epoch: 1, trees: [appendOf(130_000, undefined, { opened: { case_id: 'case-a' } })] });
    expect(await codeOf(guard.admitContent(ME, 1, nothing))).toBe('STORAGE_BUDGET');
    expect(await codeOf(guard.admitContent({ ...ME, tree_id: 'run_b', case_id: 'case-b' }, 1, nothing))).toBe('taken');
  });

  test('of a run tree end with it; of an actor, with the hour', () => {
    const book = new StorageAccounts({ runBytes: 1_000, actorBytes: 10_000 });
    const created = {
      type: 'run_created',
      body: { case_id: 'case-a', actor: { actor_type: 'agent', actor_id: 'anna' } },
    };
    const first = appendOf(8_000, '2026-01-01T10:59:59.999Z');
    const opening = { ...first, entries: [...first.entries, { text: '', entry: created }] } as unknown as TreeAppend;
    book.committed({ epoch: 1, trees: [opening] });
    expect(book.admit(ME, 1)).toBe('run');
    book.committed({ epoch: 1, trees: [appendOf(0, '2026-01-01T10:59:59.999Z', { ended: true })] });
    const other = { ...ME, tree_id: 'run_b' };
    expect(book.admit(other, 1)).toBe('actor');
    // What is admitted when the hour ends stays reserved.
    expect(book.admit({ ...other, actor_id: 'berta' }, 9_000)).toBe('run');
    const berta = book.admit({ ...other, actor_id: 'berta' }, 900);
    book.committed({ epoch: 1, trees: [appendOf(0, '2026-01-01T11:00:00.000Z', { tree_id: 'run_c' })] });
    expect(book.admit(other, 1)).toHaveProperty('accounts');
    if (typeof berta !== 'string') book.settle(berta);
    expect(book.admit({ ...other, actor_id: 'berta' }, 999)).toHaveProperty('accounts');
  });

  test('of an actor start again with the hour, even if nothing was recorded since', async () => {
    let now = Date.parse('2026-01-01T10:30:00.000Z');
    const guard = guardOf(null, { actorBytes: 100_000 }, { now: () => now });
    guard.onCommitted({ epoch: 1, trees: [startedBy('anna', appendOf(100_000, '2026-01-01T10:30:00.000Z'))] });
    expect(await codeOf(guard.admitStart(ME, nothing))).toBe('STORAGE_BUDGET');
    now = Date.parse('2026-01-01T11:00:00.000Z');
    expect(await codeOf(guard.admitStart(ME, nothing))).toBe('taken');
  });

  test.each(['access', 'vote', 'resolve'])(
    'what a person’s `%s` records counts for the person, never for the agent of the tree',
    (kind) => {
      const berta = { actor_type: 'human', actor_id: 'berta' };
      const body = { kind, time: '', actor: berta, approver: { actor: berta } };
      const auditEntry = { type: 'audit_event', body: { case_id: 'case-a', actor: berta } };
      const entries = [
        { text: 'x'.repeat(4_000), entry: { type: 'input', body } },
        { text: '', entry: auditEntry },
      ];
      const answered = { ...appendOf(4_000), entries } as unknown as TreeAppend;
      for (const known of [true, false]) {
        const book = new StorageAccounts({ runBytes: 10_000, caseBytes: 10_000, actorBytes: 10_000 });
        if (known) book.committed({ epoch: 1, trees: [startedBy('anna', appendOf(0))] });
        book.committed({ epoch: 1, trees: [answered] });
        expect(book.admit({ tree_id: null, case_id: null, actor_id: 'berta' }, 1)).toBe('actor');
        // The tree does not become the reader's either.
        book.committed({ epoch: 1, trees: [startedBy('anna', appendOf(1_000))] });
        expect(book.admit(ME, 5_000)).toHaveProperty('accounts');
      }
    },
  );

  test('of a session count for its agent from its first entry on', () => {
    const book = new StorageAccounts({ actorBytes: 1_000 });
    const body = {
      kind: 'open_session',
      feature: 'sessions',
      time: '',
      agent: { actor: { actor_type: 'agent', actor_id: 'anna' } },
    };
    const entries = [{ text: '', entry: { type: 'input', body } }];
    book.committed({ epoch: 1, trees: [{ ...appendOf(1_000), entries } as unknown as TreeAppend] });
    expect(book.admit({ ...ME, tree_id: 'run_b' }, 1)).toBe('actor');
  });

  test('count entries in bytes of UTF-8', () => {
    const [one] = appendOf(0).entries;
    const entries = [{ ...one, text: '\u4e00'.repeat(1_000) }] as unknown as TreeAppend['entries'];
    expect(recordedBytes({ entries, artifacts: [] })).toBeGreaterThan(4_500);
  });

  test('count an entry and a content with the overhead of the database', () => {
    expect(recordedBytes(appendOf(1_000))).toBeGreaterThan(1_500);
  });
});
