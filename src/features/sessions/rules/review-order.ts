// Describes a phase to its reviewer: its tasks, their results, and the changed files. The description is bounded, since
// it goes into a run and to a program's standard input.

import type { JsonObject } from '../../../core/contract/json.js';
import {
  isVerifyTask,
  VERIFY_CWD,
  VERIFY_TIMEOUT_SECONDS,
  type SpecGate,
  type SpecPhase,
} from '../contract/session-spec.js';
import { taskStatus } from './task-progress.js';
import type { ChangedFiles, SessionState } from './session-state.js';

/**
 * Maximum characters of all instructions and acceptance criteria together. A task whose texts do not fit is listed
 * without them.
 */
export const REVIEWED_CHARS_MAX = 262_144;
/** Maximum number of files listed as changed in a phase. */
export const REVIEWED_FILES_MAX = 1_000;

interface ReviewRequest {
  readonly phase: SpecPhase & { readonly gate: SpecGate };
  readonly step_id: string;
  readonly gate_attempt_id: string;
  /** Files that the runs of the gate's own step have changed. */
  readonly touched: readonly string[];
}

export function reviewOrder(
  state: SessionState,
  { phase, step_id, gate_attempt_id, touched }: ReviewRequest,
): JsonObject {
  const { reviewer, command, cwd = VERIFY_CWD, timeout_seconds = VERIFY_TIMEOUT_SECONDS } = phase.gate;
  return {
    spec_id: state.spec.id,
    session_id: state.session_id,
    phase_id: phase.id,
    step_id,
    gate_attempt_id,
    reviewer,
    command: command === undefined ? null : [...command],
    cwd,
    timeout_ms: timeout_seconds * 1_000,
    instruction: phase.gate.instruction ?? null,
    title: phase.title,
    tasks: describeTasks(state, phase),
    files_touched: [...mergeChangedFiles(state.changed, phase.id, touched).files],
  };
}

/** A verification is decided by its command, so it has no instruction to show. */
function describeTasks(state: SessionState, { tasks }: SpecPhase): JsonObject[] {
  let left = REVIEWED_CHARS_MAX;
  return tasks.map((task) => {
    const summary = { id: task.id, title: task.title, status: taskStatus(state, task.id) };
    if (isVerifyTask(task)) return summary;
    const { instruction, acceptance = [] } = task;
    const length = acceptance.reduce((sum, line) => sum + line.length, instruction.length);
    if (length > left) return summary;
    left -= length;
    return { ...summary, instruction, acceptance: [...acceptance] };
  });
}

/** Adds files to those that the steps of the phase have changed. Files of another phase are dropped. */
export function mergeChangedFiles(before: ChangedFiles, phase_id: string, touched: readonly string[]): ChangedFiles {
  const known = before.phase_id === phase_id ? before.files : [];
  if (touched.length === 0) return before.phase_id === phase_id ? before : { phase_id, files: [] };
  return { phase_id, files: [...new Set([...known, ...touched])].slice(0, REVIEWED_FILES_MAX) };
}
