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

/** Permissions and owner of a path. @returns null if it does not exist */
export function inspectPath(path: string): { readonly mode: number; readonly isOwn: boolean } | null {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  const user = process.getuid?.() ?? stat.uid;
  return { mode: stat.mode & 0o777, isOwn: stat.uid === user };
}
