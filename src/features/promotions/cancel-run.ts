import type { RunContext } from '../../core/contract/run/run-context.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { createCancelInput } from '../../runtime/agents/caller-input.js';
import { runNotCancellableError } from '../../runtime/agents/run-errors.js';

/**
 * Cancels the tree of a promotion or export: at once while it waits for approval, else when its effect has ended.
 * @throws RunError INVALID_STATE_TRANSITION if it has ended
 */
export async function cancelRun(
  engine: Pick<TreeEngine, 'peek' | 'submit'>,
  run: Pick<RunContext, 'run_id' | 'root_run_id'>,
  reason: string,
): Promise<void> {
  const { root_run_id } = run;
  const { input, materials } = createCancelInput(run, await engine.peek(root_run_id), reason);
  const { refused } = await engine.submit(root_run_id, { input, materials, rememberInputId: false });
  if (refused) throw runNotCancellableError(run.run_id);
}
