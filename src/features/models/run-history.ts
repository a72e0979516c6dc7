// The proposals of a run and their responses, as the ledger has them: what a loop continues from after a restart.

import { parseOwnJson } from '../../core/contract/json.js';
import { stepId } from '../../../machines/agent.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { LedgerStore, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { RecordedExchange } from './loop-state.js';

export interface RunHistorySource {
  readonly engine: Pick<TreeEngine, 'peek' | 'findStep'>;
  readonly store: Pick<LedgerStore, 'tree' | 'artifactsOf'>;
}

export interface RunHistory {
  readonly exchanges: readonly RecordedExchange[];
  /** Whether a proposal of an earlier process has no response yet. */
  readonly isStepping: boolean;
}

/** @throws LedgerError LEDGER_ERASED if content of the run is unavailable */
export async function readHistory({ engine, store }: RunHistorySource, run_id: string): Promise<RunHistory> {
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
