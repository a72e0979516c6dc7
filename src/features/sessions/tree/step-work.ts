import { stepId } from '../../../../machines/agent.js';
import type { Policy } from '../../../core/policy/policy.js';
import type { SessionState } from '../rules/session-state.js';
import type { StepWork } from '../rules/turn-builder.js';
import type { TouchedFiles } from './touched-files.js';

interface StepWorkSources {
  readonly policy: Policy;
  readonly touched: TouchedFiles;
  readonly isLive: (run_id: string) => boolean;
}

/** What the runs of the outstanding step have changed, and whether they are still live. */
export function collectStepWork(
  { outstanding, agent }: SessionState,
  { policy, touched, isLive }: StepWorkSources,
): StepWork {
  if (outstanding === null) return { touched: [], busy: false, refuses_unmediated: false };
  const { run_ids, step } = outstanding;
  const lane = policy.lanes.get(step.lane_id ?? agent.lane_id);
  return {
    touched: touched.pathsOf(run_ids),
    busy: run_ids.some((run_id) => isLive(stepId(run_id))),
    refuses_unmediated: lane?.refuses_unmediated === true,
  };
}
