// A changed or incomplete bundle is opened for a person to look at: with the stored text, the hash of that text and the
// recorded one, and what is still provable. Nothing of it is ever verified. Method: a real bundle, changed in every
// generated way, read by the same proof as in the page.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PartProver } from '../../../src/interfaces/inspector/page/worker/part-prover.js';
import {
  isProvable,
  provableText,
  type ProofState,
} from '../../../src/interfaces/inspector/page/worker/ledger-proof.js';
import { leafHash } from '../../../src/core/ledger/proof/merkle.js';
import { indexByTree, recordedHashes } from '../../../src/interfaces/inspector/flagged-evidence.js';
import type { InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { inspectedBundle } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { renderOneFile } from '../../../src/interfaces/inspector/render-one-file.js';
import { initialised, finish, think, turnpike, write } from '../cli/fake-io.js';

let folder: string;
/** The lines of the bundle: header, entries, statement. */
let lines: readonly string[];
const textsOf = (all: readonly string[]): readonly string[] =>
  all.slice(1).map((line) => (JSON.parse(line) as { readonly entry: string }).entry);

beforeAll(async () => {
  folder = await initialised();
  const stdin = [write('/sandbox/a.txt', 'a'), think(), finish()].join('\n');
  for (let run = 0; run < 2; run += 1)
    expect(await turnpike(folder, ['run', '-'], { stdin })).toMatchObject({ code: 0 });
  expect(await turnpike(folder, ['ledger', 'export', 'bundle'])).toMatchObject({ code: 0 });
  lines = readFileSync(join(folder, 'bundle'), 'utf8').split('\n').slice(0, -1);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const put = (changed: readonly string[]): string => {
  const path = join(folder, 'changed');
  writeFileSync(path, `${changed.join('\n')}\n`);
  return path;
};

/** Reads a source as the page does. @returns every state that the page would show */
async function statesOf(source: InspectorSource): Promise<readonly ProofState[]> {
  const info = await source.info();
  const states: (ProofState | null)[] = [];
  const prover = new PartProver(
    (from, to) => source.entries(from, to),
    (state) => states.push(state),
    async (at) => (await source.event(at))?.leaf_hash ?? null,
  );
  prover.begin(info);
  prover.addRows(await source.rows(info.begin, info.size));
  prover.onGrowth(info);
  const isDone = (): boolean =>
    states.length > 0 && (states.at(-1) === null || states.at(-1)?.read === states.at(-2)?.read);
  for (let round = 0; round < 2_000 && !isDone(); round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (round % 20 === 19) prover.onGrowth({ ...info });
  }
  return states.filter((state) => state !== null);
}

const withEntry = (line: string, change: (text: string) => string): string => {
  const value = JSON.parse(line) as { entry: string };
  return JSON.stringify({ ...value, entry: change(value.entry) });
};
/** Changes one digit of the time of an entry: the text remains an entry. */
const laterTime = (text: string): string =>
  text.replace(/T(\d\d):(\d\d):(\d\d)/, (_all, h: string, m: string) => `T${h}:${m}:61`);

describe('one changed entry', () => {
  test('is shown with its text, both hashes, and the proof of all others', async () => {
    const texts = textsOf(lines.slice(0, -1));
    const trees = texts.map((text) => (JSON.parse(text) as { readonly tree_id: string }).tree_id);
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: texts.length - 1 }), async (at) => {
        const changed = lines.with(at + 1, withEntry(lines[at + 1] ?? '', laterTime));
        const { source, flaw } = await inspectedBundle(put(changed), null);
        expect(flaw).toMatch(/not a complete evidence bundle/);
        expect(await source.info()).toMatchObject({ flaw, size: texts.length });
        const text = laterTime(texts[at] ?? '');
        const hasNext = trees.lastIndexOf(trees[at] ?? '') > at;
        const recorded = leafHash(hasNext ? (texts[at] ?? '') : text);
        expect(await source.event(at)).toMatchObject({ text, leaf_hash: recorded });
        const states = await statesOf(source);
        expect(states.map(({ verified }) => verified).filter((count) => count > 0)).toEqual([]);
        const last = states.at(-1);
        if (last === undefined) throw new Error('no state');
        expect(last.broken).not.toBeNull();
        expect(last.changed).toEqual(hasNext ? [{ at, computed: leafHash(text), recorded }] : []);
        // The signed root confirms the recorded hash, and with it all other entries.
        expect(isProvable(last)).toBe(hasNext);
        expect(provableText(last)).toContain(hasNext ? `all entries except @${at}.` : 'provable: nothing');
        await source.close();
      }),
      { numRuns: 8 },
    );
  });
});

/** Changes of the lines of a bundle, at a generated place. */
const CHANGES: Readonly<Record<string, (all: readonly string[], place: number) => readonly string[]>> = {
  'an entry is missing': (all, place) => all.toSpliced(entryAt(all, place), 1),
  'the end is missing': (all, place) => all.slice(0, 1 + entryAt(all, place)),
  'two entries are exchanged': (all, place) => {
    const at = Math.min(entryAt(all, place), all.length - 3);
    return all.with(at, all[at + 1] ?? '').with(at + 1, all[at] ?? '');
  },
  'a line is not an entry': (all, place) => all.with(entryAt(all, place), '{"x":'),
  'an entry is not JSON': (all, place) => {
    const at = entryAt(all, place);
    return all.with(
      at,
      withEntry(all[at] ?? '', (text) => text.slice(5)),
    );
  },
  'the signature differs': (all) =>
    all.with(
      -1,
      (all.at(-1) ?? '').replace(/"sig":"(.)/, (_all, c: string) => `"sig":"${c === 'A' ? 'B' : 'A'}`),
    ),
  'a content differs': (all) => {
    const at = all.findIndex((line) => /"content":"[A-Za-z0-9]{8}/.test(line));
    return all.with(at, (all[at] ?? '').replace(/"content":"../, '"content":"QU'));
  },
};
const entryAt = (all: readonly string[], place: number): number => 1 + (place % (all.length - 2));

describe('any change of a bundle', () => {
  test.each(Object.entries(CHANGES))(
    '%s: it is opened and listed as a whole, and nothing is verified',
    async (_name, change) => {
      await fc.assert(
        fc.asyncProperty(fc.nat({ max: 10_000 }), async (place) => {
          const { source, flaw } = await inspectedBundle(put(change(lines, place)), null);
          expect(typeof flaw).toBe('string');
          const { begin, size } = await source.info();
          expect((await source.rows(begin, size)).rows).toHaveLength(size);
          const states = await statesOf(source);
          expect(states.length).toBeGreaterThan(0);
          expect(states.filter(({ verified, broken }) => verified > 0 || broken === null)).toEqual([]);
          await source.close();
        }),
        { numRuns: 4 },
      );
    },
  );

  test('is written as one file too, which says so', async () => {
    const { source } = await inspectedBundle(put(CHANGES['an entry is not JSON']?.(lines, 9) ?? []), null);
    expect(await renderOneFile(TEMPLATE, source, { maxBytes: 1e8 })).toContain('"flaw":');
    await source.close();
  });

  test('another file is refused, and an intact bundle has no flaw', async () => {
    await expect(inspectedBundle(put(['hello', 'world']), null)).rejects.toThrow('not an evidence bundle');
    const { source, flaw } = await inspectedBundle(put(lines), null);
    expect([flaw, (await statesOf(source)).at(-1)?.verified]).toEqual([null, lines.length - 2]);
    await source.close();
  });
});
const TEMPLATE = '<script type="application/json" id="turnpike-data"></script>';

test('a recorded hash is the one that the next entry of the tree names, unless that one was changed too', () => {
  const line = (seq: number, hash: string, prev: string | null) => ({ tree_id: 't', seq, hash, prev });
  expect(recordedHashes([line(0, 'a', null), line(1, 'b', 'a'), line(2, 'c', 'b')])).toEqual(['a', 'b', 'c']);
  expect(recordedHashes([line(0, 'x', null), line(1, 'b', 'a'), line(2, 'c', 'b')])).toEqual(['a', 'b', 'c']);
  // The second entry was changed: what it names proves nothing about the first.
  expect(recordedHashes([line(0, 'a', null), line(1, 'y', 'z'), line(2, 'c', 'b')])).toEqual(['a', 'b', 'c']);
  expect(recordedHashes([line(0, 'a', null), line(2, 'c', 'b')])).toEqual(['a', 'c']);
});

test('indexes as many lines as a file may have, also if all are of one tree: each is added once', () => {
  // Copying the list for each line took longer than a test may, from 100,000 lines on.
  const lines = Array.from({ length: 300_000 }, () => ({ tree_id: '' }));
  const places = indexByTree([...lines, { tree_id: 'run_a' }]);
  expect([places.get('')?.length, places.get('')?.at(-1), places.get('run_a')]).toEqual([300_000, 299_999, [300_000]]);
});
