// Remote agent runs (D3): no caller has a handle on them, so each is addressed by its id, in this process or through
// the owner of the home.

import { usageError } from '../../core/errors.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { rootRunIdOf, type TerminalState } from '../../core/contract/run/run-context.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { type LedgerReader } from '../ledger/ledger-reader.js';
import type { AgentOptions, SubmitOptions } from './agent-run.js';
import type { Agents } from './agents.js';
import { findKeyedRun, startBoundRun, toFoundRun, type FoundRun, type KeyedRunOwner } from './keyed-runs.js';
import { inputKeysOf } from './caller-input.js';

export interface RemoteAgents {
  /**
   * Opens a run tree with one remote agent run. A run that policy denies has ended already. With a key, attaches to the
   * run of that key if there is one.
   * @throws RunError RUN_KEY_CONFLICT if the run of the key has another actor, person, role, lane or case, or another
   * value of an option that is given; UsageError
   */
  start(options: Omit<AgentOptions, 'link'>): Promise<FoundRun>;
  /** The run of a key, without beginning one; null if the key has no run. @throws like `start` */
  findKeyed(owner: KeyedRunOwner): Promise<FoundRun | null>;
  /**
   * The first of at most 64 places to which a proposal was committed, with the hash of its payload; null if no place
   * has one.
   * @throws UsageError for more places
   */
  findInput(places: readonly InputPlace[]): Promise<FoundInput | null>;
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

/** A run, and the id that a caller gave a request to it. */
export interface InputPlace {
  readonly run_id: string;
  readonly inputId: string;
}

export interface FoundInput {
  readonly run_id: string;
  /** The SHA-256 of the payload. */
  readonly sha256: string;
}

/** Limit of the places of one search. */
export const INPUT_PLACES_MAX = 64;

/** The actor of the run and its state. */
export interface RemoteAgent {
  readonly run_id: string;
  readonly actor: string;
  readonly role: string;
  readonly lane: string | null;
  readonly case: string | null;
  readonly ended: { readonly state: TerminalState; readonly reason: string } | null;
}

interface RemoteAgentsParts {
  readonly agents: Agents;
  readonly engine: Pick<TreeEngine, 'peek' | 'submit'>;
  readonly ledger: LedgerReader;
}

/** The remote agent runs of this process. */
export const remoteAgents = ({ agents, engine, ledger }: RemoteAgentsParts): RemoteAgents => ({
  start: async ({ key, ...options }) =>
    toFoundRun(
      key === undefined
        ? await agents.start({ ...options, link: 'remote' })
        : await startBoundRun({ agents, engine, ledger }, { ...options, key }),
    ),
  findKeyed: (owner) => findKeyedRun({ agents, engine, ledger }, owner),
  findInput: async (places) => {
    if (places.length > INPUT_PLACES_MAX) throw usageError(`places: at most ${INPUT_PLACES_MAX}`);
    const keys = places.flatMap(({ run_id, inputId }) =>
      inputKeysOf(rootRunIdOf(run_id), inputId).map((key) => ({ ...key, run_id })),
    );
    for (const { tree_id, input_id, run_id } of await ledger.committed(keys)) {
      const proposal = await ledger.recordedProposal(tree_id, input_id);
      if (proposal !== null) return { run_id, sha256: proposal.sha256 };
    }
    return null;
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
