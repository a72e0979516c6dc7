// The loops of agents in one open Turnpike, and what they read of the ledger.

import type { AgentLoops } from '../../runtime/agents/agent-loop.js';
import { RunRequests } from '../../runtime/agents/run-requests.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import { agentSchemas } from './agent-schemas.js';
import { runAgent, type RunReader } from './run-agent.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { stepId } from '../../../machines/agent.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { RecordedExchange, RunHistory } from './loop-state.js';

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

/** @throws LedgerError LEDGER_ERASED if content of the run is unavailable */
async function readHistory(
  { engine, store }: Pick<HostAccess, 'engine' | 'store'>,
  run_id: string,
): Promise<RunHistory> {
  const tree_id = rootRunIdOf(run_id);
  const tree = await engine.peek(tree_id);
  const exchanges: RecordedExchange[] = [];
  for await (const entry of store.tree(tree_id)) {
    const tokens = tokensOfProposal(entry, run_id);
    if (tokens === undefined) continue;
    const step = await engine.findStep(tree_id, run_id, entry.seq);
    // An input that the run has refused, or one that is not answered yet.
    if (step === null) continue;
    const [payload] = requireContent(await store.artifactsOf(entry));
    exchanges.push({ raw: payload?.bytes ?? new Uint8Array(), response: step.response, tokens });
  }
  return { exchanges, isStepping: tree?.isLive(stepId(run_id)) === true };
}

/** The tokens that a proposal of the run has reported, null for none; undefined for another entry. */
function tokensOfProposal({ type, text }: TreeEntry, run_id: string): number | null | undefined {
  if (type !== 'input' || !text.includes('"kind":"proposal"')) return undefined;
  const { body } = parseOwnJson(text) as {
    readonly body: { readonly kind: string; readonly run_id: string; readonly tokens: number | null };
  };
  return body.kind === 'proposal' && body.run_id === run_id ? body.tokens : undefined;
}
