// Looks at a client on this machine: its version and its settings.

import { homedir } from 'node:os';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { readClientFile } from '../../adapters/clients/client-files.js';
import { findClientVersion } from '../../adapters/clients/client-version.js';
import { filesBelow } from '../../adapters/clients/files-below.js';
import { readProgramFile } from '../../adapters/clients/hook-program-file.js';
import { sha256 } from '../../contract/hash.js';
import type { ClientFinding, Profile, SettingsFile } from '../../hooks/clients/client-facts.js';
import { CLIENT_PROGRAMS } from '../../hooks/clients/client-programs.js';
import { HOOK_PROGRAM } from '../../hooks/clients/hook-command.js';
import { hookPrograms } from '../../hooks/clients/hook-programs.js';
import { isOwnFile, REPOSITORY_PLACES, startedBySettings } from '../../hooks/clients/repository-places.js';
import { judgeClient } from '../../hooks/clients/judge-client.js';
import { dataFolder, settingsPlaces, type ClientSurroundings } from '../../hooks/clients/settings-places.js';
import type { Client } from '../../hooks/hook-event.js';
import { packageFile } from '../shipped-contract.js';

/** What a look at a client has found. */
export interface InspectedClient {
  readonly version: string | null;
  readonly findings: readonly ClientFinding[];
  /** The SHA-256 of the hook program that the settings start; null if they start none. */
  readonly hook_sha256: string | null;
  /** What the repository has that runs without a hook. */
  readonly repository: readonly string[];
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
  const version = given === undefined ? await findClientVersion(CLIENT_PROGRAMS[client], environment) : given;
  const files = readSettingsFiles(client, project, environment);
  const programs = hookPrograms(client, files).map((path) => [path, readProgramFile(path)] as const);
  const repository = repositoryOf(client, project, files);
  const findings = judgeClient({
    ...{ client, version, profile, project, files, environment, repository },
    project_real: realPath(project),
    plugin_sha256: sha256(shippedPlugin()),
    hook_sha256: sha256(shippedHook()),
    programs: new Map(programs),
  });
  const [, program] = programs.find(([path]) => HOOK_PROGRAM.test(path)) ?? [];
  return { version, findings, hook_sha256: program?.sha256 ?? null, repository };
}

/** What a repository has now that its client runs without a hook: commands, skills, agents and servers. */
export const repositoryItems = (client: Client, project: string): readonly string[] =>
  repositoryOf(client, project, readSettingsFiles(client, project, {}));

const repositoryOf = (client: Client, project: string, files: readonly SettingsFile[]): readonly string[] => [
  ...filesBelow(project, REPOSITORY_PLACES[client]).filter((path) => !isOwnFile(path)),
  ...startedBySettings(client, project, files),
];

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

const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : path);
