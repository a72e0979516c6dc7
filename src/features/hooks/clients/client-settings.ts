// What the settings of a client are: where they are, how they are judged and edited, and what runs there without a
// hook. Each client has them in a file of its own (`codex-settings.ts`); `judge-client.ts`, `editor.ts` and
// `client-places.ts` work by them.

import type { JsonObject } from '../../../core/contract/json.js';
import type {
  ClientFacts,
  ClientFinding,
  Profile,
  SettingsKind,
  SettingsLevel,
  SettingsPlace,
} from './client-facts.js';
import { folderIn, type ClientSurroundings } from './client-names.js';
import type { Editor } from './editor.js';
import type { ReadSettings } from './read-settings.js';

export interface ClientSettings {
  /** The folder of the settings of the user. */
  readonly userFolder: (around: ClientSurroundings) => string;
  /** The files that the client reads, those of a wider level first. */
  readonly files: readonly FilePlace[];
  readonly unhooked: UnhookedPlaces;
  /** How the files are read that are judged, by their kinds. Their findings have this order. */
  readonly readers: readonly (readonly [SettingsKind, (text: string) => JsonObject | null])[];
  /** What is wrong with the client itself; before the findings of its files. */
  readonly judgeProgram?: (facts: ClientFacts) => readonly ClientFinding[];
  /** What lets a call pass without a decision. */
  readonly judgeGate: Judge;
  /** The same for the profile strong; absent if no setting is known that switches off the native tools. */
  readonly judgeStrong?: Judge;
  /** The editors of each profile; none for a profile that the client does not have. */
  readonly editors: Readonly<Record<Profile, readonly Editor[]>>;
}

export type Judge = (facts: ClientFacts, settings: readonly ReadSettings[]) => readonly ClientFinding[];

/** What a client executes, starts or follows without asking a hook. */
export interface UnhookedPlaces {
  /** Files and folders below a folder of the project. Several clients read those of others. */
  readonly repository: readonly string[];
  /** Whether it also reads the folders above, up to that of the repository. */
  readonly readsAbove: boolean;
  /** Files and folders outside of the project, as absolute paths. */
  readonly user: (around: ClientSurroundings, userFolder: string) => readonly string[];
  /** The members of settings that name what it starts. */
  readonly members: readonly string[];
}

/** @param userFolder the folder of the settings of the user */
export type FilePlace = (around: ClientSurroundings, userFolder: string) => SettingsPlace;

/** The folder that a file of the user must be in: it may be a link to anywhere in the home folder. */
export const userRoot = ({ userHome }: Pick<ClientSurroundings, 'userHome'>, userFolder: string): string =>
  userFolder.startsWith(`${userHome}/`) ? userHome : userFolder;

/** A file below the folder of the settings of the user. */
export const ofUser =
  (kind: SettingsKind, name: string): FilePlace =>
  (around, folder) => ({ kind, level: 'user', path: `${folder}/${name}`, root: userRoot(around, folder) });

export const ofProject =
  (kind: SettingsKind, name: string, level: SettingsLevel = 'project'): FilePlace =>
  ({ project }) => ({ kind, level, path: `${project}/${name}`, root: project });

/**
 * A file of the administrator of the machine.
 * @param variable may name the file
 */
export const managed =
  (kind: SettingsKind, path: string, darwinPath = path, variable = ''): FilePlace =>
  (around) => ({
    kind,
    level: 'managed',
    path: folderIn(around, variable) ?? (around.platform === 'darwin' ? darwinPath : path),
    root: '/',
  });

/** The paths of several names below a folder. */
export const below = (folder: string, names: readonly string[]): readonly string[] =>
  names.map((name) => `${folder}/${name}`);
