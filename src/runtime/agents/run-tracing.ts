import type { TraceCarrier } from '../../core/contract/trace-context.js';
import type { RunContext } from '../../core/contract/run/run-context.js';

/** What a starter of runs reports to telemetry. The reports never throw. */
export interface RunTracing {
  /** Called before the tree is opened. */
  openTree(tree_id: string, trace: TraceCarrier | undefined): void;
  /** A step begins: its proposal is about to be submitted. */
  startStep(run: RunContext, trace: TraceCarrier | undefined): void;
  /** Ends the observation of the step of an agent run that has no outcome; does nothing if it has one. */
  endStep(run_id: string): void;
}

/** Without telemetry. */
export const NO_TRACING: RunTracing = {
  openTree: () => undefined,
  startStep: () => undefined,
  endStep: () => undefined,
};
