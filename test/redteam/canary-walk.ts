// The result of a walk: the number of queries, and where a canary was found.

import type { Output } from './canary-http.js';
import { canariesIn } from './canary-search.js';
import { CANARIES, ENTRY_CANARIES, SHOWN } from './canary-world.js';

export interface Walk {
  readonly outputs: number;
  readonly bytes: number;
  readonly leaks: readonly string[];
  /** Outputs that contain content of a lane that withholds nothing. */
  readonly shown: number;
  readonly entryTexts: ReadonlySet<string>;
}

const SHOWN_ALONE = [SHOWN] as const;

export async function walked(outputs: AsyncIterable<Output>): Promise<Walk> {
  let [count, bytes, open] = [0, 0, 0];
  const leaks: string[] = [];
  const entryTexts = new Set<string>();
  for await (const { name, bytes: output } of outputs) {
    count += 1;
    bytes += output.length;
    for (const { kind, form } of canariesIn(output, CANARIES)) leaks.push(`${name}: ${kind} as ${form}`);
    for (const { kind } of canariesIn(output, ENTRY_CANARIES)) entryTexts.add(kind);
    if (canariesIn(output, SHOWN_ALONE).length > 0) open += 1;
  }
  return { outputs: count, bytes, leaks, shown: open, entryTexts };
}

export const kindsIn = (bytes: Uint8Array): string[] => canariesIn(bytes, CANARIES).map(({ kind }) => kind);
