// What clients execute, start or follow without asking a hook: commands, skills, agents, plugins and servers. Each
// folder of a repository may have them, because a client may be started in it or work on its files; a user and the
// administrator of a machine have them at fixed places. Below these folders each file counts; a client may know further
// ones elsewhere.

import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import type { Client } from '../hook-event.js';
import type { SettingsFile, SettingsPlace } from './client-facts.js';
import type { ClientSurroundings } from './client-names.js';
import { CLIENT_SETTINGS } from './clients.js';
import { objectIn, readByName } from './read-settings.js';

/** The files that a client reads, those of a wider level first. */
export const settingsPlaces = (client: Client, around: ClientSurroundings): readonly SettingsPlace[] => {
  const { files, userFolder } = CLIENT_SETTINGS[client];
  return files.map((placeOf) => placeOf(around, userFolder(around)));
};

/** Files and folders outside of the project, as absolute paths. */
export const userPlaces = (client: Client, around: ClientSurroundings): readonly string[] => {
  const { unhooked, userFolder } = CLIENT_SETTINGS[client];
  return unhooked.user(around, userFolder(around));
};

/** What an installation puts into the folder of plugins of a project. */
const OWN_FILE = /^\.opencode\/plugins\/turnpike\.js(?:on)?(?:\.before-turnpike|\.turnpike-install\.json)?$/;
export const isOwnFile = (path: string): boolean => OWN_FILE.test(path);

/** What an installation writes into the folders of the user, and the skills that Codex itself writes at each start. */
const INSTALLED = /(?:\.before-turnpike|\.turnpike-install\.json)$/;
const CODEX_OWN = /\/skills\/\.system\//;

/** Whether a path is not what the user has added. The judgement of the client is about its hooks. */
export const isKnownUserFile = (client: Client, around: ClientSurroundings, path: string): boolean =>
  CODEX_OWN.test(path) || settingsPlaces(client, around).some((place) => place.path === path.replace(INSTALLED, ''));

const OWN_SERVER = 'turnpike';

/** Whether a file can name what its client starts. */
export const namesStarted = ({ kind }: Pick<SettingsPlace, 'kind'>): boolean => ['settings', 'servers'].includes(kind);

/**
 * The servers, plugins and commands that a file of settings names, each after the name of the file. A file without a
 * reading counts as one.
 * @param project the settings of a user may have some for a project
 */
export function startedByFile(
  client: Client,
  name: string,
  { text, problem }: Pick<SettingsFile, 'text' | 'problem'>,
  project: string,
): readonly string[] {
  if (text === null) return problem === null ? [] : [name];
  const found = readByName(name, text);
  if (found === null) return [name];
  const ofProject = objectIn(objectIn(found, 'projects'), project);
  return [...new Set([found, ofProject].flatMap((settings) => startedIn(client, settings)))].map(
    (one) => `${name}: ${one}`,
  );
}

const startedIn = (client: Client, settings: JsonObject): readonly string[] =>
  CLIENT_SETTINGS[client].unhooked.members.flatMap((member) => {
    const value = settings[member];
    if (!isJsonObject(value)) return value === undefined ? [] : [member];
    return Object.keys(value).filter((one) => one !== OWN_SERVER && !isOff(value[one]));
  });

const isOff = (value: Json | undefined): boolean =>
  value === false || (isJsonObject(value) && value['enabled'] === false);
