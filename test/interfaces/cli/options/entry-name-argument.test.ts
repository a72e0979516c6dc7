import { beforeAll, describe, expect, test } from '@jest/globals';
import { findLogIndex, parseEntryName } from '../../../../src/interfaces/cli/options/entry-name-argument.js';
import { nameInLedger, nameInTree } from '../../../../src/core/contract/entry-name.js';
import { finish, initialised, jsonLines, turnpike, write, type Said } from '../fake-io.js';

interface PrintedEntry {
  readonly tree_id: string;
  readonly seq: number;
}

let folder: string;
/** The entries of a ledger of two trees, in order. */
let entries: readonly PrintedEntry[];
const run = (...argv: string[]): Promise<Said> => turnpike(folder, argv);

beforeAll(async () => {
  folder = await initialised();
  for (const path of ['/sandbox/a.sh', '/sandbox/b.sh', '/sandbox/c.txt'])
    await turnpike(folder, ['run', '-'], { stdin: [write(path, 'x'), finish()].join('\n') });
  await run('ledger', 'export', 'entries', '--entries');
  const { readFileSync } = await import('node:fs');
  entries = jsonLines<PrintedEntry>(readFileSync(`${folder}/entries`, 'utf8'));
});

describe('the name of an entry', () => {
  test.each(['@55', 'run_a#24', 'ses_a#0', 'run_a.1.2#24', 'run_a:24', '24'])('%s is read', (text) => {
    expect(parseEntryName(text)).not.toBeNull();
  });

  test.each([
    '',
    '@',
    '#24',
    'run_a#',
    'run_a',
    '@-1',
    '@1.5',
    '007',
    '@007',
    'a#1',
    'last',
    '1e3',
    '@9999999999999999',
    ' 1',
  ])('%j is refused with both forms', (text) => {
    expect(() => parseEntryName(text)).toThrow(/@55 is entry 55 of the ledger, run_ID#24 is entry 24/);
  });

  test('is read as it is printed, for every entry of a ledger', async () => {
    const ledger = sourceOf(entries);
    for (const [log_index, { tree_id, seq }] of entries.entries()) {
      expect(await findLogIndex(nameInLedger(log_index), ledger)).toBe(log_index);
      expect(await findLogIndex(nameInTree(tree_id, seq), ledger)).toBe(log_index);
    }
  });

  test('a bare number is taken if and only if both readings mean the same entry', async () => {
    const ledger = sourceOf(entries);
    for (let number = 0; number <= entries.length; number += 1) {
      const meant = new Set([number, ...entries.flatMap(({ seq }, log_index) => (seq === number ? [log_index] : []))]);
      const found = findLogIndex(String(number), ledger);
      if (meant.size === 1) expect(await found).toBe(number);
      else
        await expect(found).rejects.toMatchObject({ code: 'USAGE', message: expect.stringMatching(/two entries: @/) });
    }
    expect(entries.filter(({ seq }) => seq > 0).length).toBeGreaterThan(20);
  });
});

describe('what `runs RUN` prints', () => {
  test('names for every command the decision that it shows', async () => {
    const denials = entries.flatMap((entry, log_index) =>
      JSON.stringify(entry).includes('"decision":"deny"') ? [{ ...entry, log_index }] : [],
    );
    expect(new Set(denials.map(({ tree_id }) => tree_id)).size).toBe(2);
    for (const { tree_id, seq, log_index } of denials) {
      const name = nameInTree(tree_id, seq);
      const runs = jsonLines<{ run_id: string }>((await run('runs', '--json', '--all')).stdout);
      const shown = await Promise.all(
        runs.filter(({ run_id }) => run_id.startsWith(tree_id)).map(({ run_id }) => run('runs', run_id)),
      );
      expect(shown.some(({ stdout }) => stdout.includes(`${name} `))).toBe(true);
      const heading = `${nameInLedger(log_index)} (${name}): deny`;
      for (const given of [name, nameInLedger(log_index)])
        expect(await run('policy', 'explain', given)).toMatchObject({
          code: 0,
          stdout: expect.stringContaining(heading),
        });
      for (const argv of [
        ['policy', 'explain'],
        ['ledger', 'prove'],
        ['replay', '--until'],
      ])
        expect(await run(...argv, String(seq))).toMatchObject({
          code: 2,
          stderr: expect.stringMatching(/^USAGE: \d+ could be two entries: @\d+ .* run_\w+#\d+/),
        });
      const at = await run('replay', '--until', name, '--json');
      expect(at.stdout).toBe((await run('replay', '--until', nameInLedger(log_index), '--json')).stdout);
      const proof = await run('ledger', 'prove', name);
      expect(proof.stdout).toBe((await run('ledger', 'prove', nameInLedger(log_index))).stdout);
    }
  });
});

function sourceOf(all: readonly PrintedEntry[]): Parameters<typeof findLogIndex>[1] {
  const placed = all.map((entry, log_index) => ({ ...entry, log_index }));
  const trees = new Map(placed.map((entry) => [entry.tree_id, entry]));
  const from = async function* (list: typeof placed): AsyncIterable<(typeof placed)[number]> {
    await Promise.resolve();
    yield* list;
  };
  return {
    tree: (tree_id, fromSeq) => from(placed.filter((entry) => entry.tree_id === tree_id && entry.seq >= fromSeq)),
    trees: () => trees.values(),
  };
}
