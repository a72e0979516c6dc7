// What only a process of the client knows of it: its version, and the variables by which it finds its settings. The
// service looks at the settings itself, so that a changed hook program cannot answer for itself.

import { findClientVersion } from '../../client-files/client-version.js';
import { CLIENT_PROGRAMS, SETTINGS_VARIABLES } from '../../clients/client-programs.js';
import { CLIENTS } from '../../hook-event.js';

/** What the hook reports of its client. */
export interface FoundClient {
  readonly version: string | null;
  readonly findings: readonly [];
  readonly environment: Readonly<Record<string, string>>;
}

/** @throws Error for an unknown client */
export async function checkForHook(client: string): Promise<FoundClient> {
  const known = CLIENTS.find((name) => name === client);
  if (known === undefined) throw new Error(`${client} is no client of turnpike hook`);
  const version = await findClientVersion(CLIENT_PROGRAMS[known], process.env);
  const given = SETTINGS_VARIABLES.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { version, findings: [], environment: Object.fromEntries(given) };
}
