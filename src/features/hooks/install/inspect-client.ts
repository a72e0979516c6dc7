// Looks at a client on this machine: its version, its settings, and what it executes, starts or follows without asking
// a hook: commands, skills, agents, plugins and servers. Each folder of a repository may have them, because a client
// may be started in it or work on its files; a user and the administrator of a machine have them at fixed places. Below
// these folders each file counts; a client may know further ones elsewhere.

import { homedir } from 'node:os';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../../core/contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import { packageFile } from '../../../system/package-files.js';
import { readClientFile, readProgramFile, type ClientFile } from '../client-files/client-file.js';
import { findClientVersion } from '../client-files/client-version.js';
import { filesBelow, findPlaces, foldersAbove } from '../client-files/find-places.js';
import { CLIENT_NAMES, dataFolder, type ClientSurroundings } from '../clients/client-names.js';
import { CLIENT_SETTINGS } from '../clients/clients.js';
import { HOOK_PROGRAM } from '../clients/hook-command-line.js';
import { findHookStarts, judgeClient } from '../clients/judge-client.js';
import type { ClientFinding, Profile, SettingsPlace, UnhookedItems } from '../clients/judge-hooks.js';
import { objectIn, readSettingsByName } from '../clients/read-settings.js';
import type { Client } from '../hook-event.js';

/** What a look at a client has found. */
export interface InspectedClient extends UnhookedItems {
  readonly version: string | null;
  readonly findings: readonly ClientFinding[];
  /** The SHA-256 of the hook program that the settings start; null if they start none. */
  readonly hook_sha256: string | null;
}

/** Where a client is looked for. */
interface InspectOptions {
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
  const files = settingsPlaces(client, surroundingsOf(project, environment)).map((place) => ({
    ...place,
    ...readClientFile(place.path, place.root),
  }));
  const starts = findHookStarts(client, files);
  const paths = starts.flatMap(({ program }) => program).filter((word) => word.startsWith('/'));
  const programs = new Map(paths.map((path) => [path, readProgramFile(path)]));
  const items = await findItems(client, project, environment);
  const findings = judgeClient({
    ...{ client, version, profile, project, files, environment, starts, programs, ...items },
    project_real: realPath(project),
    plugin_sha256: sha256(shippedPlugin()),
    hook_sha256: sha256(shippedHook()),
  });
  const [, program] = [...programs].find(([path]) => HOOK_PROGRAM.test(path)) ?? [];
  return { version, findings, hook_sha256: program?.sha256 ?? null, ...items };
}

/** The files that a client reads, those of a wider level first. */
const settingsPlaces = (client: Client, around: ClientSurroundings): readonly SettingsPlace[] => {
  const { files, userFolder } = CLIENT_SETTINGS[client];
  return files.map((placeOf) => placeOf(around, userFolder(around)));
};

/** More settings in folders of a project are not read: each counts as one. */
const SETTINGS_READ_MAX = 64;

/** The commands, skills, agents, plugins and servers that a client runs without a hook. */
export async function findItems(
  client: Client,
  project: string,
  environment: InspectOptions['environment'],
): Promise<UnhookedItems> {
  const around = surroundingsOf(project, environment);
  const { unhooked, userFolder } = CLIENT_SETTINGS[client];
  const files = settingsPlaces(client, around);
  const naming = files.filter(({ kind }) => kind === 'settings' || kind === 'servers');
  const names = naming.filter(isOfProject).map(({ path }) => path.slice(project.length + 1));
  const paths = [...unhooked.repository, ...names];
  const { places, isComplete } = await findPlaces(project, paths);
  const above = unhooked.readsAbove ? foldersAbove(project) : [];
  const all = [...places, ...above.flatMap((folder) => paths.map((path) => `${folder}${path}`))];
  const isSettings = (place: string): boolean => names.some((name) => place === name || place.endsWith(`/${name}`));
  const started = all.filter(isSettings).flatMap((place, index) => {
    const file = readClientFile(join(project, place), join(project, above.at(-1) ?? ''));
    const isLeft = index >= SETTINGS_READ_MAX && file.text !== null;
    return isLeft ? [place] : startedByFile(client, place, file, project);
  });
  const folders = all.filter((place) => !isSettings(place));
  const repository = [...filesBelow(project, folders).filter((path) => !OWN_FILE.test(path)), ...started];
  const ofUser = unhooked.user(around, userFolder(around)).map((path) => path.slice(1));
  const known = new Set(files.map(({ path }) => path));
  const user = [
    ...filesBelow('/', ofUser)
      .map((path) => `/${path}`)
      .filter((path) => !CODEX_OWN.test(path) && !known.has(path.replace(INSTALLED, ''))),
    ...naming
      .filter((place) => !isOfProject(place))
      .flatMap(({ path, root }) => startedByFile(client, path, readClientFile(path, root), project)),
  ];
  return { repository: [...new Set(repository)], user: [...new Set(user)], isComplete };
}

const isOfProject = ({ level }: SettingsPlace): boolean => level === 'project' || level === 'local';

/** What an installation puts into the folder of plugins of a project. */
const OWN_FILE = /^\.opencode\/plugins\/turnpike\.js(?:on)?(?:\.before-turnpike|\.turnpike-install\.json)?$/;
/** What an installation writes next to settings, and the skills that Codex itself writes at each start. */
const INSTALLED = /(?:\.before-turnpike|\.turnpike-install\.json)$/;
const CODEX_OWN = /\/skills\/\.system\//;
const OWN_SERVER = 'turnpike';

/**
 * The servers, plugins and commands that a file of settings names, each after the name of the file. A file without a
 * reading counts as one.
 * @param project the settings of a user may have some for a project
 */
function startedByFile(
  client: Client,
  name: string,
  { text, problem }: ClientFile,
  project: string,
): readonly string[] {
  if (text === null) return problem === null ? [] : [name];
  const found = readSettingsByName(name, text);
  if (found === null) return [name];
  const ofProject = objectIn(objectIn(found, 'projects'), project);
  const started = [found, ofProject].flatMap((settings) => startedIn(client, settings));
  return [...new Set(started)].map((one) => `${name}: ${one}`);
}

const startedIn = (client: Client, settings: JsonObject): readonly string[] =>
  CLIENT_SETTINGS[client].unhooked.members.flatMap((member) => {
    const value = settings[member];
    if (!isJsonObject(value)) return value === undefined ? [] : [member];
    return Object.keys(value).filter((one) => one !== OWN_SERVER && !isOff(value[one]));
  });

const isOff = (value: Json | undefined): boolean =>
  value === false || (isJsonObject(value) && value['enabled'] === false);

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
