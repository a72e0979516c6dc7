import { expect, test } from '@jest/globals';
import { SessionDriver } from '../../../fixtures/session.js';

test('S3-01 S3-03 S3-40: an agent works through a spec, step by step, to complete_spec and its exit packet', () => {
  const d = new SessionDriver().start();
  let answer = d.next();
  const stepTypes: string[] = [];
  for (let step = 0; step < 10 && answer.data?.next_step?.type !== 'complete_spec'; step += 1) {
    stepTypes.push(answer.data?.next_step?.type ?? 'none');
    answer = d.work();
  }
  expect(stepTypes).toEqual(['implement_task', 'execute_verification', 'run_fidelity_gate', 'implement_task']);
  expect(answer).toMatchObject({ success: true, data: { status: 'completed', loop_signal: 'spec_complete' } });
  expect(answer.data?.exit_packet).toEqual({
    spec_id: 'spec-a',
    session_id: d.tree_id,
    final_status: 'completed',
    loop_signal: 'spec_complete',
    pause_reason: null,
    active_phase_id: null,
    last_step_id: `${d.tree_id}-s4`,
    gates_satisfied: ['phase-1'],
    steps_executed: 4,
    summary: 'completed: 3 of 3 tasks completed',
    details: { response_success: true, error_code: null, recommended_actions: [] },
  });
  // C66: a step that needs no report.
  expect(answer.data?.next_step).not.toHaveProperty('issue');
  expect(d.tree.hasEnded).toBe(true);
});
