// Mistakes of shape, looked for part by part: of a whole spec, only the first few would be told, and of a task those of
// both its types.

import { inQuotes } from '../contract/finding-text.js';
import { isJsonObject, type JsonObject } from '../contract/json.js';
import { mistakesIn } from '../contract/schema-mistakes.js';
import {
  DEPENDENCIES_MAX,
  ImplementTask,
  SPEC_TASKS_MAX,
  UnreadPhase,
  UnreadSpec,
  VerifyTask,
} from '../contract/session-spec.js';
import type { SpecFindings } from './spec-finding.js';

/**
 * Says so where a document has more tasks, or a task more dependencies, than anybody looks at: before the schemas do,
 * which would compare each dependency of a million with the others.
 */
export function isTooLarge(value: unknown, findings: SpecFindings): boolean {
  let count = 0;
  for (const [index, phase] of membersOf(value, 'phases').entries()) {
    const tasks = membersOf(phase, 'tasks');
    count += tasks.length;
    const wide = tasks.findIndex((task) => membersOf(task, 'depends_on').length > DEPENDENCIES_MAX);
    if (wide < 0) continue;
    const path = `/phases/${index}/tasks/${wide}/depends_on`;
    findings.add('schema.value', path, `${path} must not have more than ${DEPENDENCIES_MAX} items`);
    return true;
  }
  if (count <= SPEC_TASKS_MAX) return false;
  findings.add('spec.too_many_tasks', '', `the spec has ${count} tasks; it may have ${SPEC_TASKS_MAX}`);
  return true;
}

/** Of a document that is no instance of its schema. */
export function findShapeMistakes(value: unknown, findings: SpecFindings): void {
  add(findings, UnreadSpec, value, '');
  for (const [index, phase] of membersOf(value, 'phases').entries()) {
    if (findings.isFull()) return;
    const path = `/phases/${index}`;
    findPhaseMistakes(phase, path, findings);
    for (const [place, task] of membersOf(phase, 'tasks').entries()) {
      if (findings.isFull()) return;
      findTaskMistakes(task, `${path}/tasks/${place}`, findings);
    }
  }
}

/** An empty command is none: that is told by name, here and where the gates are looked at. */
function findPhaseMistakes(phase: unknown, path: string, findings: SpecFindings): void {
  const gate = isJsonObject(phase) ? phase['gate'] : undefined;
  if (!isJsonObject(phase) || !isJsonObject(gate) || !isEmptyList(gate['command'])) {
    add(findings, UnreadPhase, phase, path);
    return;
  }
  findings.add('gate.no_command', `${path}/gate/command`, 'the command is empty');
  add(findings, UnreadPhase, { ...phase, gate: { ...gate, command: ANY_COMMAND } }, path);
}

function findTaskMistakes(task: unknown, path: string, findings: SpecFindings): void {
  const { type, command } = isJsonObject(task) ? task : NOTHING;
  if (!isJsonObject(task) || type === undefined || type === 'implement') add(findings, ImplementTask, task, path);
  else if (type !== 'verify') {
    findings.add('schema.value', `${path}/type`, `${path}/type must be "implement" or "verify"`);
  } else if (command !== undefined && !isEmptyList(command)) add(findings, VerifyTask, task, path);
  else {
    const name = typeof task['id'] === 'string' ? ` ${inQuotes(task['id'])}` : '';
    findings.add('task.no_command', path, `verification${name} has no command`);
    add(findings, VerifyTask, { ...task, command: ANY_COMMAND }, path);
  }
}

const ANY_COMMAND = ['true'];
const NOTHING: JsonObject = {};

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const membersOf = (value: unknown, name: string): readonly unknown[] => {
  const members = isJsonObject(value) ? value[name] : undefined;
  return Array.isArray(members) ? members : [];
};

function add(findings: SpecFindings, schema: Parameters<typeof mistakesIn>[0], value: unknown, at: string): void {
  for (const { pointer, rule, message } of mistakesIn(schema, value, at)) {
    if (pointer === '/spec_version') findings.add('version.mismatch', pointer, 'spec_version must be 1');
    else findings.add(rule, pointer, message);
  }
}
