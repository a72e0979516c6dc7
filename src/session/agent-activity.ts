// What an agent says of itself, and how long it has been silent: neither is taken on trust, both can pause a session.

import type { SessionLimits, SessionStatus } from '../contract/session/session.js';
import { elapsedMs, MINUTE_MS, type AgentContext, type SessionState } from './session-state.js';

/**
 * How full the agent's context is taken to be. A figure may rise; a fall is believed only where it is that of a fresh
 * context, and not the very figure that was said before. Steps over which it does not rise are steps over which it is
 * not being taken: after a few of them, each costs a penalty. Without a figure the steps that were made are counted.
 * @param steps made since the agent was last asked: 0 or 1
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
  // Between two steps a context may well stay as it is.
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

/** `late`: worth a warning. `stale`: nobody is there. */
export function heartbeatStatus({ settings, heartbeat_at }: SessionState, time: string): 'alive' | 'late' | 'stale' {
  const silent_ms = elapsedMs(heartbeat_at, time);
  if (silent_ms > settings.limits.heartbeat_stale_minutes * MINUTE_MS) return 'stale';
  return silent_ms > settings.limits.heartbeat_grace_minutes * MINUTE_MS ? 'late' : 'alive';
}

/** What a session is when somebody looks at it: a running one that nobody works on is as good as paused. */
export const effectiveStatus = (state: SessionState, time: string): SessionStatus =>
  state.status === 'running' && (isStepStale(state, time) || heartbeatStatus(state, time) === 'stale')
    ? 'paused'
    : state.status;
