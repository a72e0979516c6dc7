// How connections reach agent runs: in this process, or through the process that owns the home directory.

import type { StepResponse } from '../../contract/run/response.js';
import type { AgentOptions } from '../../runtime/agents/agent-run.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/open-input.js';
import type { RemoteAgent, RemoteAgents } from '../../runtime/agents/remote-agents.js';

/** A run that accepts proposals. It is opened before the call, so that calls keep their order. */
export interface ReachedRun {
  /** Submits one raw payload. For a known input id it returns the recorded response. */
  submit(raw: string, inputId: string): Promise<StepResponse>;
  /** Whether the run still accepts new proposals. */
  readonly live: boolean;
}

/** The own run of a connection. */
export interface OwnRun {
  readonly run_id: string;
  /** Whether policy denied the start of the run. */
  readonly denied: boolean;
}

export interface RunGateway {
  start(): Promise<OwnRun>;
  open(run_id: string): Promise<ReachedRun>;
  /** Whether a run belongs to the agent of the connection: knowing the id is not enough. */
  belongs(run_id: string): Promise<boolean>;
  /** Whether a run has ended so that its agent may start another: it was finished, or reached the idle limit. */
  mayFollow(run_id: string): Promise<boolean>;
  /** Ends a run, because there are no more proposals (D5). */
  end(run_id: string): Promise<void>;
}

/** The identity of the agents of a server, as for `startAgent`. */
export type AgentIdentity = Omit<AgentOptions, 'link'>;

/** Creates the gateway. The runs are remote: they outlive the connection, and end at the idle limit (D3). */
export function createRunGateway(agents: RemoteAgents, identity: AgentIdentity): RunGateway {
  return {
    start: async () => {
      const { run_id, ending } = await agents.start(identity);
      return { run_id, denied: ending !== null };
    },
    open: async (run_id) => ({
      live: (await agents.find(run_id))?.ended === null,
      submit: (raw, inputId) => agents.submit(run_id, raw, { inputId }),
    }),
    belongs: async (run_id) => isOfAgent(await agents.find(run_id), identity),
    mayFollow: async (run_id) => isContinuable(await agents.find(run_id)),
    end: (run_id) => agents.end(run_id),
  };
}

/** Whether the agent may start another run. Not after a denial or failure: that would reset its count of denials. */
const isContinuable = (run: RemoteAgent | null): boolean =>
  run?.ended?.state === 'completed' || (run?.ended?.state === 'cancelled' && /(?:^|:)idle$/.test(run.ended.reason));

/** Whether a run was opened with the same actor, role, lane and case. */
function isOfAgent(run: RemoteAgent | null, identity: AgentIdentity): boolean {
  const { actor, role, lane, case: case_id } = { ...AGENT_DEFAULTS, ...identity };
  return run?.actor === actor && run.role === role && run.lane === lane && run.case === case_id;
}
