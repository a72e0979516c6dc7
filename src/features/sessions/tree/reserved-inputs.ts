// Which inputs of a session's tree only the session itself may submit.

import type { RecordedInput } from '../../../core/contract/run/entry.js';
import type { KnownRun } from '../../../kernel/tree-snapshot.js';

const START_KINDS: ReadonlySet<string> = new Set(['start_agent', 'start_run']);

/**
 * Whether only the session itself may submit this input to its tree. The session starts the runs of an activation,
 * counts them and waits for them by id. It also ends an activation: to cancel one, pause it (C93).
 */
export function isReservedForSession({ kind }: RecordedInput, run: KnownRun | null): boolean {
  if (START_KINDS.has(kind)) return true;
  return kind === 'cancel' && run?.context.run_kind !== 'agent';
}
