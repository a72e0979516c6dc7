// One case: the mutated object, its mutation, the result of the verifier, and whether the independent checker agrees.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineFileOf } from '../../fixtures/forged-evidence.js';
import { Draw } from './draw.js';
import { bundleProblem, readBundle, type EntryOf } from './independent.js';
import { archiveFiles, bagProblem, type Files } from './independent-bag.js';
import type { Material } from './material.js';
import { mutatedBag } from './mutate-bag.js';
import { mutatedBundle } from './mutate-bundle.js';
import { mutatedZip } from './mutate-zip.js';
import { memoryTree, refusedOr, type Verifier } from './verifiers.js';

export type Kind = 'bundle' | 'bag' | 'zip';

/** A mutated object. `origin` is the object that it was made of. */
export type Case = { readonly name: string; readonly by: 'owner' | 'stranger' | 'no key' } & (
  | { readonly kind: 'bundle'; readonly bytes: Buffer; readonly text: string; readonly origin: string }
  | { readonly kind: 'bag'; readonly files: Files; readonly origin: Files }
  | { readonly kind: 'zip'; readonly bytes: Buffer; readonly origin: Files }
);

/** The case of this number; null if the mutated object cannot be written. */
export function drawCase(material: Material, seed: number, index: number): Case | null {
  const draw = new Draw((seed * 1_000_003 + index * 7_919) >>> 0);
  const kind = draw.of(['bundle', 'bundle', 'bag', 'zip'] as const);
  try {
    if (kind === 'bundle') {
      const origin = draw.of(material.bundles);
      const { text, name, by, signing } = mutatedBundle(origin, material, draw);
      return { kind, name: `${name} (${signing})`, by, text, bytes: Buffer.from(text), origin };
    }
    const at = draw.below(material.bags.length);
    const origin = material.bags[at] ?? {};
    if (kind === 'bag') {
      const { files, name, by, signing } = mutatedBag(origin, material, draw);
      return { kind, name: `${name} (${signing})`, by, files, origin };
    }
    const whole = material.zips[at] ?? Buffer.alloc(0);
    const { zip, name } = mutatedZip(whole, draw);
    return { kind, name, by: 'no key', bytes: zip, origin: archiveFiles(whole) ?? {} };
  } catch {
    return null;
  }
}

export const sizeOf = (one: Case): number =>
  one.kind === 'bag' ? Object.values(one.files).reduce((sum, { length }) => sum + length, 0) : one.bytes.length;

export interface Judgement {
  readonly verdict: string;
  /** A wrong acceptance, or a result that no verification may have; otherwise null. */
  readonly wrong: string | null;
}

/** Verifies one case, and compares. @param folder for archives, which are read from a file */
export async function judge(
  one: Case,
  { signer, stranger }: Material,
  verifier: Verifier,
  folder: string,
): Promise<Judgement> {
  try {
    if (one.kind === 'bundle') {
      const file = lineFileOf(one.bytes);
      const verdict = await refusedOr(() => verifier.bundle(file, signer));
      const other = one.by === 'stranger' ? 'refused' : await refusedOr(() => verifier.bundle(file, stranger));
      if (other !== 'refused') return { verdict, wrong: 'accepted for a key that has not signed it' };
      return { verdict, wrong: verdict === 'refused' ? null : bundleWrong(one, signer.vkey, verdict === 'verified') };
    }
    if (one.kind === 'bag') {
      const verdict = await refusedOr(() => verifier.bag(memoryTree(one.files), signer));
      const alone = await refusedOr(() => verifier.bag(memoryTree(one.files), null));
      if (alone === 'authenticated' && verdict === 'refused') return { verdict, wrong: 'authenticated without a key' };
      return { verdict, wrong: verdict === 'authenticated' ? bagWrong(one.files, one, signer.vkey) : null };
    }
    return await judgeZip(one, signer, verifier, join(folder, 'case.zip'));
  } catch (error) {
    return {
      verdict: 'threw',
      wrong: `threw ${error instanceof Error ? (error.stack ?? '').slice(0, 400) : String(error)}`,
    };
  }
}

async function judgeZip(
  one: Extract<Case, { kind: 'zip' }>,
  signer: Material['signer'],
  verifier: Verifier,
  path: string,
): Promise<Judgement> {
  writeFileSync(path, one.bytes);
  try {
    const verdict = await refusedOr(async () => {
      const tree = await verifier.zip(path, one.bytes);
      try {
        return await verifier.bag(tree, signer);
      } finally {
        await tree.close();
      }
    });
    if (verdict !== 'authenticated') return { verdict, wrong: null };
    const files = archiveFiles(one.bytes);
    return { verdict, wrong: files === null ? 'two readers find different files' : bagWrong(files, one, signer.vkey) };
  } finally {
    rmSync(path, { force: true });
  }
}

/** The violations in an accepted bundle. */
function bundleWrong(one: Extract<Case, { kind: 'bundle' }>, vkey: string, isWhole: boolean): string | null {
  const problem = bundleProblem(one.text, vkey);
  if (problem !== null) return problem;
  const [now, before] = [readBundle(one.text).lines, readBundle(one.origin).lines];
  if (one.by === 'no key') return JSON.stringify(now) === JSON.stringify(before) ? null : 'changed without the key';
  return isWhole ? otherOutcome(now, before) : null;
}

type Lines = ReturnType<typeof readBundle>['lines'];

/** Equal inputs with equal content give equal entries: a tree in which they do not was never recorded. */
function otherOutcome(now: Lines, before: Lines): string | null {
  const known = new Map(before.map((line) => [placeOf(line.entry), line]));
  const departed = new Set<string>();
  for (const line of now) {
    const { tree_id, seq, type, body } = JSON.parse(line.entry) as EntryOf;
    if (departed.has(tree_id)) continue;
    const former = known.get(placeOf(line.entry));
    const same =
      former !== undefined &&
      JSON.stringify((JSON.parse(former.entry) as EntryOf).body) === JSON.stringify(body) &&
      (type !== 'input' || JSON.stringify(former.artifacts) === JSON.stringify(line.artifacts));
    if (same) continue;
    departed.add(tree_id);
    if (type !== 'input') return `another ${type} at ${tree_id} ${seq} from the same inputs`;
  }
  return null;
}

function placeOf(text: string): string {
  const { tree_id, seq } = JSON.parse(text) as EntryOf;
  return `${tree_id} ${seq}`;
}

/** The violations in an accepted bag. */
function bagWrong(
  files: Files,
  { by, origin }: { readonly by: Case['by']; readonly origin: Files },
  vkey: string,
): string | null {
  const problem = bagProblem(files, vkey);
  if (problem !== null || by !== 'no key') return problem;
  const payload = (of: Files): string =>
    Object.keys(of)
      .filter((path) => path.startsWith('data/'))
      .sort()
      .join('\n');
  if (payload(files) !== payload(origin)) return 'other files without the key';
  const changed = Object.keys(files).find(
    (path) => path.startsWith('data/') && files[path]?.equals(origin[path] ?? Buffer.alloc(0)) !== true,
  );
  return changed === undefined ? null : `changed without the key: ${changed}`;
}
