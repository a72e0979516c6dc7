// The recorded proposals, how the hostile ones are mixed into the session, and the case folder that they work on.

import { createHash } from 'node:crypto';
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const MATERIAL = fileURLToPath(new URL('../material/', import.meta.url));

/** A secret that no agent may see: it is outside the sandboxes, and links in the attacked cases lead to it. */
export const SECRET = 'statement of another client';

/**
 * The proposals of one file as the bytes of its lines: a byte order mark, for example, must reach the runtime.
 * `expected` is the expected outcome of each; `note` describes the attack of a hostile one.
 */
export function readSession() {
  return linesOf('session.jsonl').map((payload) => ({ payload, expected: { outcome: 'SUCCESS', error_code: null } }));
}

export function readHostile() {
  const notes = linesOf('hostile.expected.jsonl').map((line) => JSON.parse(line.toString('utf8')));
  return linesOf('hostile.jsonl').map((payload, index) => {
    const { note, mixture, ...expected } = notes[index];
    return { payload, note, mixture, expected };
  });
}

/**
 * The hostile proposals spread evenly over the session, each list in its own order and the session's FINISH last.
 * The tenth denial by policy would end the run (`denials_per_run_max`), so the hostile proposal that is marked with
 * `mixture: false` is left out.
 */
export function mix(session, hostile) {
  const work = session.slice(0, -1);
  const attacks = hostile.filter(({ mixture }) => mixture);
  const mixed = [];
  let next = 0;
  for (const [index, proposal] of work.entries()) {
    mixed.push(proposal);
    while (next < attacks.length && next * work.length < (index + 1) * attacks.length) mixed.push(attacks[next++]);
  }
  return [...mixed, ...session.slice(-1)];
}

/** Creates a case's sandbox. If `outside` is given, creates it too, with links from the sandbox to its files. */
export function layOut(sandbox, outside) {
  cpSync(join(MATERIAL, 'case-files'), sandbox, { recursive: true });
  if (outside === null) return;
  mkdirSync(outside, { recursive: true });
  for (const name of ['statement.md', 'copy.txt']) writeFileSync(join(outside, name), `${SECRET}\n`);
  const shared = join(sandbox, 'shared');
  mkdirSync(shared);
  symlinkSync(join(outside, 'statement.md'), join(shared, 'statement.md'));
  symlinkSync(outside, join(shared, 'outside'));
  linkSync(join(outside, 'copy.txt'), join(shared, 'copy.txt'));
}

/** The regular files below a folder, by path, with the hash of each; omits `shared/`, which has the traps. */
export function filesOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  const own = paths.filter((path) => !path.startsWith('shared')).sort();
  return new Map(own.map((path) => [path, hashOf(join(folder, path))]));
}

const hashOf = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

function linesOf(name) {
  const bytes = readFileSync(join(MATERIAL, name));
  const lines = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(0x0a, from);
    lines.push(bytes.subarray(from, end));
    from = end + 1;
  }
  return lines;
}
