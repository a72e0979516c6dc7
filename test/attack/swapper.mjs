// The attacker: a separate process with the same rights, which changes the object at one name of a sandbox as fast as
// it can. Its scene (`scenes.ts`) arrives as JSON and says what it swaps. It touches nothing outside, replaces what the
// attacked operations removed, and ends by itself: with its parent, or after the time limit.

import { spawnSync } from 'node:child_process';
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { unlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

const { target, kind, below, steady, links, linked, seed, limitMs } = JSON.parse(process.argv[2]);
const HONEST = 'inside\n';
const kept = `${target}.kept`;
const staged = `${target}.staged`;
/** Node cannot create a FIFO: one is created at the start, and linked to wherever one is needed. */
const fifo = `${target}.fifo`;
const swapsDirectory = kind === 'directory' || kind === 'plain';
const held = swapsDirectory ? `${target}${below}` : dirname(target);

let state = seed >>> 0 || 1;
const random = (below) => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
};

/** A pause of changing length, so that the attacker meets every phase of the victim. */
function dwell() {
  for (let rest = random(4) === 0 ? random(20_000) : random(400); rest > 0; rest -= 1) random(2);
}

const attempt = (act) => {
  try {
    act();
    return true;
  } catch {
    return false;
  }
};

const isDirectory = (path) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
const hostile = (index) => `${target}.hostile${index}`;

/** Honest files where the operations expect them; files that operations made are removed now and then. */
function plant(cycle) {
  if (swapsDirectory) {
    if (!existsSync(`${held}/a.txt`)) writeFileSync(`${held}/a.txt`, HONEST);
  }
  if (!existsSync(`${steady}/s.txt`)) writeFileSync(`${steady}/s.txt`, HONEST);
  if (cycle % 16 !== 0) return;
  clear(held);
  clear(steady);
}

/** Removes what operations made. Temporary files of the sandbox stay: they are in use, or evidence. */
function clear(folder) {
  for (const name of readdirSync(folder)) {
    const known = ['a.txt', 's.txt', 'steady'].includes(name) || name.startsWith('.turnpike-');
    const ours = folder === dirname(target) && name.startsWith(basename(target));
    if (!known && !ours) rmSync(`${folder}/${name}`, { recursive: true, force: true });
  }
}

/** Starts over, whatever the state of the scene is. */
function heal() {
  attempt(() => mkdirSync(dirname(target), { recursive: true }));
  if (swapsDirectory) {
    if (!isDirectory(target)) attempt(() => unlinkSync(target));
    if (isDirectory(kept)) {
      attempt(() => rmSync(target, { recursive: true, force: true }));
      attempt(() => renameSync(kept, target));
    }
    attempt(() => mkdirSync(held, { recursive: true }));
    attempt(() => unlinkSync(kept));
    links.forEach((link, index) => attempt(() => symlinkSync(link, hostile(index))));
    if (kind === 'plain') attempt(() => writeFileSync(hostile(0), HONEST, { flag: 'wx' }));
  }
  attempt(() => mkdirSync(steady, { recursive: true }));
  attempt(() => plant(0));
}

function swapDirectory(cycle) {
  const other = hostile(kind === 'plain' ? 0 : cycle % links.length);
  renameSync(target, kept);
  renameSync(other, target);
  dwell();
  renameSync(target, other);
  renameSync(kept, target);
}

/** Replaced atomically. A hard link loses its name here by being replaced. */
function swapFile(cycle) {
  attempt(() => unlinkSync(staged));
  if (kind === 'link') symlinkSync(links[cycle % links.length], staged);
  if (kind === 'hard') linkSync(linked, staged);
  if (kind === 'fifo') linkSync(fifo, staged);
  renameSync(staged, target);
  // A hard link is most dangerous while it is being removed again.
  if (kind !== 'hard') dwell();
  // Renaming one name of a file over another one leaves both: never write through the staged file.
  attempt(() => unlinkSync(staged));
  writeFileSync(staged, HONEST, { flag: 'wx' });
  renameSync(staged, target);
}

heal();
if (kind === 'fifo' && spawnSync('mkfifo', [fifo]).status !== 0) throw new Error('no FIFO can be made here');
const swap = swapsDirectory ? swapDirectory : swapFile;
const parent = process.ppid;
const end = process.hrtime.bigint() + BigInt(limitMs) * 1_000_000n;
process.stdout.write('started');
for (let cycle = 0; ; cycle += 1) {
  const whole = attempt(() => {
    for (let time = kind === 'hard' ? 8 : 1; time > 0; time -= 1) swap(cycle);
    plant(cycle);
  });
  if (!whole) heal();
  // Operations must meet the honest object as often as the other one, although it takes no renames.
  dwell();
  dwell();
  dwell();
  if (cycle % 32 === 0 && (process.ppid !== parent || process.hrtime.bigint() > end)) break;
}
