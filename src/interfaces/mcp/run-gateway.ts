// How connections reach agent runs: in this process, or through the process that owns the home directory.

import type { StepResponse } from '../../core/contract/run/response.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AgentOptions } from '../../runtime/agents/agent-run.js';
import type { FoundRun, KeyedRunOwner } from '../../runtime/agents/keyed-runs.js';
import { isInCase } from '../../runtime/agents/choose-case.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import type { FoundInput, InputPlace, RemoteAgent, RemoteAgents } from '../../runtime/agents/remote-agents.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import { endedRun, type EndedRun } from './ended-run.js';

/** @internal A run that accepts proposals. It is opened before the call, so that calls keep their order. */
export interface ReachedRun {
  /** Submits one raw payload. For a known input id it returns the recorded response. */
  submit(raw: string, inputId: string, trace: TraceCarrier | undefined): Promise<StepResponse>;
  /** Whether the run still accepts new proposals. */
  readonly live: boolean;
}

/** @internal The own run of a connection. */
export interface OwnRun {
  readonly run_id: string;
  /** How it has ended, if that is known: policy denied its start, or the store says so. */
  readonly ending: EndedRun | null;
}

/** @internal */
export interface RunGateway {
  /** @param correlation the correlation id of the runs of one connection, unless the identity has another one */
  start(correlation: string, trace: TraceCarrier | undefined): Promise<OwnRun>;
  /** Begins the run of a key, or returns it, with its end. */
  startKeyed(key: string, correlation: string, trace: TraceCarrier | undefined): Promise<OwnRun>;
  /** The run of a key, with its end; null if the key has no run. */
  findKeyed(key: string): Promise<OwnRun | null>;
  /** The first of these places to which a proposal was committed, or null. */
  findInput(places: readonly InputPlace[]): Promise<FoundInput | null>;
  open(run_id: string): Promise<ReachedRun>;
  /** Whether a run belongs to the agent of the connection: knowing the id is not enough. */
  belongs(run_id: string): Promise<boolean>;
  /** How a run has ended; null if it has not, or is not a remote run. */
  ending(run_id: string): Promise<EndedRun | null>;
  /** Ends a run, because there are no more proposals (D5). */
  end(run_id: string): Promise<void>;
}

/** The idle limit of the runs of stateless requests: that of every other remote run. */
const IDLE_MS = 900_000;

/** The identity of the agents of a server, as for `startAgent`. */
export type AgentIdentity = Omit<AgentOptions, 'link' | 'key'>;

/** @internal The identity of the agents of a token, with the defaults of the service. */
export const agentOf = ({ actor, person, role, case: bound }: Principal, defaults: AgentIdentity): AgentIdentity => ({
  ...defaults,
  actor,
  ...omitUndefined({ person }),
  role,
  ...(bound === null ? {} : { case: bound }),
});

/** @internal Creates the gateway. The runs are remote: they outlive the connection, and end at the idle limit (D3). */
export function createRunGateway(agents: RemoteAgents, identity: AgentIdentity): RunGateway {
  return {
    start: async (correlation, trace) =>
      toOwnRun(await agents.start({ correlation, ...identity, ...omitUndefined({ trace }) })),
    startKeyed: async (key, correlation, trace) =>
      toOwnRun(
        await agents.start({
          correlation,
          idleMs: IDLE_MS,
          ...identity,
          key,
          ...omitUndefined({ trace }),
        }),
      ),
    findKeyed: async (key) => {
      const found = await agents.findKeyed({ ...ownerOf(identity), key });
      return found === null ? null : toOwnRun(found);
    },
    findInput: (places) => agents.findInput(places),
    open: async (run_id) => ({
      live: (await agents.find(run_id))?.ended === null,
      submit: (raw, inputId, trace) =>
        agents.submit(run_id, raw, trace === undefined ? { inputId } : { inputId, trace }),
    }),
    belongs: async (run_id) => isOfAgent(await agents.find(run_id), identity),
    ending: async (run_id) => {
      const ended = (await agents.find(run_id))?.ended ?? null;
      return ended === null ? null : endedRun(run_id, ended);
    },
    end: (run_id) => agents.end(run_id),
  };
}

const toOwnRun = ({ run_id, ending }: FoundRun): OwnRun => ({
  run_id,
  ending: ending === null ? null : endedRun(run_id, ending),
});

/** The members of an identity that the run of a key has to share. */
function ownerOf({ actor, person, role, lane, case: case_id }: AgentIdentity): Omit<KeyedRunOwner, 'key'> {
  return omitUndefined({ actor, person, role, lane, case: case_id });
}

/** Whether a run was opened with the same actor, role, lane and case. */
function isOfAgent(run: RemoteAgent | null, identity: AgentIdentity): boolean {
  const { actor, role, lane, case: case_id } = { ...AGENT_DEFAULTS, ...identity };
  if (run?.actor !== actor || run.role !== role || run.lane !== lane) return false;
  return isInCase({ case_id: run.case, root_run_id: rootRunIdOf(run.run_id) }, case_id);
}
