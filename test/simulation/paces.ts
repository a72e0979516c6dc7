// The same seeds with paced work that yields never, at every call and at every 7th, on a free processor and in parallel
// with busy loops: the history of a seed depends on neither.

import { Worker } from 'node:worker_threads';
import type { Yields } from './pace.js';
import { simulate, type Report } from './simulate.js';

export const YIELDS: readonly Yields[] = [0, 1, 7];
export const BUSY_LOOPS = 4;

/** Runs one seed at each of the paces. @returns the reports, in the order of `YIELDS` */
export async function simulatePaces(seed: number, steps: number): Promise<readonly Report[]> {
  const reports: Report[] = [];
  for (const yields of YIELDS) reports.push(await simulate({ seed, steps, yields }));
  return reports;
}

/** Runs `work` while this many threads keep the processor busy. */
export async function besideBusyLoops<T>(loops: number, work: () => Promise<T>): Promise<T> {
  const threads = Array.from({ length: loops }, () => new Worker('for (;;) ;', { eval: true }));
  try {
    return await work();
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}
