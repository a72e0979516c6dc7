// Agent runs as connections reach them: in this process, or through the one that has the home.

import type { StepResponse } from '../../contract/run/response.js';
import type { AgentOptions } from '../../runtime/agents/agent-run.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/open-input.js';
import type { RemoteAgent, RemoteAgents } from '../../runtime/agents/remote-agents.js';

/** A run that takes proposals, made ready before it is called, so that calls keep their order. */
export interface ReachedRun {
  /** Takes one raw payload; with an input id that was there before, it gives the recorded response. */
  submit(raw: string, inputId: string): Promise<StepResponse>;
  /** Whether it can still take new ones. */
  readonly live: boolean;
}

/** The run of a connection's own. */
export interface OwnRun {
  readonly run_id: string;
  /** Policy did not let it begin. */
  readonly denied: boolean;
}

export interface RunGateway {
  start(): Promise<OwnRun>;
  open(run_id: string): Promise<ReachedRun>;
  /** Whether a run that this connection has not been given is its agent's: it is not enough to know the id. */
  belongs(run_id: string): Promise<boolean>;
  /** Whether a run has ended in a way after which its agent may begin another: finished, or silent for too long. */
  mayFollow(run_id: string): Promise<boolean>;
  /** There are no more proposals (D5). */
  end(run_id: string): Promise<void>;
}

/** Who the agents of a server are, as `startAgent` takes it. */
export type AgentIdentity = Omit<AgentOptions, 'link'>;

/** The runs are remote: they outlive the connection, and end when they are silent for too long (D3). */
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

/** After a denial or a failure an agent does not simply go on: it would have its denials once more. */
const isContinuable = (run: RemoteAgent | null): boolean =>
  run?.ended?.state === 'completed' || (run?.ended?.state === 'cancelled' && /(?:^|:)idle$/.test(run.ended.reason));

/** Opened with the same actor, role, lane and case. */
function isOfAgent(run: RemoteAgent | null, identity: AgentIdentity): boolean {
  const { actor, role, lane, case: case_id } = { ...AGENT_DEFAULTS, ...identity };
  return run?.actor === actor && run.role === role && run.lane === lane && run.case === case_id;
}
