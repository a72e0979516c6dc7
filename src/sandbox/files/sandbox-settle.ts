// After a crash: finds out whether an action happened whose intent was committed (D8). Three answers, from what exists
// at the path now:
//   done      the files are as the action leaves them; a half-done rename is finished first
//   failed    the files are as they were before: INTERRUPTED, or the failure that the action would have had anyway
//   unknown   anything else: another program changed the files too

import { lstatSync, unlinkSync } from 'node:fs';
import type { Effect, EffectResult, PathFact } from '../../core/contract/run/effect.js';
import {
  doneResult,
  changeDurably,
  failedResult,
  actionFailureOf,
  isResult,
  occupiedFailureOf,
} from './sandbox-actions.js';
import { readHandle, removeTemp, tempPath, UNKNOWN_RESULT, type CaseSandbox } from './sandbox-actions.js';
import {
  causeOfError,
  factAt,
  factOfHandle,
  withHandle,
  inspect,
  walkPath,
  type ResolvedPath,
} from './sandbox-walk.js';

/** Decides from the fact at a place that the action happened; null if that does not show it. */
type SettlementEvidence = (place: ResolvedPath, now: PathFact) => EffectResult | null;

/** Settles a WRITE_FILE, and removes its temporary file. */
export function settleWrite(sandbox: CaseSandbox, effect: Effect): EffectResult {
  const { content, path } = effect.args;
  const [before] = effect.before;
  if (before === undefined || typeof content !== 'string') return UNKNOWN_RESULT;
  const bytes = Buffer.from(content);
  const now = inspectPath(sandbox, path, (place, fact) => {
    removeTemp(tempPath(place.directory, effect));
    if (fact.status !== 'file' || fact.bytes !== bytes.length) return null;
    return withHandle(sandbox, place.path, (handle) => {
      if (factOfHandle(place, handle).status !== 'file') return UNKNOWN_RESULT;
      if (readHandle(sandbox, handle, bytes.length)?.equals(bytes) !== true) return null;
      return changeDurably(place.directory, () => doneResult({ bytes_written: bytes.length }));
    });
  });
  if (isResult(now)) return now;
  if (!isSameFact(before, now)) return UNKNOWN_RESULT;
  return before.status === 'file' || before.status === 'absent' ? failedResult('INTERRUPTED') : actionFailureOf(before);
}

/** Settles a CREATE_DIRECTORY. */
export function settleDirectory(sandbox: CaseSandbox, { args, before: [before] }: Effect): EffectResult {
  if (before === undefined) return UNKNOWN_RESULT;
  const now = inspectPath(sandbox, args['path'], (place, fact) => {
    if (before.status !== 'absent' || fact.status !== 'directory') return null;
    return changeDurably(place.directory, () => doneResult({}));
  });
  if (isResult(now)) return now;
  if (!isSameFact(before, now)) return UNKNOWN_RESULT;
  return before.status === 'absent' ? failedResult('INTERRUPTED') : occupiedFailureOf(before);
}

/** Settles a DELETE_FILE. */
export function settleDelete(sandbox: CaseSandbox, { args, before: [before] }: Effect): EffectResult {
  if (before === undefined) return UNKNOWN_RESULT;
  const now = inspectPath(sandbox, args['path'], (place, fact) => {
    if (before.status !== 'file' || fact.status !== 'absent') return null;
    return changeDurably(place.directory, () => doneResult({}));
  });
  if (isResult(now)) return now;
  if (!isSameFact(before, now)) return UNKNOWN_RESULT;
  return before.status === 'file' ? failedResult('INTERRUPTED') : actionFailureOf(before);
}

/** Settles a RENAME_FILE; finishes one that left both names. */
export function settleRename(sandbox: CaseSandbox, { args, before: [source, target] }: Effect): EffectResult {
  if (source === undefined || target === undefined) return UNKNOWN_RESULT;
  const now = inspectPath(sandbox, args['source'], (from) => {
    // If the target existed before (it may be the source itself), the rename cannot have happened.
    if (source.status !== 'file' || target.status !== 'absent') return null;
    const finished = inspectPath(sandbox, args['destination'], (to) =>
      isSameFile(to, source) ? finishRename(from, to, source) : null,
    );
    return isResult(finished) ? finished : null;
  });
  if (isResult(now)) return now;
  if (!isSameFact(source, now) || !isSameFact(target, factAt(sandbox, args['destination'], false)))
    return UNKNOWN_RESULT;
  if (source.status !== 'file') return actionFailureOf(source);
  return target.status === 'absent' ? failedResult('INTERRUPTED') : occupiedFailureOf(target);
}

function finishRename(from: ResolvedPath, to: ResolvedPath, source: FileFact): EffectResult {
  return changeDurably(from.directory, () => {
    const linked = changeDurably(to.directory, () => doneResult({}));
    if (linked.status === 'done' && isSameFile(from, source)) unlinkSync(from.path);
    return linked;
  });
}

/** The result of `evidence` at `path`, or else the fact there. */
function inspectPath(sandbox: CaseSandbox, path: unknown, evidence: SettlementEvidence): EffectResult | PathFact {
  try {
    return walkPath(sandbox, path, (place) => {
      const now = inspect(place);
      return evidence(place, now) ?? now;
    });
  } catch (error) {
    causeOfError(error);
    return UNKNOWN_RESULT;
  }
}

type FileFact = Extract<PathFact, { status: 'file' }>;

/** Whether this is exactly that file, under any name. Uses lstat, because a file with two names has no file fact. */
function isSameFile(place: ResolvedPath, file: FileFact): boolean {
  const stats = lstatSync(place.path, { bigint: true, throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.dev !== place.sandbox.root.stats.dev) return false;
  const { ino, mtimeNs, size } = stats;
  return String(ino) === file.inode && String(mtimeNs) === file.mtime_ns && Number(size) === file.bytes;
}

/** Inode numbers are reused, so for files time and size must agree too; the time of a directory may change. */
function isSameFact(before: PathFact, now: PathFact): boolean {
  if (before.status === 'file' && now.status === 'file') {
    return before.inode === now.inode && before.mtime_ns === now.mtime_ns && before.bytes === now.bytes;
  }
  if (before.status === 'directory' && now.status === 'directory') return before.inode === now.inode;
  if (before.status === 'refused' && now.status === 'refused') return before.kind === now.kind;
  if (before.status === 'error' && now.status === 'error') return before.cause === now.cause;
  return before.status === now.status;
}
