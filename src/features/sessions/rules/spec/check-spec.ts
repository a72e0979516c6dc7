// Checks whether a document is a spec that a session can complete, and reports everything that is wrong with it.
// `turnpike session check`, the start of a session and a rebase all call this function.

import { quoteForMessage } from '../../../../core/contract/finding-text.js';
import { SEGMENT_BYTES_MAX } from '../../../../core/contract/policy/catalogue.js';
import { isInstance } from '../../../../core/contract/validators.js';
import {
  isVerifyTask,
  SessionSpec,
  type SpecGate,
  type SpecPhase,
  type SpecTask,
} from '../../contract/session-spec.js';
import { SpecFindings, type SpecFinding } from './spec-finding.js';
import { findOrderMistakes } from './spec-order.js';
import { findShapeMistakes, isTooLarge } from './spec-shape.js';

const SANDBOX_ROOT = '/sandbox/';
/** Names with this prefix, in either case, are reserved for the executor (C30). */
const RESERVED = /^\.turnpike-/i;
// Control characters and the backslash (C28).
const ILLEGAL = /[\u0000-\u001f\u007f-\u009f\\]/;

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

/**
 * Whether `path` is the canonical spelling of a folder inside `/sandbox/`, with or without a slash at its end. This
 * judges text only: the executor checks the folder itself by the run's policy when it uses it.
 */
export function isSandboxFolder(path: string): boolean {
  if (path === SANDBOX_ROOT) return true;
  if (!path.startsWith(SANDBOX_ROOT) || ILLEGAL.test(path) || !path.isWellFormed() || path !== path.normalize('NFC'))
    return false;
  return path.slice(SANDBOX_ROOT.length).replace(/\/$/, '').split('/').every(isName);
}

const isName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= SEGMENT_BYTES_MAX && !RESERVED.test(name);
