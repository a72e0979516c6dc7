// Judges what an agent reports about its own context, and how long it has been silent. Neither is trusted, and both can
// pause a session.

import type { SessionLimits, SessionStatus } from '../contract/session.js';
import { elapsedMs, MINUTE_MS, type AgentContext, type SessionState } from './session-state.js';

/**
 * Estimates how full the agent's context is, in percent. A reported figure may rise. A lower figure is accepted only if
 * it fits a fresh context and differs from the last reported one. If the figure does not rise over several steps, the
 * agent does not measure it: after a few such steps, each one adds a penalty. Without a figure, the estimate counts the
 * executed steps.
 * @param steps executed since the agent's last call: 0 or 1
 */
export function updateContext(
  { pct, said: previous, repeats }: AgentContext,
  reported: number | null,
  steps: number,
  limits: SessionLimits,
): AgentContext {
  if (reported === null)
    return { pct: Math.min(100, pct + steps * limits.avg_pct_per_step), said: reported, repeats: 0 };
  const isFresh = reported < limits.context_reset_threshold_pct && reported !== previous;
  if (isFresh || reported > pct) return { pct: reported, said: reported, repeats: 0 };
  // Between two steps the figure need not change.
  if (steps === 0) return { pct, said: reported, repeats };
  const repeatCount = repeats + 1;
  const isStale = repeatCount + 1 >= limits.context_staleness_threshold;
  return {
    pct: isStale ? Math.min(100, pct + limits.context_staleness_penalty_pct) : pct,
    said: reported,
    repeats: repeatCount,
  };
}

export const isStepStale = ({ outstanding, settings, heartbeat_at }: SessionState, time: string): boolean => {
  if (outstanding === null) return false;
  const lastActive = outstanding.issued_at > heartbeat_at ? outstanding.issued_at : heartbeat_at;
  return elapsedMs(lastActive, time) > settings.limits.step_stale_minutes * MINUTE_MS;
};

/** `late` causes a warning. `stale` means that no agent works on the session. */
export function heartbeatStatus({ settings, heartbeat_at }: SessionState, time: string): 'alive' | 'late' | 'stale' {
  const silent_ms = elapsedMs(heartbeat_at, time);
  if (silent_ms > settings.limits.heartbeat_stale_minutes * MINUTE_MS) return 'stale';
  return silent_ms > settings.limits.heartbeat_grace_minutes * MINUTE_MS ? 'late' : 'alive';
}

/** The status as reported to clients: a running session without an active agent is reported as paused. */
export const effectiveStatus = (state: SessionState, time: string): SessionStatus =>
  state.status === 'running' && (isStepStale(state, time) || heartbeatStatus(state, time) === 'stale')
    ? 'paused'
    : state.status;
