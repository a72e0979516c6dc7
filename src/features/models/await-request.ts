// Waits until people have decided about the request for approval that a proposal made. The agent is not called
// meanwhile. The votes may come from another process, so the loop looks for them, at growing intervals.

import { parseOwnJson } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { RequestOutcome } from '../../engine/ports/agent-exchange.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { RunRequest } from '../../runtime/agents/run-requests.js';
import { payloadBytes } from '../../runtime/agents/caller-input.js';
import type { RecordedExchange } from './loop-state.js';
import type { Interruption, RunWatch } from './run-watch.js';

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 1_000;

export interface RequestWait {
  readonly find: (payload: Uint8Array) => Promise<RunRequest | null>;
  readonly watch: RunWatch;
  readonly clock: Clock;
  /** Milliseconds; null for no limit. */
  readonly waitMs: number | null;
  readonly onRequest: ((request: RunRequest) => void) | undefined;
}

/** The outcome of the request, or why the loop no longer waits for it. */
export type RequestWaitResult = { readonly outcome: RequestOutcome | null } | { readonly reason: WaitStop };
export type WaitStop = Interruption | 'approval_pending';

/** @returns no outcome if the proposal was not denied, or made no request */
export async function awaitRequest(wait: RequestWait, { raw, response }: RecordedExchange): Promise<RequestWaitResult> {
  if (!isDenied(parseOwnJson(response) as StepResponse)) return { outcome: null };
  const payload = payloadBytes(raw);
  let request = await wait.find(payload);
  if (request?.status !== 'open') return { outcome: outcomeOf(request) };
  wait.onRequest?.(request);
  const { clock, waitMs } = wait;
  const until = waitMs === null ? Infinity : clock.now() + waitMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(2 * pause, LAST_POLL_MS)) {
    const left = until - clock.now();
    if (left <= 0) return { reason: 'approval_pending' };
    const interruption = await pauseFor(wait, Math.min(pause, left));
    if (interruption !== null) return { reason: interruption };
    request = await wait.find(payload);
    if (request?.status !== 'open') return { outcome: outcomeOf(request) };
  }
}

/** Lets time pass. @returns what has ended the pause; null if it was the time */
export async function pauseFor(
  { clock, watch }: Pick<RequestWait, 'clock' | 'watch'>,
  ms: number,
): Promise<Interruption | null> {
  let cancel = (): void => undefined;
  const timer = new Promise<null>((resolve) => {
    cancel = clock.wake(clock.now() + ms, () => resolve(null));
  });
  try {
    return await watch.raceWith(timer, ['run_ended', 'aborted']);
  } finally {
    cancel();
  }
}

const isDenied = (response: StepResponse): boolean =>
  'decision' in response ? response.decision === 'DENY' : response.outcome === 'DENIED';

/**
 * What became of the request of an earlier exchange, whose approval may have been used since. It is not waited for.
 */
export async function findPastOutcome(
  find: RequestWait['find'],
  { raw, response }: RecordedExchange,
): Promise<RequestOutcome | null> {
  if (!isDenied(parseOwnJson(response) as StepResponse)) return null;
  const request = await find(payloadBytes(raw));
  return request?.status === 'consumed' ? 'approved' : outcomeOf(request);
}

function outcomeOf(request: RunRequest | null): RequestOutcome | null {
  switch (request?.status) {
    case 'granted':
      return 'approved';
    case 'rejected':
    case 'expired':
      return request.status;
    default:
      return null;
  }
}
