// Installs Turnpike into a client, and removes it again.

import {
  readClientFile,
  checkPlace,
  installFile,
  noteClientChange,
  readInstalled,
  uninstallFile,
  type InstalledFile,
} from '../client-files/client-file.js';
import { findProgram } from '../client-files/client-version.js';
import { trustCodexHooks } from '../client-files/trust-codex-hooks.js';
import { sha256 } from '../../../core/contract/hash.js';
import { usageError } from '../../../core/errors.js';
import type { Profile, SettingsLevel } from '../clients/judge-hooks.js';
import { CLIENT_NAMES } from '../clients/client-names.js';
import { userRoot, EditProblem, type Editor, type InstallTarget } from '../clients/client-settings.js';
import { CLIENT_SETTINGS } from '../clients/clients.js';
import { codexCommands } from '../clients/codex-settings.js';
import type { Client } from '../hook-event.js';
import { surroundingsOf } from './inspect-client.js';

/** Tools of Turnpike's MCP server, for clients that must name each tool. */
export const SERVER_TOOLS = [
  'create_directory',
  'delete_file',
  'finish',
  'list_files',
  'new_run',
  'propose',
  'read_file',
  'rename_file',
  'think',
  'write_file',
] as const;

/** Where an installation goes. */
export interface InstallPlace {
  readonly client: Client;
  readonly level: 'user' | 'project';
  readonly project: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A file that changes. */
export interface FileChange {
  readonly path: string;
  /** The folder that the file must be in. */
  readonly root: string;
  /** The file now; null if it does not exist. */
  readonly current: string | null;
  /** The file without Turnpike. */
  readonly before: string | null;
  /** The file afterwards; null if it is removed. */
  readonly after: string | null;
  readonly mode: number;
}

/**
 * The files that an installation changes. Writes nothing.
 * @throws UsageError for a profile or level that the client does not have, and for a file that cannot be changed
 */
export function planInstall(place: InstallPlace, profile: Profile, target: InstallTarget): readonly FileChange[] {
  const editors = editorsFor(place.client, profile, place.level);
  if (editors.length === 0)
    throw usageError(`${place.client} has no profile ${profile} at the level ${place.level}: see docs/trust.md`);
  return editors.flatMap((editor) => {
    const { path, root, current, installed } = readPresent(place, editor);
    const before = baseOf(path, editor, current, installed);
    const after = withPath(path, () => editor.add(before, target));
    // The client may have added to what was written.
    const isAsWritten = isUnchanged(current, installed) && installed?.written_sha256 === sha256(after);
    return isAsWritten || current === after ? [] : [{ path, root, current, before, after, mode: editor.mode }];
  });
}

/** Writes the files of a plan. @throws UsageError */
export function applyInstall(changes: readonly FileChange[]): void {
  for (const { path, root, before, after, mode } of changes)
    if (after !== null) installFile({ path, root, before, after, mode });
}

/**
 * Makes Codex trust the hooks that were installed.
 * @returns `trusted`; `no_program` without Codex on the path; `failed` if Codex does not do it
 */
export async function trustInstalled(
  place: InstallPlace,
  target: InstallTarget,
): Promise<'trusted' | 'no_program' | 'failed'> {
  const { project, environment } = place;
  const program = findProgram(CLIENT_NAMES.codex, environment);
  if (program === null) return 'no_program';
  const commands = codexCommands(target);
  try {
    const hooks = await trustCodexHooks(program, { cwd: project, commands, environment });
    const user = { ...place, level: 'user' } as const;
    for (const at of [user, place])
      for (const editor of editorsFor('codex', 'gate', at.level)) {
        const { path, root } = locate(at, editor);
        noteClientChange(path, root);
      }
    return hooks.length > 0 && hooks.every(({ isTrusted }) => isTrusted) ? 'trusted' : 'failed';
  } catch {
    return 'failed';
  }
}

/** The files that an uninstallation changes. Writes nothing. @throws UsageError */
export const planUninstall = (place: InstallPlace): readonly FileChange[] => {
  const changes = new Map<string, FileChange>();
  for (const editor of Object.values(CLIENT_SETTINGS[place.client].editors).flat()) {
    if (!editor.levels.includes(place.level)) continue;
    const { path, root, current, installed } = readPresent(place, editor);
    const earlier = changes.get(path);
    const before = earlier === undefined ? baseOf(path, editor, current, installed) : removeAgain(earlier, editor);
    if (current === before && installed === null) continue;
    changes.set(path, { path, root, current, before, after: before, mode: editor.mode });
  }
  return [...changes.values()];
};

/** Two profiles may edit one file. */
const removeAgain = ({ path, before }: FileChange, editor: Editor): string | null =>
  before === null ? null : withPath(path, () => editor.remove(before));

/** Writes the files of a plan. @throws UsageError */
export function applyUninstall(changes: readonly FileChange[]): void {
  for (const { path, root, after } of changes) uninstallFile(path, root, after);
}

/** The editors of a client at a level; empty if it has no such profile there. */
const editorsFor = (client: Client, profile: Profile, level: SettingsLevel): readonly Editor[] => {
  const editors = CLIENT_SETTINGS[client].editors[profile];
  return editors.every(({ levels }) => levels.includes(level)) ? editors : [];
};

function locate({ client, level, project, environment }: InstallPlace, { userFile, projectFile = '' }: Editor) {
  if (level === 'project') return { path: `${project}/${projectFile}`, root: project };
  const around = surroundingsOf(project, environment);
  const folder = CLIENT_SETTINGS[client].userFolder(around);
  return { path: `${folder}/${userFile}`, root: userRoot(around, folder) };
}

function readPresent(place: InstallPlace, editor: Editor) {
  const { path, root } = locate(place, editor);
  checkPlace(path, root);
  const { text: current, problem } = readClientFile(path, root);
  if (problem !== null) throw usageError(`${path} ${problem}: nothing was changed`);
  return { path, root, current, installed: readInstalled(path, root) };
}

/** The file without Turnpike: the copy, if nothing was changed since, else what is left without our entries. */
function baseOf(path: string, editor: Editor, current: string | null, installed: InstalledFile | null): string | null {
  if (isUnchanged(current, installed)) return installed?.before ?? null;
  return current === null ? null : withPath(path, () => editor.remove(current));
}

const isUnchanged = (current: string | null, installed: InstalledFile | null): boolean =>
  installed !== null && current !== null && sha256(current) === installed.after_sha256;

/** @throws UsageError with the path of a file that cannot be edited */
function withPath<T>(path: string, edit: () => T): T {
  try {
    return edit();
  } catch (error) {
    if (error instanceof EditProblem) throw usageError(`${path} ${error.message}`);
    throw error;
  }
}
