// Checks whether a document is a spec that a session can complete, and reports everything that is wrong with it.
// `turnpike session check`, the start of a session and a rebase all call this function.

import { quoteForMessage } from '../../../../core/contract/finding-text.js';
import { canonicalizePath, type SandboxPathOptions } from '../../../../core/policy/sandbox-path.js';
import { isInstance, type SchemaRule, findSchemaMistakes } from '../../../../core/contract/validators.js';
import {
  isVerifyTask,
  SessionSpec,
  type SpecGate,
  type SpecPhase,
  type SpecTask,
  DEPENDENCIES_MAX,
  ImplementTask,
  SPEC_TASKS_MAX,
  UncheckedPhase,
  UncheckedSpec,
  VerifyTask,
} from '../../contract/session-spec.js';
import { isJsonObject, type JsonObject } from '../../../../core/contract/json.js';

/** A session cannot be started from a spec with an error; a warning does not prevent it. */
export type SpecSeverity = 'error' | 'warning';

export const SPEC_RULES = {
  'version.mismatch': 'error',
  'schema.unknown_key': 'error',
  'schema.missing_key': 'error',
  'schema.type': 'error',
  'schema.value': 'error',
  'spec.too_many_tasks': 'error',
  'text.malformed': 'error',
  'phase.duplicate_id': 'error',
  'task.duplicate_id': 'error',
  'task.no_command': 'error',
  'task.unknown_dependency': 'error',
  'task.later_dependency': 'error',
  'task.waits_for_verification': 'error',
  'task.cycle': 'error',
  'command.empty': 'error',
  'command.nul_byte': 'error',
  'folder.outside_sandbox': 'error',
  'gate.no_command': 'error',
  'gate.command_unused': 'error',
  'lane.unknown': 'error',
  'phase.unchecked': 'warning',
} as const satisfies Record<SchemaRule, SpecSeverity> & Record<string, SpecSeverity>;
export type SpecRule = keyof typeof SPEC_RULES;

/** One problem of a spec. The message is one line of printable ASCII, whatever the spec contains. */
export interface SpecFinding {
  readonly severity: SpecSeverity;
  readonly rule: SpecRule;
  /** JSON pointer of the problem; empty for the whole spec. */
  readonly path: string;
  readonly message: string;
}

/** Maximum number of errors, and of warnings, that are reported. */
export const SPEC_FINDINGS_MAX = 200;

/** Collects findings up to the limit. */
class SpecFindings {
  readonly #errors: SpecFinding[] = [];
  readonly #warnings: SpecFinding[] = [];

  add(rule: SpecRule, path: string, message: string): void {
    const severity = SPEC_RULES[rule];
    const findings = severity === 'error' ? this.#errors : this.#warnings;
    if (findings.length < SPEC_FINDINGS_MAX) findings.push({ severity, rule, path, message });
  }

  get hasErrors(): boolean {
    return this.#errors.length > 0;
  }
  /** Whether so many errors are collected that further ones would be dropped. */
  isFull(): boolean {
    return this.#errors.length >= SPEC_FINDINGS_MAX;
  }
  /** Errors first. */
  list(): readonly SpecFinding[] {
    return [...this.#errors, ...this.#warnings];
  }
}

/** `spec` is not null exactly when no finding is an error. */
export interface SpecCheck {
  /** Errors first. */
  readonly findings: readonly SpecFinding[];
  readonly spec: SessionSpec | null;
}

/**
 * Checks a parsed document. References between its parts are checked once each part has a valid shape.
 * @param lanes the lanes of the contract; null if the caller checks them elsewhere
 */
export function checkSpec(value: unknown, lanes: ReadonlySet<string> | null): SpecCheck {
  const findings = new SpecFindings();
  if (isTooLarge(value, findings)) return { findings: findings.list(), spec: null };
  if (!isInstance(SessionSpec, value)) {
    findShapeMistakes(value, findings);
    return { findings: findings.list(), spec: null };
  }
  findMalformedText(value, findings);
  const unique = findDuplicates(value, findings) === 0;
  value.phases.forEach((phase, index) => {
    findPhaseMistakes(phase, { path: `/phases/${index}`, lanes, findings });
  });
  // If two tasks share an id, a dependency on that id is ambiguous.
  if (unique) findOrderMistakes(value, findings);
  return { findings: findings.list(), spec: findings.hasErrors ? null : value };
}

/**
 * A lone surrogate has no UTF-8 form, so it has no hash either. JSON cannot produce one here; YAML can (`"\ud800"`).
 */
function findMalformedText(spec: SessionSpec, findings: SpecFindings): void {
  const path = findMalformedPath(spec);
  if (path !== null) findings.add('text.malformed', path, 'the text holds half of a surrogate pair');
}

/** The JSON pointer of the first string that is not well-formed Unicode. */
function findMalformedPath(value: unknown): string | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : '';
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, member] of Object.entries(value)) {
    const path = findMalformedPath(member);
    if (path !== null) return `/${key}${path}`;
  }
  return null;
}

/** @returns how many tasks have the id of an earlier task */
function findDuplicates({ phases }: SessionSpec, findings: SpecFindings): number {
  const phaseIds = new Set<string>();
  const phaseOf = new Map<string, string>();
  let duplicates = 0;
  phases.forEach(({ id: phase_id, tasks }, index) => {
    const path = `/phases/${index}`;
    if (phaseIds.has(phase_id)) {
      findings.add('phase.duplicate_id', `${path}/id`, `there is another phase ${quoteForMessage(phase_id)} before`);
    }
    phaseIds.add(phase_id);
    tasks.forEach(({ id }, task) => {
      const first = phaseOf.get(id);
      if (first === undefined) phaseOf.set(id, phase_id);
      else {
        duplicates += 1;
        const where = `${path}/tasks/${task}/id`;
        findings.add(
          'task.duplicate_id',
          where,
          `phase ${quoteForMessage(first)} has a task ${quoteForMessage(id)} already`,
        );
      }
    });
  });
  return duplicates;
}

interface CheckPosition {
  /** JSON pointer of the checked part. */
  readonly path: string;
  readonly lanes: ReadonlySet<string> | null;
  readonly findings: SpecFindings;
}

function findPhaseMistakes({ id, tasks, gate }: SpecPhase, { path, lanes, findings }: CheckPosition): void {
  tasks.forEach((task, index) => {
    findTaskMistakes(task, { path: `${path}/tasks/${index}`, lanes, findings });
  });
  if (gate !== undefined) findGateMistakes(gate, { path: `${path}/gate`, lanes, findings });
  else if (!tasks.some(isVerifyTask)) {
    findings.add(
      'phase.unchecked',
      path,
      `phase ${quoteForMessage(id)} has no verification and no gate: nothing checks it`,
    );
  }
}

function findTaskMistakes(task: SpecTask, { path, lanes, findings }: CheckPosition): void {
  const { lane } = task;
  if (lane !== undefined && lanes?.has(lane) === false) {
    findings.add('lane.unknown', `${path}/lane`, `the contract has no lane ${quoteForMessage(lane)}`);
  }
  if (isVerifyTask(task)) findCommandMistakes(task, path, findings);
}

function findGateMistakes(gate: SpecGate, { path, findings }: CheckPosition): void {
  const { reviewer, command, cwd } = gate;
  findCommandMistakes(gate, path, findings);
  if (reviewer === 'command') {
    if (command === undefined) findings.add('gate.no_command', path, 'the gate is reviewed by a command, and has none');
    return;
  }
  for (const [name, unused] of Object.entries({ command, cwd })) {
    if (unused === undefined) continue;
    const message = `the gate has a ${name} that a reviewer ${quoteForMessage(reviewer)} does not run`;
    findings.add('gate.command_unused', `${path}/${name}`, message);
  }
}

interface CommandFields {
  readonly command?: readonly string[];
  readonly cwd?: string;
}

function findCommandMistakes({ command, cwd }: CommandFields, path: string, findings: SpecFindings): void {
  if (command?.[0] === '') findings.add('command.empty', `${path}/command/0`, 'the command names no program');
  const nul = command?.findIndex((argument) => argument.includes('\0')) ?? -1;
  if (nul >= 0) findings.add('command.nul_byte', `${path}/command/${nul}`, 'an argument cannot hold a NUL byte');
  if (cwd !== undefined && !isSandboxFolder(cwd)) {
    findings.add('folder.outside_sandbox', `${path}/cwd`, `${quoteForMessage(cwd)} is no folder inside "/sandbox/"`);
  }
}

/** The path rules of policies that are independent of a policy. The executor checks the folder by the run's policy. */
const FOLDER_OPTIONS: SandboxPathOptions = {
  trailingSlash: true,
  dotdot: 'reject',
  path_bytes_max: Infinity,
  portable_names: false,
};

/** Whether `path` is the canonical spelling of a folder inside `/sandbox/`, with or without a slash at its end. */
function isSandboxFolder(path: string): boolean {
  const canonical = canonicalizePath(path, FOLDER_OPTIONS);
  return canonical.ok && canonical.value === path;
}

// Whether the tasks can be completed at all. Phases run one after another, and within a phase the work comes before its
// verifications. A task that depends on a later one can never start.

/** Maximum number of task ids that a message lists of one cycle. */
const CYCLE_IDS_MAX = 8;

interface OrderedTask {
  readonly task: SpecTask;
  readonly phase: number;
  readonly path: string;
  /** The task's dependencies within its phase. */
  readonly dependencies: string[];
}

/** Reports cycles, and dependencies that cannot be met, in a spec whose task ids are unique. */
function findOrderMistakes({ phases }: SessionSpec, findings: SpecFindings): void {
  const tasksById = new Map<string, OrderedTask>();
  phases.forEach(({ tasks }, phase) => {
    tasks.forEach((task, index) => {
      tasksById.set(task.id, { task, phase, path: `/phases/${phase}/tasks/${index}`, dependencies: [] });
    });
  });
  for (const orderedTask of tasksById.values()) {
    orderedTask.task.depends_on?.forEach((id, index) => {
      findDependencyMistake(
        orderedTask,
        { id, to: tasksById.get(id), path: `${orderedTask.path}/depends_on/${index}` },
        findings,
      );
    });
  }
  for (const cycle of findCycles(tasksById)) {
    findings.add('task.cycle', `${tasksById.get(cycle[0] ?? '')?.path ?? ''}/depends_on`, describeCycle(cycle));
    if (findings.isFull()) return;
  }
}

interface Dependency {
  readonly id: string;
  readonly to: OrderedTask | undefined;
  readonly path: string;
}

function findDependencyMistake(from: OrderedTask, { id, to, path }: Dependency, findings: SpecFindings): void {
  const statement = `task ${quoteForMessage(from.task.id)} depends on ${quoteForMessage(id)}`;
  if (to === undefined) findings.add('task.unknown_dependency', path, `${statement}, which is no task of this spec`);
  else if (to.phase > from.phase)
    findings.add('task.later_dependency', path, `${statement}, which is in a later phase`);
  else if (to.phase === from.phase && isVerifyTask(to.task) && !isVerifyTask(from.task)) {
    const why = 'a verification of the same phase, which comes after all that the phase makes';
    findings.add('task.waits_for_verification', path, `${statement}, ${why}`);
  } else if (to.phase === from.phase) from.dependencies.push(id);
}

/**
 * Finds at least one cycle in every group of tasks that depend on one another. Each cycle begins with its first task in
 * spec order. The search is depth first without recursion, because a chain may be as long as a spec.
 */
function* findCycles(tasksById: ReadonlyMap<string, OrderedTask>): Generator<readonly string[]> {
  const reported = new Set<string>();
  const finished = new Set<string>();
  for (const start of tasksById.keys()) {
    if (finished.has(start)) continue;
    // The path from `start`, with the index of the next dependency to follow.
    const chain: { readonly id: string; next: number }[] = [{ id: start, next: 0 }];
    const chainIndexes = new Map([[start, 0]]);
    for (let current = chain.at(-1); current !== undefined; current = chain.at(-1)) {
      const id = tasksById.get(current.id)?.dependencies[current.next++];
      if (id === undefined) {
        finished.add(current.id);
        chainIndexes.delete(current.id);
        chain.pop();
        continue;
      }
      const at = chainIndexes.get(id);
      if (at === undefined && !finished.has(id)) {
        chainIndexes.set(id, chain.length);
        chain.push({ id, next: 0 });
      } else if (at !== undefined && !reported.has(id)) {
        const cycle = chain.slice(at).map((step) => step.id);
        for (const member of cycle) reported.add(member);
        yield rotateToFirst(cycle, tasksById);
      }
    }
  }
}

function rotateToFirst(cycle: readonly string[], tasksById: ReadonlyMap<string, OrderedTask>): readonly string[] {
  const members = new Set(cycle);
  const first = [...tasksById.keys()].find((id) => members.has(id)) ?? '';
  const at = cycle.indexOf(first);
  return [...cycle.slice(at), ...cycle.slice(0, at)];
}

function describeCycle(cycle: readonly string[]): string {
  const [first = ''] = cycle;
  if (cycle.length === 1) return `task ${quoteForMessage(first)} depends on itself`;
  const reported = cycle.slice(0, CYCLE_IDS_MAX).map(quoteForMessage);
  const rest = cycle.length - reported.length;
  const chain = [...reported, ...(rest > 0 ? [`... (${rest} more)`] : []), quoteForMessage(first)].join(' -> ');
  return `tasks depend on one another in a circle: ${chain}`;
}

// Where a document does not match the schema of a spec. Each part is compared with its own schema: a comparison of the
// whole spec would report only the first few mistakes, and for a task the mistakes of both task types.

/**
 * Reports a document with too many tasks, or a task with too many dependencies. This check comes before the schemas,
 * which would compare each of a million dependencies with all others.
 */
function isTooLarge(value: unknown, findings: SpecFindings): boolean {
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
function findShapeMistakes(value: unknown, findings: SpecFindings): void {
  addMistakes(findings, UncheckedSpec, value, '');
  for (const [index, phase] of membersOf(value, 'phases').entries()) {
    if (findings.isFull()) return;
    const path = `/phases/${index}`;
    findPhaseShapeMistakes(phase, path, findings);
    for (const [taskIndex, task] of membersOf(phase, 'tasks').entries()) {
      if (findings.isFull()) return;
      findTaskShapeMistakes(task, `${path}/tasks/${taskIndex}`, findings);
    }
  }
}

/** An empty command gets a rule of its own, here and in the check of gates. */
function findPhaseShapeMistakes(phase: unknown, path: string, findings: SpecFindings): void {
  const gate = isJsonObject(phase) ? phase['gate'] : undefined;
  if (!isJsonObject(phase) || !isJsonObject(gate) || !isEmptyList(gate['command'])) {
    addMistakes(findings, UncheckedPhase, phase, path);
    return;
  }
  findings.add('gate.no_command', `${path}/gate/command`, 'the command is empty');
  addMistakes(findings, UncheckedPhase, { ...phase, gate: { ...gate, command: PLACEHOLDER_COMMAND } }, path);
}

function findTaskShapeMistakes(task: unknown, path: string, findings: SpecFindings): void {
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
