// The campaign against the verifiers of bundles, bags and archives: many cases in this process, with the cost of each.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tally } from '../../crash/tally.js';
import { drawCase, judge, sizeOf, type Kind } from './cases.js';
import { makeMaterial, type Material } from './material.js';
import { REAL, type Verifier } from './verifiers.js';

/** The longest permitted verification, in milliseconds, whatever its input. */
export const CASE_MS_MAX = 10_000;

export interface Share {
  readonly seed: number;
  /** The first case, and the distance to the next one. */
  readonly from: number;
  readonly step: number;
  readonly cases: number;
  readonly verifier?: Verifier;
}

export interface Outcome {
  readonly tallies: readonly Tally[];
  /** Cases by their size. */
  readonly sizes: readonly (readonly [bytes: number, index: number])[];
}

const KINDS: readonly Kind[] = ['bundle', 'bag', 'zip'];

/** Judges its share of the cases. */
export async function attackEvidence(
  { seed, from, step, cases, verifier = REAL }: Share,
  given?: Material,
): Promise<Outcome> {
  const material = given ?? (await makeMaterial());
  const tallies = new Map(KINDS.map((kind) => [kind, new Tally(kind)]));
  const sizes: [number, number][] = [];
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-redteam-'));
  try {
    for (let index = from; index < cases; index += step) {
      const one = drawCase(material, seed, index);
      if (one === null) continue;
      const tally = tallies.get(one.kind);
      const begun = performance.now();
      const { verdict, wrong } = await judge(one, material, verifier, folder);
      const ms = performance.now() - begun;
      if (tally === undefined) continue;
      tally.cases += 1;
      tally.note(verdict);
      tally.most('ms at most', Math.round(ms));
      tally.most('bytes at most', sizeOf(one));
      const label = `case ${index} ${one.kind} ${one.name} by ${one.by}`;
      tally.that(wrong === null, () => `${label}: ${verdict}: ${wrong ?? ''}`);
      tally.that(ms <= CASE_MS_MAX, () => `${label}: took ${Math.round(ms)} ms`);
      sizes.push([sizeOf(one), index]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { tallies: [...tallies.values()], sizes };
}
