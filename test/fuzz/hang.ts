// Does a step hang? Among many callers the time to a response says little, and one slow step may be a pause of the
// collector or of the machine. So what seemed slow is asked again, alone, and only the best of some attempts counts.

import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import type { Sent } from './caller.js';
import type { Opened, World } from './world.js';

export const HANG_MS = 50;
const ATTEMPTS = 5;
/** Among 32 callers every response takes as long as 32 steps; one step that hangs makes all of them last longer. */
const SUSPECT_MS = HANG_MS;
/** When one step hangs, those that waited for it look no better; the slowest of them is among the first. */
const SUSPECTS_MAX = 64;
/** Besides those that seem to hang, the slowest ones of a chunk are measured too, so that the worst is known. */
const SLOWEST = 8;

export interface Measured {
  readonly slowestMs: number;
  readonly hangs: readonly { readonly payload: Uint8Array; readonly ms: number }[];
}

/** Measures the steps that were slowest, in the world as they have left it. */
export async function findHangs(world: World, sent: readonly Sent[]): Promise<Measured> {
  const bySlowness = [...sent].sort((a, b) => b.ms - a.ms);
  const suspects = bySlowness.filter(({ ms }, rank) => rank < SLOWEST || (ms > SUSPECT_MS && rank < SUSPECTS_MAX));
  const turnpike = await world.open('memory');
  let slowestMs = 0;
  const hangs: { payload: Uint8Array; ms: number }[] = [];
  for (const { payload, case_id } of suspects) {
    const ms = await bestOf(turnpike, payload, case_id);
    slowestMs = Math.max(slowestMs, ms);
    if (ms > HANG_MS) hangs.push({ payload, ms });
  }
  await turnpike.close();
  return { slowestMs, hangs };
}

/**
 * Milliseconds of this thread from now on, without the time in which it was ready but other processes had the
 * processor: a busy machine makes nothing slow here, while waiting for a file does count.
 */
export function stopwatch(): () => number {
  const [start, waited] = [performance.now(), waitedMs()];
  return () => performance.now() - start - (waitedMs() - waited);
}

/** How long this thread has waited for a processor; Linux tells it, elsewhere it is unknown. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1] ?? 0) / 1e6;
  } catch {
    return 0;
  }
}

/** The shortest of some attempts, each in a run of its own; one that is quick settles it. */
async function bestOf(turnpike: Opened, payload: Uint8Array, case_id: string): Promise<number> {
  let best = Infinity;
  for (let attempt = 0; attempt < ATTEMPTS && best > HANG_MS / 5; attempt += 1) {
    const agent = await turnpike.startAgent({ case: case_id });
    const elapsed = stopwatch();
    await agent.respond(payload);
    best = Math.min(best, elapsed());
    await agent.end();
  }
  return best;
}
