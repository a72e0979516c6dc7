import type { RunError } from '../core/errors.js';
import { executionSuspendedError, sandboxElsewhereError } from './engine-errors.js';
import type { SuspendableEffects } from './suspension.js';
import type { NewInput, Submission } from './tree-engine.js';

/** Inputs that start no effect: they start or end runs, or record a report, a reading, a restore or a rotation. */
const WITHOUT_EFFECTS: ReadonlySet<NewInput['kind']> = new Set([
  'open',
  'start_agent',
  'end',
  'cancel',
  'interrupt',
  'access',
  'report',
  'restore',
  'rotate_key',
]);

/** Also accepted after a restore: people find out what has happened. */
const WHILE_SUSPENDED: ReadonlySet<NewInput['kind']> = new Set([...WITHOUT_EFFECTS, 'resolve']);

/**
 * @returns why a process that executes no effects does not accept this input; null if it does. Its ledger was restored,
 * or its sandbox is elsewhere.
 */
export function refuseInput(
  effects: SuspendableEffects,
  { input, startsNoEffect }: Pick<Submission, 'input' | 'startsNoEffect'>,
): RunError | null {
  const { kind } = input;
  // The command of an operator executes the act of such a run.
  if (startsNoEffect === true || (input.kind === 'start_run' && input.run_kind === 'tool_gateway')) return null;
  if (effects.isSuspended) return WHILE_SUSPENDED.has(kind) ? null : executionSuspendedError();
  return effects.isElsewhere && !WITHOUT_EFFECTS.has(kind) ? sandboxElsewhereError() : null;
}
