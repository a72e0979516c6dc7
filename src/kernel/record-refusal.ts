// Audit events that change no run: an input was refused, content was read, the ledger was restored, or a key replaced.

import type { AccessInput, RecordedInput, RestoreInput, RotateKeyInput } from '../core/contract/run/entry.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import { InvariantError } from '../core/errors.js';
import { accessEvent, illegalTransitionEvent, restoreEvent, rotationEvent } from '../core/run/audit-events.js';
import type { DecisionBuilder } from './decision-builder.js';

/** The context of a tree whose root is no run, if the tree knows no run to attribute to; null for a run tree. */
type OwnContext = RunContext | null;

/** C50: attributes the refusal to the addressed run, or else to the tree's own context. */
export function recordRefusal(
  builder: DecisionBuilder,
  tree_id: string,
  { run_id, kind }: RecordedInput,
  ownContext: OwnContext,
): void {
  const run = (builder.run(run_id) ?? builder.run(tree_id))?.context ?? ownContext;
  if (run === null) throw new InvariantError('the first input of a tree must be `open`');
  builder.record({ type: 'audit_event', body: illegalTransitionEvent(run, run_id, kind) });
}

/**
 * Attributes the access to the run that owns the content, or to its nearest known ancestor.
 * @returns false if the run belongs to another tree
 */
export function recordAccess(
  builder: DecisionBuilder,
  tree_id: string,
  access: AccessInput,
  ownContext: OwnContext,
): boolean {
  const { run_id } = access;
  const run =
    run_id === tree_id || run_id.startsWith(`${tree_id}.`) ? (builder.findNearest(run_id) ?? ownContext) : null;
  if (run === null) return false;
  builder.record({ type: 'audit_event', body: accessEvent(run, access) });
  return true;
}

/**
 * Attributes an event of the whole ledger to the root of the tree that was opened for it.
 * @returns false in any other tree
 */
export function recordLedgerEvent(
  builder: DecisionBuilder,
  tree_id: string,
  input: RestoreInput | RotateKeyInput,
): boolean {
  const run = input.run_id === tree_id ? builder.run(tree_id) : null;
  if (run === null) return false;
  const { context } = run;
  const body = input.kind === 'restore' ? restoreEvent(context, input) : rotationEvent(context, input);
  builder.record({ type: 'audit_event', body });
  return true;
}
