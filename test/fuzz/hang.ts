// Detects steps that hang. With many callers, the time to a response says little, and one slow step may be a pause of
// the collector or of the machine. So a slow payload is run again alone, and only the best of several attempts counts.

import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import type { Sent } from './caller.js';
import type { Opened, World } from './world.js';

export const HANG_MS = 50;
const ATTEMPTS = 5;
/** With 32 callers every response takes as long as 32 steps, and one hanging step delays all of them. */
const SUSPECT_MS = HANG_MS;
/** If one step hangs, those that waited for it look equally slow; the slowest of them is among the first. */
const SUSPECTS_MAX = 64;
/** The slowest steps of a chunk are measured too, so that the maximum is known. */
const SLOWEST = 8;

export interface Measured {
  readonly slowestMs: number;
  readonly hangs: readonly { readonly payload: Uint8Array; readonly ms: number }[];
}

/** Measures the slowest steps, in the world as they have left it. */
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
 * Milliseconds of this thread from now on, without the time in which it waited for a processor. So a busy machine makes
 * nothing slow here, while waiting for a file counts.
 */
export function stopwatch(): () => number {
  const [start, waited] = [performance.now(), waitedMs()];
  return () => performance.now() - start - (waitedMs() - waited);
}

/** How long this thread has waited for a processor; only Linux reports it. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1] ?? 0) / 1e6;
  } catch {
    return 0;
  }
}

/** The shortest of several attempts, each in its own run; one fast attempt suffices. */
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
