import type { Decision } from '../../kernel/decision.js';
import type { CommitListener } from './tick.js';

/** Tells callers and timers of this process what another worker has decided. It runs the effects itself. */
export function reportMissed(listener: CommitListener, tree_id: string, decisions: readonly Decision[]): void {
  for (const { replies, ended, timers } of decisions) {
    for (const reply of replies) listener.onReply(tree_id, reply);
    for (const ending of ended) listener.onEnded(tree_id, ending);
    if (timers.length > 0) listener.onTimers(tree_id, timers);
  }
}
