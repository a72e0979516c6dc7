// After a crash: did an action that was committed as an intent happen (D8)? Three answers, by what stands there now:
//   done      the world is as the action leaves it; a half-done rename is finished first
//   failed    the world is as it was before: INTERRUPTED, or the failure that was due anyway
//   unknown   anything else: somebody else was there too

import { lstatSync, unlinkSync } from 'node:fs';
import type { Effect, EffectResult, PathFact } from '../contract/effect.js';
import { done, durably, failed, failedBy, isResult, occupiedBy } from './sandbox-files.js';
import { readHeld, removeTemp, tempPath, UNKNOWN, type CaseSandbox } from './sandbox-files.js';
import { causeOfError, factAt, factOfHeld, holding, inspect, walk, type Place } from './sandbox-walk.js';

/** What is at the place tells that the action happened; null: it does not tell. */
type Evidence = (place: Place, now: PathFact) => EffectResult | null;

/** Settles a WRITE_FILE, and removes what it left behind. */
export function settleWrite(sandbox: CaseSandbox, effect: Effect): EffectResult {
  const { content, path } = effect.args;
  const [before] = effect.before;
  if (before === undefined || typeof content !== 'string') return UNKNOWN;
  const bytes = Buffer.from(content);
  const now = look(sandbox, path, (place, fact) => {
    removeTemp(tempPath(place.directory, effect));
    if (fact.status !== 'file' || fact.bytes !== bytes.length) return null;
    return holding(sandbox, place.path, (held) => {
      if (factOfHeld(place, held).status !== 'file') return UNKNOWN;
      if (readHeld(sandbox, held, bytes.length)?.equals(bytes) !== true) return null;
      return durably(place.directory, () => done({ bytes_written: bytes.length }));
    });
  });
  if (isResult(now)) return now;
  if (!isSame(before, now)) return UNKNOWN;
  return before.status === 'file' || before.status === 'absent' ? failed('INTERRUPTED') : failedBy(before);
}

/** Settles a CREATE_DIRECTORY. */
export function settleDirectory(sandbox: CaseSandbox, { args, before: [before] }: Effect): EffectResult {
  if (before === undefined) return UNKNOWN;
  const now = look(sandbox, args['path'], (place, fact) => {
    if (before.status !== 'absent' || fact.status !== 'directory') return null;
    return durably(place.directory, () => done({}));
  });
  if (isResult(now)) return now;
  if (!isSame(before, now)) return UNKNOWN;
  return before.status === 'absent' ? failed('INTERRUPTED') : occupiedBy(before);
}

/** Settles a DELETE_FILE. */
export function settleDelete(sandbox: CaseSandbox, { args, before: [before] }: Effect): EffectResult {
  if (before === undefined) return UNKNOWN;
  const now = look(sandbox, args['path'], (place, fact) => {
    if (before.status !== 'file' || fact.status !== 'absent') return null;
    return durably(place.directory, () => done({}));
  });
  if (isResult(now)) return now;
  if (!isSame(before, now)) return UNKNOWN;
  return before.status === 'file' ? failed('INTERRUPTED') : failedBy(before);
}

/** Settles a RENAME_FILE; one that left both names is finished. */
export function settleRename(sandbox: CaseSandbox, { args, before: [source, target] }: Effect): EffectResult {
  if (source === undefined || target === undefined) return UNKNOWN;
  const now = look(sandbox, args['source'], (from) => {
    // Where the target existed before (it may be the source itself), nothing can have been renamed.
    if (source.status !== 'file' || target.status !== 'absent') return null;
    const finished = look(sandbox, args['destination'], (to) => (isAt(to, source) ? finish(from, to, source) : null));
    return isResult(finished) ? finished : null;
  });
  if (isResult(now)) return now;
  if (!isSame(source, now) || !isSame(target, factAt(sandbox, args['destination'], false))) return UNKNOWN;
  if (source.status !== 'file') return failedBy(source);
  return target.status === 'absent' ? failed('INTERRUPTED') : occupiedBy(target);
}

function finish(from: Place, to: Place, source: FileFact): EffectResult {
  return durably(from.directory, () => {
    const linked = durably(to.directory, () => done({}));
    if (linked.status === 'done' && isAt(from, source)) unlinkSync(from.path);
    return linked;
  });
}

/** What stands at `path`, or what the evidence there says. */
function look(sandbox: CaseSandbox, path: unknown, evidence: Evidence): EffectResult | PathFact {
  try {
    return walk(sandbox, path, (place) => {
      const now = inspect(place);
      return evidence(place, now) ?? now;
    });
  } catch (error) {
    causeOfError(error);
    return UNKNOWN;
  }
}

type FileFact = Extract<PathFact, { status: 'file' }>;

/** Is it that very file, under whichever name? Asked of the file itself, since one with two names is no fact. */
function isAt(place: Place, file: FileFact): boolean {
  const stats = lstatSync(place.path, { bigint: true, throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.dev !== place.anchor.root.stats.dev) return false;
  const { ino, mtimeNs, size } = stats;
  return String(ino) === file.inode && String(mtimeNs) === file.mtime_ns && Number(size) === file.bytes;
}

/** Inode numbers are used again, so a file is the same only if time and size agree; a directory's time moves. */
function isSame(before: PathFact, now: PathFact): boolean {
  if (before.status === 'file' && now.status === 'file') {
    return before.inode === now.inode && before.mtime_ns === now.mtime_ns && before.bytes === now.bytes;
  }
  if (before.status === 'directory' && now.status === 'directory') return before.inode === now.inode;
  if (before.status === 'refused' && now.status === 'refused') return before.kind === now.kind;
  if (before.status === 'error' && now.status === 'error') return before.cause === now.cause;
  return before.status === now.status;
}
