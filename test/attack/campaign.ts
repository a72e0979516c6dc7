// The campaign. In every scene, while the attacker swaps, every operation runs many times on the real sandbox and then
// on the naive one. The same detector checks both: the real one must not escape, and the naive one must, because
// otherwise the attack did not happen.
//
// The seed determines the operations and their arguments, but not when the attacker's process is scheduled. So the same
// seed finds an escape again, but not at the same operation.

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../src/sandbox/files/file-sandbox.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { startAttacker } from './attacker.js';
import { openGoverned, writeContract } from './governed.js';
import { NaiveSandbox } from './naive-sandbox.js';
import { actOf, operate, operationsOf, type Operation } from './operations.js';
import { namesBelow, Outside } from './outside.js';
import { SCENES, type Scene } from './scenes.js';
import { watch, type Meeting } from './watch.js';

export interface CampaignOptions {
  readonly seed: number;
  /** The minimum number of attacked operations on the real sandbox, in all scenes together. */
  readonly operations: number;
  readonly scenes?: readonly Scene[];
  /** The attacked operations. Default: all of a scene. */
  readonly only?: ReadonlySet<Operation>;
  /** The attacked sandbox. Default: the real one. */
  readonly open?: (root: string) => Sandbox & { close?(): void };
  readonly progress?: (line: string) => void;
}

/** One cell of the table. */
export interface Cell {
  readonly scene: string;
  readonly operation: Operation;
  operations: number;
  /** Counts by what the answer showed. */
  readonly meetings: Record<Meeting, number>;
  escapes: number;
  /** The same counts of the naive control; null if it is not attacked. */
  control: { operations: number; escapes: number } | null;
}

export interface CampaignReport {
  readonly cells: readonly Cell[];
  /** The escapes, oldest first; at most `SHOWN_MAX`. */
  readonly escapes: readonly string[];
  /** Any other failure: a scene that did not happen, leftover files, a broken ledger. */
  readonly problems: readonly string[];
}

const SHOWN_MAX = 20;
/** How often operations are repeated if a required event has not happened yet, and how many each time. */
const TRIES_MAX = 1_000;
const TRY_OPERATIONS = 64;
/** The control must have escaped here, by each of these operations. */
const MUST_ESCAPE: readonly Operation[] = ['READ_FILE', 'WRITE_FILE over', 'DELETE_FILE'];
const isDecisive = ({ scene, operation }: Cell): boolean =>
  (scene === 'middle' || scene === 'parent') && MUST_ESCAPE.includes(operation);

interface Stage extends Required<Pick<CampaignOptions, 'seed' | 'open' | 'progress'>> {
  readonly base: string;
  readonly root: string;
  readonly contract: string;
  readonly outside: Outside;
  readonly rounds: number;
  readonly escapes: string[];
  readonly problems: string[];
}

export async function attack(options: CampaignOptions): Promise<CampaignReport> {
  const { seed, operations, scenes = SCENES, only, progress = () => undefined } = options;
  const base = diskFolder('attack');
  const cells = scenes.flatMap(cellsOf).filter(({ operation }) => only?.has(operation) ?? true);
  const stage: Stage = {
    seed,
    progress,
    open: options.open ?? ((root): FileSandbox => openSandbox({ root })),
    base,
    root: join(base, 'root'),
    contract: join(base, 'contract'),
    outside: new Outside(base),
    rounds: Math.ceil(operations / cells.length),
    escapes: [],
    problems: [],
  };
  try {
    mkdirSync(stage.root, { recursive: true });
    writeContract(stage.contract);
    // The first process and the first Turnpike open descriptors of Node, which stay open.
    await warmUp(stage);
    for (const scene of scenes) {
      const own = cells.filter((cell) => cell.scene === scene.name);
      await attackReal(stage, scene, own);
      if (scene.kind !== 'plain' && scene.kind !== 'fifo') await attackControl(stage, scene, own);
      progress(`${scene.name}: ${own.reduce((sum, cell) => sum + cell.operations, 0)} operations`);
    }
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
  return { cells, escapes: stage.escapes, problems: stage.problems };
}

async function warmUp({ base, contract, root, outside, seed }: Stage): Promise<void> {
  const [scene] = SCENES;
  if (scene === undefined) return;
  const attacker = await startAttacker(scene, base, outside.linked, seed);
  await attacker.stop();
  await (await openGoverned(contract, new NaiveSandbox(root), scene.name)).close(outside);
}

const cellsOf = (scene: Scene): Cell[] =>
  operationsOf(scene).map((operation) => ({
    scene: scene.name,
    operation,
    operations: 0,
    meetings: { honest: 0, met: 0, other: 0 },
    escapes: 0,
    control: null,
  }));

async function attackReal(stage: Stage, scene: Scene, cells: readonly Cell[]): Promise<void> {
  const { outside, problems } = stage;
  const descriptors = openDescriptors();
  const real = stage.open(stage.root);
  const hold = (found: readonly string[]): void => void problems.push(...found.map((what) => `${scene.name}: ${what}`));
  const isMet = (): boolean => {
    const sum = (meeting: Meeting): number => cells.reduce((total, cell) => total + cell.meetings[meeting], 0);
    return sum('honest') > 0 && sum('met') > 0;
  };
  const attacked = await underAttack(stage, scene, real, {
    rounds: stage.rounds,
    missing: () => (isMet() ? [] : ['READ_FILE']),
    note(operation, meeting, seen) {
      const cell = cells.find((each) => each.operation === operation);
      if (cell === undefined) return;
      cell.operations += 1;
      cell.meetings[meeting] += 1;
      if (seen.length === 0) return;
      cell.escapes += 1;
      if (stage.escapes.length < SHOWN_MAX) stage.escapes.push(`${scene.name}, ${operation}: ${seen.join('; ')}`);
    },
  });
  hold(attacked);
  if (!isMet()) hold(['the attack did not happen']);
  hold(outside.changedAtAll().map((path) => `changed outside: ${path}`));
  if (outside.strayLinks() !== 0) hold(['a file outside has a name that is neither there nor in the sandbox']);
  hold(leftTemps(stage.root).map((path) => `left behind: ${path}`));
  real.close?.();
  if (openDescriptors() !== descriptors) hold([`${openDescriptors() - descriptors} descriptors left open`]);
  outside.restore();
}

async function attackControl(stage: Stage, scene: Scene, cells: readonly Cell[]): Promise<void> {
  const decisive = cells.filter(isDecisive);
  for (const cell of cells) cell.control = { operations: 0, escapes: 0 };
  await underAttack(stage, scene, new NaiveSandbox(stage.root), {
    rounds: Math.ceil(stage.rounds / 4),
    missing: () => decisive.filter(({ control }) => control?.escapes === 0).map(({ operation }) => operation),
    note(operation, _, seen) {
      const control = cells.find((cell) => cell.operation === operation)?.control;
      if (control === null || control === undefined) return;
      control.operations += 1;
      control.escapes += seen.length === 0 ? 0 : 1;
    },
  });
  for (const { operation, control } of decisive) {
    if (control?.escapes === 0) stage.problems.push(`${scene.name}, ${operation}: the control did not escape`);
  }
  stage.outside.restore();
}

interface Course {
  readonly rounds: number;
  /** The operations to repeat after these rounds; empty if enough has happened. */
  readonly missing: () => readonly Operation[];
  readonly note: (operation: Operation, meeting: Meeting, seen: readonly string[]) => void;
}

/** Runs every operation of the scene in turn, until enough has happened. @returns other failures */
async function underAttack(stage: Stage, scene: Scene, victim: Sandbox, course: Course): Promise<readonly string[]> {
  const { outside } = stage;
  const { sandbox, take } = watch(victim, outside);
  const attacker = await startAttacker(scene, stage.base, outside.linked, stage.seed);
  const governed = await openGoverned(stage.contract, sandbox, scene.name);
  const chance = chanceFrom(stage.seed);
  const detect = (operation: Operation, response: string | null): void => {
    const shown = response === null ? null : outside.seenIn(response);
    const { meeting, seen } = take();
    const changed = outside.changed();
    const all = [
      ...seen,
      ...(shown === null ? [] : [`${shown}, in a response`]),
      ...changed.map((path) => `changed: ${path}`),
    ];
    course.note(operation, meeting, all);
    if (changed.length > 0) outside.restore();
  };
  for (let round = 0; round < course.rounds; round += 1) {
    for (const operation of operationsOf(scene)) {
      const number = chance();
      const isStep = operation === 'governed step';
      if (!isStep) operate(sandbox, operation, scene, number);
      detect(operation, isStep ? await governed.step(actOf(operation, scene, number)) : null);
    }
  }
  for (let tries = 0; tries < TRIES_MAX && course.missing().length > 0; tries += 1) {
    pause(1);
    for (const operation of course.missing()) {
      for (let done = 0; done < TRY_OPERATIONS; done += 1) {
        operate(sandbox, operation, scene, chance());
        detect(operation, null);
      }
    }
  }
  const wasAtWork = await attacker.stop();
  return [...(await governed.close(outside)), ...(wasAtWork ? [] : ['the attacker ended early'])];
}

/** Whole numbers from a seed (mulberry32). */
function chanceFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Yields the processor to the attacker if there is only one core. */
const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/** Temporary files of the sandbox that still exist; those outside were placed there. */
const leftTemps = (root: string): string[] => namesBelow(root).filter((name) => name.includes('.turnpike-tmp-'));

/** The results of the campaign as text: a line for each scene and operation. */
export function tableOf({ cells }: CampaignReport): string {
  const head = ['scene', 'operation', 'operations', 'honest', 'met', 'other', 'escapes', 'control escapes'];
  const rows = cells.map(({ scene, operation, operations, meetings: { honest, met, other }, escapes, control }) => [
    scene,
    operation,
    ...[operations, honest, met, other, escapes].map(String),
    control === null ? '-' : `${control.escapes} of ${control.operations}`,
  ]);
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const lines = [head, ...rows].map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}
