// What the attacker swaps for what. Each scene has its own case.
//
// Not a scene: a directory that is moved out of the sandbox while it is open. Our change moves with it, because it is
// the directory that was checked; an attacker who can do that may write on both sides anyway.

import { join } from 'node:path';
import { NEIGHBOUR } from './outside.js';

/** `directory`: swapped for a link. `plain`: for a file. `link`, `hard`, `fifo`: a file, swapped for one of these. */
export type SceneKind = 'directory' | 'plain' | 'link' | 'hard' | 'fifo';

export interface Scene {
  /** Also the id of its case. */
  readonly name: string;
  readonly kind: SceneKind;
  /** The swapped name in the directory of the case. Empty: that directory itself. */
  readonly swapped: string;
  /** The place below the swapped directory where the operations act. */
  readonly below: string;
  /** The targets of the links. */
  readonly links: (base: string) => readonly string[];
}

const none = (): readonly string[] => [];
const toFolder = (base: string): readonly string[] => [join(base, 'outside/e')];

export const SCENES: readonly Scene[] = [
  { name: 'middle', kind: 'directory', swapped: 'm', below: '/e', links: (base) => [join(base, 'outside')] },
  { name: 'parent', kind: 'directory', swapped: 'p', below: '', links: toFolder },
  { name: 'case', kind: 'directory', swapped: '', below: '', links: toFolder },
  // Chains of links, back and forth.
  {
    name: 'chain',
    kind: 'directory',
    swapped: 'c',
    below: '',
    links: (base) => ['c.hostile1', 'c.hostile2/.', '../chain/../chain/c.hostile3', join(base, 'outside/e')],
  },
  {
    name: 'dotdot',
    kind: 'directory',
    swapped: 'u',
    below: '',
    links: () => ['../../outside/e', `../${NEIGHBOUR}/e`, `./../dotdot/../${NEIGHBOUR}`],
  },
  // Links that the kernel does not resolve as text. The victim is the parent of the attacker.
  {
    name: 'proc',
    kind: 'directory',
    swapped: 'r',
    below: '',
    links: (base) => [
      `/proc/self/root${base}/outside/e`,
      `/proc/${process.pid}/root${base}/outside/e`,
      `/proc/thread-self/root${base}/outside/e`,
    ],
  },
  { name: 'file-directory', kind: 'plain', swapped: 'x', below: '', links: none },
  {
    name: 'file-link',
    kind: 'link',
    swapped: 'f/a.txt',
    below: '',
    links: (base) => [
      join(base, 'outside/e/a.txt'),
      `../../${NEIGHBOUR}/a.txt`,
      `/proc/self/root${base}/outside/a.txt`,
    ],
  },
  { name: 'file-hardlink', kind: 'hard', swapped: 'h/a.txt', below: '', links: none },
  { name: 'file-fifo', kind: 'fifo', swapped: 'q/a.txt', below: '', links: none },
];

/** The folder in which the operations act, as an agent names it, with a trailing slash. */
export function folderOf({ kind, swapped, below }: Scene): string {
  const host = kind === 'directory' || kind === 'plain' ? `${swapped}${below}` : swapped.replace(/\/[^/]*$/, '');
  return host === '' ? '/sandbox/' : `/sandbox/${host}/`;
}

/** What the attacker's process has to know of a scene. */
export function orderFor(scene: Scene, base: string, linked: string, seed: number): string {
  const home = join(base, 'root', scene.name);
  return JSON.stringify({
    target: join(home, scene.swapped),
    kind: scene.kind,
    below: scene.below,
    steady: join(home, 'steady'),
    links: scene.links(base),
    linked,
    seed,
    limitMs: 900_000,
  });
}
