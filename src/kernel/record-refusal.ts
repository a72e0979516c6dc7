// What is told of a tree's runs and moves none of them: that something was refused, and that somebody read content.

import type { AccessInput, RecordedInput } from '../contract/run/entry.js';
import type { RunContext } from '../contract/run/run-context.js';
import { InvariantError } from '../errors.js';
import { accessEvent, illegalTransitionEvent } from '../run/audit-events.js';
import type { DecisionBuilder } from './decision-builder.js';

/** Of whom it is told where the runs are not remembered. A session is no run; what is told of it has its context. */
type SessionRunContext = RunContext | null;

/** C50: the run that was asked, or else the tree's own. */
export function recordRefusal(
  builder: DecisionBuilder,
  tree_id: string,
  { run_id, kind }: RecordedInput,
  sessionContext: SessionRunContext,
): void {
  const run = (builder.run(run_id) ?? builder.run(tree_id))?.context ?? sessionContext;
  if (run === null) throw new InvariantError('the first input of a tree must be `open`');
  builder.record({ type: 'audit_event', body: illegalTransitionEvent(run, run_id, kind) });
}

/** Of the run whose content it is, or the nearest one above that is remembered. @returns false for a stranger's run */
export function recordAccess(
  builder: DecisionBuilder,
  tree_id: string,
  access: AccessInput,
  sessionContext: SessionRunContext,
): boolean {
  const { run_id } = access;
  const run =
    run_id === tree_id || run_id.startsWith(`${tree_id}.`) ? (builder.findNearest(run_id) ?? sessionContext) : null;
  if (run === null) return false;
  builder.record({ type: 'audit_event', body: accessEvent(run, access) });
  return true;
}
