// Remote agent runs (D3): no caller has a handle on them, so each is addressed by its id, in this process or through
// the owner of the home.

import type { StepResponse } from '../../contract/run/response.js';
import type { TerminalState } from '../../contract/run/run-state.js';
import type { AgentOptions, RunEnding, SubmitOptions } from './agent-run.js';
import type { Agents } from './agents.js';
import type { LedgerReader } from '../ledger/ledger-reader.js';

export interface RemoteAgents {
  /**
   * Opens a run tree with one remote agent run. A run that policy denies has ended already.
   * @throws UsageError
   */
  start(
    options: Omit<AgentOptions, 'link' | 'key'>,
  ): Promise<{ readonly run_id: string; readonly ending: RunEnding | null }>;
  /** @returns null if there is no remote agent run with this id */
  find(run_id: string): Promise<RemoteAgent | null>;
  /**
   * A repeated request gets its recorded response even if the run has ended.
   * @throws like `Turnpike.submit`
   */
  submit(run_id: string, raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse>;
  /** Declares the end of the input (D5). A run that has ended stays as it is. */
  end(run_id: string): Promise<void>;
}

/** The actor of the run and its state. */
export interface RemoteAgent {
  readonly run_id: string;
  readonly actor: string;
  readonly role: string;
  readonly lane: string | null;
  readonly case: string | null;
  readonly ended: { readonly state: TerminalState; readonly reason: string } | null;
}

/** The remote agent runs of this process. */
export const remoteAgents = (agents: Agents, ledger: LedgerReader): RemoteAgents => ({
  start: async (options) => {
    const { run_id, finished } = await agents.start({ ...options, link: 'remote' });
    return { run_id, ending: await Promise.race([finished, Promise.resolve(null)]) };
  },
  find: async (run_id) => {
    const live = await agents.find(run_id);
    const known = await agents.findAny(run_id);
    if (known?.link !== 'remote') return null;
    const { actor, role_id, lane_id, case_id } = known.context;
    const description = { run_id, actor: actor.actor_id, role: role_id, lane: lane_id, case: case_id };
    return { ...description, ended: live === null ? await findEnding(run_id, ledger) : null };
  },
  submit: (run_id, raw, options) => agents.submit(run_id, raw, options),
  end: async (run_id) => {
    await (await agents.find(run_id))?.end();
  },
});

async function findEnding(run_id: string, ledger: LedgerReader): Promise<RemoteAgent['ended']> {
  const record = await ledger.run(run_id);
  if (record === null || record.status === 'created' || record.status === 'running') return null;
  return { state: record.status, reason: record.outcome ?? '' };
}
