import type { StepTrace } from '../contract/step-trace.js';
import { recordedResponse, type RecordedStep } from '../kernel/recorded-response.js';
import type { Tree } from '../kernel/tree.js';
import { needed } from '../ledger/withheld.js';
import type { LedgerStore } from '../ports/ledger-store.js';

/** Where a proposal stands, and what its step is judged by. */
export interface ProposedStep extends Pick<RecordedStep, 'policy' | 'exposure'> {
  readonly tree_id: string;
  readonly run_id: string;
  readonly seq: number;
}

export interface RecalledStep {
  readonly trace: StepTrace;
  /** The response as it was given, byte for byte. */
  readonly response: string;
}

/**
 * The recorded step of the proposal that stands at `seq` of the tree.
 * @returns null while the step is under way, or when no step came of that input
 */
export async function recallStep(
  tree: Tree,
  run_id: string,
  seq: number,
  store: StepSource,
): Promise<RecalledStep | null> {
  const { policy, tree_id } = tree;
  const exposure = tree.run(run_id)?.exposure ?? null;
  if (policy === null || exposure === null) return null;
  return recalledStep({ tree_id, run_id, seq, policy, exposure }, store);
}

type StepSource = Pick<LedgerStore, 'tree' | 'artifactsOf'>;

/** The same, for whoever has no tree in memory. @throws LedgerError LEDGER_ERASED where its content is not to be had */
export async function recalledStep(
  { tree_id, run_id, seq, policy, exposure }: ProposedStep,
  store: StepSource,
): Promise<RecalledStep | null> {
  let payload: Uint8Array | null = null;
  let repeated: Uint8Array | null = null;
  let result: Uint8Array | null = null;
  for await (const stored of store.tree(tree_id, seq)) {
    if (stored.seq === seq) {
      const brought = needed(await store.artifactsOf(stored));
      payload = brought[0]?.bytes ?? null;
      // Behind the payload a proposal may bring a prompt as well.
      repeated = brought.find(({ kind }) => kind === 'response')?.bytes ?? null;
    } else if (stored.type === 'input' && belongs(stored.text, run_id)) {
      result = needed(await store.artifactsOf(stored))[0]?.bytes ?? null;
    }
    const trace = stored.type === 'step_trace' ? traceOf(stored.text, run_id) : null;
    if (trace === null || payload === null) continue;
    // An id that was used for another payload was refused, whatever its first step said.
    if (repeated !== null && trace.replay_of !== null)
      return { trace, response: Buffer.from(repeated).toString('utf8') };
    const step = { trace, payload, result: trace.result === null ? null : result, exposure, policy };
    return { trace, response: recordedResponse(step) };
  }
  return null;
}

// The tree has been folded before: these texts are what the machines said.

/** Whether this input is the result of one of the run's own mediated runs; others may work in the same tree. */
function belongs(text: string, run_id: string): boolean {
  const { body } = JSON.parse(text) as { readonly body: { readonly kind: string; readonly run_id: string } };
  return body.kind === 'result' && body.run_id.startsWith(`${run_id}.`);
}

function traceOf(text: string, run_id: string): StepTrace | null {
  const { body } = JSON.parse(text) as { readonly body: StepTrace };
  return body.run_id === run_id ? body : null;
}
