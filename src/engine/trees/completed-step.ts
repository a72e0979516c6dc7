import type { StepTrace } from '../../core/contract/run/step-trace.js';
import { rebuildResponse, type RecordedStep } from '../../kernel/rebuild-response.js';
import type { Tree } from '../../kernel/tree.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';

/** The location of a proposal, and the policy and exposure of its step. */
export interface ProposedStep extends Pick<RecordedStep, 'policy' | 'exposure'> {
  readonly tree_id: string;
  readonly run_id: string;
  readonly seq: number;
}

export interface CompletedStep {
  readonly trace: StepTrace;
  /** The response as it was returned, byte for byte. */
  readonly response: string;
}

/**
 * The recorded step of the proposal at `seq` of the tree.
 * @returns null while the step is pending, or if the input caused no step
 */
export async function findCompletedStep(
  tree: Tree,
  run_id: string,
  seq: number,
  store: StepSource,
): Promise<CompletedStep | null> {
  const { policy, tree_id } = tree;
  const exposure = tree.run(run_id)?.exposure ?? null;
  if (policy === null || exposure === null) return null;
  return loadCompletedStep({ tree_id, run_id, seq, policy, exposure }, store);
}

type StepSource = Pick<LedgerStore, 'tree' | 'artifactsOf'>;

/** The same, without a tree in memory. @throws LedgerError LEDGER_ERASED if its content is unavailable */
export async function loadCompletedStep(
  { tree_id, run_id, seq, policy, exposure }: ProposedStep,
  store: StepSource,
): Promise<CompletedStep | null> {
  let payload: Uint8Array | null = null;
  let repeated: Uint8Array | null = null;
  let result: Uint8Array | null = null;
  let explanation: Uint8Array | null = null;
  for await (const stored of store.tree(tree_id, seq)) {
    if (stored.seq === seq) {
      const artifacts = requireContent(await store.artifactsOf(stored));
      payload = artifacts[0]?.bytes ?? null;
      // A proposal may also carry a prompt after the payload.
      repeated = artifacts.find(({ kind }) => kind === 'response')?.bytes ?? null;
    } else if (stored.type === 'input' && isResultOfRun(stored.text, run_id)) {
      const artifacts = requireContent(await store.artifactsOf(stored));
      result = artifacts.find(({ kind }) => kind === 'result')?.bytes ?? null;
      explanation = artifacts.find(({ kind }) => kind === 'explanation')?.bytes ?? null;
    }
    const trace = stored.type === 'step_trace' ? traceOf(stored.text, run_id) : null;
    if (trace === null || payload === null) continue;
    // If the id was used with another payload, the proposal was rejected, whatever its first step returned.
    if (repeated !== null && trace.replay_of !== null)
      return { trace, response: Buffer.from(repeated).toString('utf8') };
    const step = { trace, payload, result: trace.result === null ? null : result, explanation, exposure, policy };
    return { trace, response: rebuildResponse(step) };
  }
  return null;
}

// Trust these texts: the tree has been folded before, which verified them.

/** Whether this input is the result of one of the run's own mediated runs; the tree may contain other runs. */
function isResultOfRun(text: string, run_id: string): boolean {
  const { body } = JSON.parse(text) as { readonly body: { readonly kind: string; readonly run_id: string } };
  return body.kind === 'result' && body.run_id.startsWith(`${run_id}.`);
}

function traceOf(text: string, run_id: string): StepTrace | null {
  const { body } = JSON.parse(text) as { readonly body: StepTrace };
  return body.run_id === run_id ? body : null;
}
