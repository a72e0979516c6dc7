// The loops of agents in one open Turnpike.

import type { AgentLoops } from '../../runtime/agents/agent-loop.js';
import { RunRequests } from '../../runtime/agents/run-requests.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import { agentSchemas } from './agent-schemas.js';
import { runAgent, type RunReader } from './run-agent.js';
import { readHistory } from './run-history.js';

export function openAgentLoops({ engine, store, ledger, clock, ids }: HostAccess): AgentLoops {
  return {
    run: async (agent, run, options) => {
      const requests = new RunRequests(engine, clock);
      const reader: RunReader = {
        schemas: await agentSchemas(ledger, run),
        findRequest: (run_id, payload) => requests.find(run_id, payload),
        readHistory: (run_id) => readHistory({ engine, store }, run_id),
      };
      return runAgent(agent, run, { clock, ids, ...options, reader });
    },
  };
}
