// The attacked operations: each action of the sandbox, its facts, its settlement, and whole governed steps.

import type { Effect, PathFact } from '../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import { granted } from '../fixtures/granted.js';
import { BEYOND, SETTLE_KEY } from './outside.js';
import { folderOf, type Scene } from './scenes.js';

export const OPERATIONS = [
  'READ_FILE',
  'LIST_FILES',
  'WRITE_FILE new',
  'WRITE_FILE over',
  'CREATE_DIRECTORY',
  'DELETE_FILE',
  'RENAME_FILE',
  'gather',
  'settle',
  'governed step',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Operations that reach a name below which only a directory can be swapped. */
const IN_FOLDERS: readonly Operation[] = ['LIST_FILES', 'WRITE_FILE new', 'CREATE_DIRECTORY'];

export const operationsOf = ({ kind }: Scene): readonly Operation[] =>
  kind === 'directory' || kind === 'plain' ? OPERATIONS : OPERATIONS.filter((name) => !IN_FOLDERS.includes(name));

export interface Act {
  readonly action: string;
  readonly args: JsonObject;
}

/** Names are reused: what the attacker removes in the meantime is created again. */
const NAMES = 8;
/** Large files take longer to write, so that more happens in the meantime. */
const contentOf = (chance: number): string => `written\n${'x'.repeat(chance % 8 === 0 ? 40_000 : chance % 50)}`;

/** The single action of an operation in a scene. `chance` is a whole number. */
export function actOf(operation: Operation, scene: Scene, chance: number): Act {
  const folder = folderOf(scene);
  const path = `${folder}a.txt`;
  const name = (prefix: string, below = folder): string => `${below}${prefix}${chance % NAMES}.txt`;
  switch (operation) {
    case 'LIST_FILES':
      return { action: operation, args: { path: folder } };
    case 'WRITE_FILE new':
      return { action: 'WRITE_FILE', args: { path: name('w'), content: contentOf(chance) } };
    case 'WRITE_FILE over':
      return { action: 'WRITE_FILE', args: { path, content: contentOf(chance) } };
    case 'CREATE_DIRECTORY':
      return { action: operation, args: { path: `${folder}d${chance % NAMES}` } };
    case 'RENAME_FILE': {
      const steady = '/sandbox/steady/';
      const ends = [
        { source: path, destination: name('b') },
        { source: path, destination: name('b', steady) },
        { source: `${steady}s.txt`, destination: name('b') },
      ];
      return { action: operation, args: ends[chance % ends.length] ?? {} };
    }
    case 'governed step':
    case 'settle':
    case 'gather': {
      const others = operationsOf(scene).slice(0, -3);
      return actOf(others[chance % others.length] ?? 'READ_FILE', scene, Math.floor(chance / others.length));
    }
    default:
      return { action: operation, args: { path } };
  }
}

/** Runs one operation on a sandbox; `governed.ts` runs governed steps. */
export function operate(sandbox: Sandbox, operation: Operation, scene: Scene, chance: number): void {
  const { action, args } = actOf(operation, scene, chance);
  const paths = ['path', 'source', 'destination'].flatMap((name) => (args[name] === undefined ? [] : [args[name]]));
  const facts = (usage: boolean): readonly PathFact[] =>
    sandbox.gather({ case_id: scene.name, paths: paths.map(String), usage, portable_names: chance % 3 === 0 }).paths;
  const effect: Effect = {
    action,
    args,
    case_id: scene.name,
    run_id: 'run_attacked.1.1',
    idempotency_key: operation === 'settle' ? SETTLE_KEY : `attacked-${chance}`,
    request_hash: '0'.repeat(64),
    before: [],
    partial_outputs: false,
    limits: { read_bytes_max: 1_048_576, list_entries_max: 1_000 },
  };
  if (operation === 'gather') facts(true);
  else if (operation !== 'settle') sandbox.perform(granted(effect));
  else if (action !== 'WRITE_FILE') sandbox.settle(granted({ ...effect, before: facts(false) }));
  else {
    const content = chance % 2 === 0 ? BEYOND : 'inside\n';
    sandbox.settle(granted({ ...effect, args: { ...args, content }, before: [{ status: 'absent' }] }));
  }
}
