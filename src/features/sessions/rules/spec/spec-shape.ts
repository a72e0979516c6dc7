// Finds where a document does not match the schema of a spec. Each part is compared with its own schema: a comparison
// of the whole spec would report only the first few mistakes, and for a task the mistakes of both task types.

import { quoteForMessage } from '../../../../core/contract/finding-text.js';
import { isJsonObject, type JsonObject } from '../../../../core/contract/json.js';
import { findSchemaMistakes } from '../../../../core/contract/validators.js';
import {
  DEPENDENCIES_MAX,
  ImplementTask,
  SPEC_TASKS_MAX,
  UncheckedPhase,
  UncheckedSpec,
  VerifyTask,
} from '../../contract/session-spec.js';
import type { SpecFindings } from './spec-finding.js';

/**
 * Reports a document with too many tasks, or a task with too many dependencies. This check comes before the schemas,
 * which would compare each of a million dependencies with all others.
 */
export function isTooLarge(value: unknown, findings: SpecFindings): boolean {
  let count = 0;
  for (const [index, phase] of membersOf(value, 'phases').entries()) {
    const tasks = membersOf(phase, 'tasks');
    count += tasks.length;
    const wideIndex = tasks.findIndex((task) => membersOf(task, 'depends_on').length > DEPENDENCIES_MAX);
    if (wideIndex < 0) continue;
    const path = `/phases/${index}/tasks/${wideIndex}/depends_on`;
    findings.add('schema.value', path, `${path} must not have more than ${DEPENDENCIES_MAX} items`);
    return true;
  }
  if (count <= SPEC_TASKS_MAX) return false;
  findings.add('spec.too_many_tasks', '', `the spec has ${count} tasks; it may have ${SPEC_TASKS_MAX}`);
  return true;
}

/** Reports the mistakes of a document that does not match its schema. */
export function findShapeMistakes(value: unknown, findings: SpecFindings): void {
  addMistakes(findings, UncheckedSpec, value, '');
  for (const [index, phase] of membersOf(value, 'phases').entries()) {
    if (findings.isFull()) return;
    const path = `/phases/${index}`;
    findPhaseMistakes(phase, path, findings);
    for (const [taskIndex, task] of membersOf(phase, 'tasks').entries()) {
      if (findings.isFull()) return;
      findTaskMistakes(task, `${path}/tasks/${taskIndex}`, findings);
    }
  }
}

/** An empty command gets a rule of its own, here and in the check of gates. */
function findPhaseMistakes(phase: unknown, path: string, findings: SpecFindings): void {
  const gate = isJsonObject(phase) ? phase['gate'] : undefined;
  if (!isJsonObject(phase) || !isJsonObject(gate) || !isEmptyList(gate['command'])) {
    addMistakes(findings, UncheckedPhase, phase, path);
    return;
  }
  findings.add('gate.no_command', `${path}/gate/command`, 'the command is empty');
  addMistakes(findings, UncheckedPhase, { ...phase, gate: { ...gate, command: PLACEHOLDER_COMMAND } }, path);
}

function findTaskMistakes(task: unknown, path: string, findings: SpecFindings): void {
  const { type, command } = isJsonObject(task) ? task : EMPTY_OBJECT;
  if (!isJsonObject(task) || type === undefined || type === 'implement')
    addMistakes(findings, ImplementTask, task, path);
  else if (type !== 'verify') {
    findings.add('schema.value', `${path}/type`, `${path}/type must be "implement" or "verify"`);
  } else if (command !== undefined && !isEmptyList(command)) addMistakes(findings, VerifyTask, task, path);
  else {
    const name = typeof task['id'] === 'string' ? ` ${quoteForMessage(task['id'])}` : '';
    findings.add('task.no_command', path, `verification${name} has no command`);
    addMistakes(findings, VerifyTask, { ...task, command: PLACEHOLDER_COMMAND }, path);
  }
}

const PLACEHOLDER_COMMAND = ['true'];
const EMPTY_OBJECT: JsonObject = {};

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const membersOf = (value: unknown, name: string): readonly unknown[] => {
  const members = isJsonObject(value) ? value[name] : undefined;
  return Array.isArray(members) ? members : [];
};

function addMistakes(
  findings: SpecFindings,
  schema: Parameters<typeof findSchemaMistakes>[0],
  value: unknown,
  at: string,
): void {
  for (const { pointer, rule, message } of findSchemaMistakes(schema, value, at)) {
    if (pointer === '/spec_version') findings.add('version.mismatch', pointer, 'spec_version must be 1');
    else findings.add(rule, pointer, message);
  }
}
