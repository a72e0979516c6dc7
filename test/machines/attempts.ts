// Steps in the middle of their attempts, without a tree, for tests of what the step machine computes.

import type { DoneEvent, MediatedOutcome, RunOutput } from '../../machines/run.js';
import { type StepMemory } from '../../machines/step-memory.js';
import { newStepMemory } from '../../machines/step.js';
import { artifactRef } from '../../src/core/contract/artifact-ref.js';
import { createCatalogue } from '../../src/core/contract/policy/catalogue.js';
import type { RunContext } from '../../src/core/contract/run/run-context.js';
import { emptyBook } from '../../src/core/policy/policy-features.js';
import { EMPTY_LABEL } from '../../src/core/policy/authorize-run.js';
import type { Policy } from '../../src/core/policy/policy.js';
import { limitsOf, openAccount } from '../../src/core/run/budget-account.js';
import { REGISTERED } from '../fixtures/governed.js';
import { testPolicy } from '../fixtures/policy.js';
import { RUN } from '../fixtures/privileged.js';
import { CASE } from '../fixtures/tree.js';

/** The agent run of the step. */
export const PROPOSER: RunContext = { ...RUN, run_id: 'run_agent', run_kind: 'agent', parent_run_id: 'run_root' };
export const RECEIVED_AT = '2026-01-01T00:00:00.000Z';

/** A policy with tools, tables and retries. */
export const RETRYING_POLICY: Policy = {
  ...testPolicy({ catalogue: createCatalogue(REGISTERED) }),
  retries: { max: 2, backoff_ms: 1_000 },
};

/** A step whose first attempt is running; `over` replaces members of its memory. */
export const attempting = (over: Partial<StepMemory> = {}): StepMemory => ({
  ...newStepMemory({
    agent: PROPOSER,
    exposure: 'detailed',
    input_id: 'in-1',
    step_index: 1,
    received_at: RECEIVED_AT,
    payload: artifactRef({ kind: 'raw_payload', case_id: CASE, bytes: Buffer.from('{}') }),
    raw: null,
    seen: null,
    recorded_response: null,
    mediated_runs: 4,
    account: openAccount(limitsOf({})),
    label: EMPTY_LABEL,
    approvals: emptyBook(PROPOSER.run_id),
    unsettled: [],
    overlay: null,
  }),
  attempts: 1,
  ...over,
});

/** The members of a step that calls a tool which may be called twice with one key. */
export const CALL = { action: 'CALL_TOOL', args: { tool: 'slow.tool', input: {} } } as const;
export const READ = { action: 'READ_FILE', args: { path: '/sandbox/a.txt' } } as const;

export const NO_OUTCOME: MediatedOutcome = { result: null, result_ref: null, cause: null, denied_by: null, at: null };

/** The output of a failed attempt. */
export const failedOutput = (over: Partial<RunOutput> = {}): RunOutput => ({
  run_id: 'run_agent.5',
  state: 'failed',
  end: { reason: 'IO_ERROR', error: { error_code: 'IO_ERROR', message: 'It failed.', retryable: true } },
  done: { ...NO_OUTCOME, cause: 'IO_ERROR', at: '2026-01-01T00:00:10.000Z' },
  spent: null,
  ...over,
});

export const doneEvent = (output: RunOutput): DoneEvent => ({
  type: `xstate.done.actor.${output.run_id}` as DoneEvent['type'],
  actorId: output.run_id,
  output,
});
