// What is told of a tree's runs and moves none of them: that something was refused, and that somebody read content.

import type { AccessInput, RecordedInput } from '../contract/entry.js';
import type { RunContext } from '../contract/run-context.js';
import { InvariantError } from '../errors.js';
import { accessEvent, illegalTransitionEvent } from '../run/audit.js';
import type { Hearing } from './hearing.js';

/** Of whom it is told where the runs are not remembered. A session is no run; what is told of it has its context. */
type OfSession = RunContext | null;

/** C50: the run that was asked, or else the tree's own. */
export function tellRefusal(hearing: Hearing, tree_id: string, { run_id, kind }: RecordedInput, of: OfSession): void {
  const run = (hearing.run(run_id) ?? hearing.run(tree_id))?.context ?? of;
  if (run === null) throw new InvariantError('the first input of a tree must be `open`');
  hearing.hear({ type: 'audit_event', body: illegalTransitionEvent(run, run_id, kind) });
}

/** Of the run whose content it is, or the nearest one above that is remembered. @returns false for a stranger's run */
export function tellAccess(hearing: Hearing, tree_id: string, access: AccessInput, of: OfSession): boolean {
  const { run_id } = access;
  const run = run_id === tree_id || run_id.startsWith(`${tree_id}.`) ? (hearing.nearest(run_id) ?? of) : null;
  if (run === null) return false;
  hearing.hear({ type: 'audit_event', body: accessEvent(run, access) });
  return true;
}
