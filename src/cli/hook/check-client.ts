// What `turnpike hook` checks once for each session, before the first call is decided.

import { CLIENTS } from '../../hooks/hook-event.js';

/** What the check of a client has found: its version, and the ids of findings by which it could act without asking. */
export interface FoundClient {
  readonly version: string | null;
  readonly findings: readonly string[];
}

/**
 * @param project the folder of the project, whose settings the client reads too
 * @throws Error for an unknown client
 */
export async function checkForHook(client: string, project: string): Promise<FoundClient> {
  const known = CLIENTS.find((name) => name === client);
  if (known === undefined) throw new Error(`${client} is no client of turnpike hook`);
  const { inspectClient } = await import('../../runtime/clients/inspect-client.js');
  const { version, findings } = await inspectClient(known, { project, profile: 'gate', environment: process.env });
  return { version, findings: findings.filter(({ severity }) => severity === 'opens').map(({ id }) => id) };
}
