/** The states of a run, with the names of the lifecycle contract (S4 §3). */
export const RUN_STATES = ['created', 'running', 'completed', 'failed', 'denied', 'cancelled'] as const;
/** One of `RUN_STATES`. */
export type RunState = (typeof RUN_STATES)[number];

/** The four states that a run never leaves (S4-23, S4-24). */
export const TERMINAL_STATES = ['completed', 'failed', 'denied', 'cancelled'] as const satisfies readonly RunState[];
/** One of `TERMINAL_STATES`. */
export type TerminalState = (typeof TERMINAL_STATES)[number];

export const isTerminal = (state: RunState): state is TerminalState =>
  (TERMINAL_STATES as readonly RunState[]).includes(state);

/** The state of a run after an audit event; null if the event does not change it (C47, C48). */
export function stateAfterEvent(event: {
  readonly action_type: string;
  readonly outcome_reason?: string;
}): RunState | null {
  const { action_type, outcome_reason = '' } = event;
  if (action_type !== 'system' || isStatePreserving(outcome_reason)) return null;
  return outcome_reason.split(':', 1)[0] as RunState;
}

/** The purpose of a run (S4 §2). */
export const RUN_KINDS = [
  'orchestrator',
  'agent',
  'tool_gateway',
  'db_write',
  'db_read',
  'promotion',
  'export',
] as const;
/** One of `RUN_KINDS`. */
export type RunKind = (typeof RUN_KINDS)[number];

/** `outcome_reason` of an event that does not change the run's state; it may come after the run's end. */
export const TRANSITION_REFUSED = 'INVALID_STATE_TRANSITION';
export const OUTCOME_RESOLVED = 'OUTCOME_RESOLVED:';
export const CONTENT_READ = 'CONTENT_READ';
export const LEDGER_RESTORED = 'LEDGER_RESTORED';
export const RESTORE_ACKNOWLEDGED = 'RESTORE_ACKNOWLEDGED';
export const KEY_ROTATED = 'KEY_ROTATED';

/** Whether a system event with this reason leaves the state of its run unchanged. */
export const isStatePreserving = (outcome_reason = ''): boolean =>
  outcome_reason === TRANSITION_REFUSED ||
  outcome_reason === CONTENT_READ ||
  outcome_reason === LEDGER_RESTORED ||
  outcome_reason === RESTORE_ACKNOWLEDGED ||
  outcome_reason === KEY_ROTATED ||
  outcome_reason.startsWith(OUTCOME_RESOLVED);
