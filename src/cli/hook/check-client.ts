// What `turnpike hook` checks once for each session, before the first call is decided.

/** What the check of a client has found: its version, and the ids of findings by which it could act without asking. */
export interface FoundClient {
  readonly version: string | null;
  readonly findings: readonly string[];
}

/** No client can be checked yet, so each of them counts as one that could act without asking. */
export const checkForHook = (client: string): Promise<FoundClient> =>
  Promise.resolve({ version: null, findings: [`${client}.not_checked`] });
