// Looks at a client on this machine: its version and its settings.

import { homedir } from 'node:os';
import { readFileSync } from 'node:fs';
import { readClientFile } from '../../adapters/clients/client-files.js';
import { findClientVersion, type ClientPrograms } from '../../adapters/clients/client-version.js';
import { sha256 } from '../../contract/hash.js';
import type { ClientFinding, Profile, SettingsFile } from '../../hooks/clients/client-facts.js';
import { judgeClient } from '../../hooks/clients/judge-client.js';
import { settingsPlaces, type ClientSurroundings } from '../../hooks/clients/settings-places.js';
import type { Client } from '../../hooks/hook-event.js';
import { packageFile } from '../shipped-contract.js';

/** The programs and the packages of each client. */
export const CLIENT_PROGRAMS: Readonly<Record<Client, ClientPrograms>> = {
  'claude-code': { programs: ['claude'], packages: ['@anthropic-ai/claude-code'] },
  codex: { programs: ['codex'], packages: ['@openai/codex'] },
  'gemini-cli': { programs: ['gemini'], packages: ['@google/gemini-cli'] },
  opencode: { programs: ['opencode'], packages: ['opencode-ai', 'opencode'] },
  cline: { programs: ['cline'], packages: ['cline'] },
  cursor: { programs: ['cursor-agent', 'cursor'], packages: [] },
};

/** What a look at a client has found. */
export interface InspectedClient {
  readonly version: string | null;
  readonly findings: readonly ClientFinding[];
}

/** Where a client is looked for. */
export interface InspectOptions {
  readonly project: string;
  readonly profile: Profile;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Takes at most about a second: it runs while the client waits for its first decision. It changes nothing. */
export async function inspectClient(
  client: Client,
  { project, profile, environment }: InspectOptions,
): Promise<InspectedClient> {
  const version = await findClientVersion(CLIENT_PROGRAMS[client], environment);
  const files = settingsPlaces(client, surroundingsOf(project, environment)).map((place): SettingsFile => ({
    ...place,
    ...readClientFile(place.path, place.root),
  }));
  const facts = { client, version, profile, project, files, environment, plugin_sha256: sha256(shippedPlugin()) };
  return { version, findings: judgeClient(facts) };
}

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
