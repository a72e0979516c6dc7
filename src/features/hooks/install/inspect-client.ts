// Looks at a client on this machine: its version and its settings.

import { homedir } from 'node:os';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { readClientFile } from '../client-files/read-client-file.js';
import { findClientVersion } from '../client-files/client-version.js';
import { filesBelow, findPlaces, foldersAbove } from '../client-files/find-places.js';
import { readProgramFile } from '../client-files/install-file.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { ClientFinding, Profile, SettingsFile, SettingsPlace } from '../clients/client-facts.js';
import { CLIENT_NAMES, dataFolder, type ClientSurroundings } from '../clients/client-names.js';
import { CLIENT_SETTINGS } from '../clients/clients.js';
import { HOOK_PROGRAM } from '../clients/hook-command-line.js';
import { hookPrograms, judgeClient } from '../clients/judge-client.js';
import {
  isKnownUserFile,
  isOwnFile,
  namesStarted,
  settingsPlaces,
  startedByFile,
  userPlaces,
} from '../clients/client-places.js';
import type { Client } from '../hook-event.js';
import { packageFile } from '../../../system/package-files.js';

/** What a look at a client has found. */
export interface InspectedClient {
  readonly version: string | null;
  readonly findings: readonly ClientFinding[];
  /** The SHA-256 of the hook program that the settings start; null if they start none. */
  readonly hook_sha256: string | null;
  /** What the repository has that runs without a hook, relative to the project. */
  readonly repository: readonly string[];
  /** What the user has, as absolute paths. */
  readonly user: readonly string[];
}

/** Where a client is looked for. */
export interface InspectOptions {
  readonly project: string;
  readonly profile: Profile;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent: it is found out. */
  readonly version?: string | null;
}

/** Takes at most about a second: it runs while the client waits for its first decision. It changes nothing. */
export async function inspectClient(
  client: Client,
  { project, profile, environment, version: given }: InspectOptions,
): Promise<InspectedClient> {
  const version = given === undefined ? await findClientVersion(CLIENT_NAMES[client], environment) : given;
  const files = readSettingsFiles(client, project, environment);
  const programs = hookPrograms(client, files).map((path) => [path, readProgramFile(path)] as const);
  const { repository, user, isComplete } = await findItems(client, project, environment);
  const findings = judgeClient({
    ...{ client, version, profile, project, files, environment, repository, user },
    looked_at_all: isComplete,
    project_real: realPath(project),
    plugin_sha256: sha256(shippedPlugin()),
    hook_sha256: sha256(shippedHook()),
    programs: new Map(programs),
  });
  const [, program] = programs.find(([path]) => HOOK_PROGRAM.test(path)) ?? [];
  return { version, findings, hook_sha256: program?.sha256 ?? null, repository, user };
}

/** What a client runs without a hook. */
export interface UnhookedItems {
  /** Relative to the project. */
  readonly repository: readonly string[];
  /** As absolute paths. */
  readonly user: readonly string[];
  /** Whether all folders of the project were looked at. */
  readonly isComplete: boolean;
}

/** More settings in folders of a project are not read: each counts as one. */
const SETTINGS_READ_MAX = 64;

/** The commands, skills, agents, plugins and servers that a client runs without a hook. */
export async function findItems(
  client: Client,
  project: string,
  environment: InspectOptions['environment'],
): Promise<UnhookedItems> {
  const around = surroundingsOf(project, environment);
  const settings = settingsPlaces(client, around).filter(namesStarted);
  const [own, others] = [settings.filter(isOfProject), settings.filter((place) => !isOfProject(place))];
  const names = own.map(({ path }) => path.slice(project.length + 1));
  const { repository: items, readsAbove } = CLIENT_SETTINGS[client].unhooked;
  const paths = [...items, ...names];
  const { places, isComplete } = await findPlaces(project, paths);
  const above = readsAbove ? foldersAbove(project) : [];
  const all = [...places, ...above.flatMap((folder) => paths.map((path) => `${folder}${path}`))];
  const isSettings = (place: string): boolean => names.some((name) => place === name || place.endsWith(`/${name}`));
  const started = all.filter(isSettings).flatMap((place, index) => {
    const file = readClientFile(join(project, place), join(project, above.at(-1) ?? ''));
    const isLeft = index >= SETTINGS_READ_MAX && file.text !== null;
    return isLeft ? [place] : startedByFile(client, place, file, project);
  });
  const folders = all.filter((place) => !isSettings(place));
  const repository = [...filesBelow(project, folders).filter((path) => !isOwnFile(path)), ...started];
  const ofUser = filesBelow(
    '/',
    userPlaces(client, around).map((path) => path.slice(1)),
  ).map((path) => `/${path}`);
  const user = [
    ...ofUser.filter((path) => !isKnownUserFile(client, around, path)),
    ...others.flatMap(({ path, root }) => startedByFile(client, path, readClientFile(path, root), project)),
  ];
  return { repository: [...new Set(repository)], user: [...new Set(user)], isComplete };
}

const isOfProject = ({ level }: Pick<SettingsPlace, 'level'>): boolean => level === 'project' || level === 'local';

const readSettingsFiles = (
  client: Client,
  project: string,
  environment: InspectOptions['environment'],
): readonly SettingsFile[] =>
  settingsPlaces(client, surroundingsOf(project, environment)).map((place) => ({
    ...place,
    ...readClientFile(place.path, place.root),
  }));

/** The folders from which a client reads its settings follow from these. */
export const surroundingsOf = (
  project: string,
  environment: Readonly<Record<string, string | undefined>>,
): ClientSurroundings => ({
  project,
  userHome: environment['HOME'] ?? homedir(),
  platform: process.platform,
  environment,
});

/** The plugin for opencode that this package ships. */
export const shippedPlugin = (): string => readFileSync(packageFile('packaging/opencode/turnpike.js'), 'utf8');

/** The hook program that this package ships, as one file. */
export const shippedHook = (): string => readFileSync(packageFile('dist/hook.mjs'), 'utf8');

/** Where an installation writes it. Its name has its hash, so that versions do not replace each other. */
export const hookProgramPath = (environment: InspectOptions['environment']): string =>
  `${dataFolder(surroundingsOf('', environment))}/turnpike-hook-${sha256(shippedHook())}.mjs`;

/** The path without links, whether it exists or not. */
export const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : path);
