import { lstatSync } from 'node:fs';

/** What an examination of this machine reports. */
export interface MachineFacts {
  /** Without the leading v. */
  readonly node: string;
  readonly platform: string;
  readonly isRoot: boolean;
}

export const machineFacts = (): MachineFacts => ({
  node: process.versions.node,
  platform: process.platform,
  isRoot: process.getuid?.() === 0,
});

/** Permissions, owner and last change of a path. */
export interface PathFacts {
  readonly mode: number;
  readonly isOwn: boolean;
  readonly modified_at: string;
}

/** @returns null if it does not exist */
export function inspectPath(path: string): PathFacts | null {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  const user = process.getuid?.() ?? stat.uid;
  return { mode: stat.mode & 0o777, isOwn: stat.uid === user, modified_at: stat.mtime.toISOString() };
}
