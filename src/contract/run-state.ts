/** The states of a run, as the lifecycle contract (S4 §3) names them. */
export const RUN_STATES = ['created', 'running', 'completed', 'failed', 'denied', 'cancelled'] as const;
export type RunState = (typeof RUN_STATES)[number];

/** The four states that a run never leaves (S4-23, S4-24). */
export const TERMINAL_STATES = ['completed', 'failed', 'denied', 'cancelled'] as const satisfies readonly RunState[];
export type TerminalState = (typeof TERMINAL_STATES)[number];

export const isTerminal = (state: RunState): state is TerminalState =>
  (TERMINAL_STATES as readonly RunState[]).includes(state);

/** What a run is for (S4 §2). */
export const RUN_KINDS = [
  'orchestrator',
  'agent',
  'tool_gateway',
  'db_write',
  'db_read',
  'promotion',
  'export',
] as const;
export type RunKind = (typeof RUN_KINDS)[number];
