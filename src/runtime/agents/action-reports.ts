// Reports of callers about actions that they have executed themselves, after the decision (U-10).

import { isJsonObject, type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { REPORT_MATCHES, type ReportMatch } from '../../core/contract/run/report-origin.js';
import { type RunContext, rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { RunError, usageError } from '../../core/errors.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';

/** The outcome of an action that the caller of an agent has executed. */
export interface ActionReport {
  /** The run of the action: `result.run_id` of the response that allowed it. */
  readonly run: string;
  /** `unknown`: the caller cannot tell whether it happened. */
  readonly status: 'done' | 'failed' | 'unknown';
  /** At most 1 MiB as JSON. It is recorded with the case, and checked against no schema. */
  readonly result?: JsonObject;
  /** `ambiguous` if the caller had to choose among several equal actions. Default `exact`. */
  readonly match?: ReportMatch;
}

const STATUSES: readonly string[] = ['done', 'failed', 'unknown'];
const RESULT_BYTES_MAX = 1_048_576;

/**
 * Records a report. The same report again changes nothing.
 * @throws RunError RUN_UNKNOWN; INVALID_STATE_TRANSITION if the run waits for no report, or was reported otherwise
 * @throws UsageError
 */
export async function reportAction(
  { engine, store }: { readonly engine: TreeEngine; readonly store: LedgerStore },
  report: ActionReport,
): Promise<void> {
  const { run: run_id, status, match = 'exact' } = report;
  if (!STATUSES.includes(status)) throw usageError(`status: one of ${STATUSES.join(', ')}`);
  if (!REPORT_MATCHES.includes(match)) throw usageError(`match: one of ${REPORT_MATCHES.join(', ')}`);
  const agent = await findAgent(engine, run_id);
  const material = createResult(report, agent);
  const result = material === null ? null : artifactRef(material);
  // A run takes one report, so its id needs nothing of the caller's.
  const input_id = `${run_id}/report`;
  const { actor } = agent;
  const input: NewInput = { kind: 'report', run_id, input_id, status, result, match, actor };
  const materials = material === null ? [] : [material];
  const { refused, repeat_of } = await engine.submit(agent.root_run_id, { input, materials, rememberInputId: true });
  if (repeat_of !== null && !(await isSameReport(store, agent.root_run_id, repeat_of, input)))
    throw otherReport(run_id);
  if (refused) {
    throw new RunError({
      code: 'INVALID_STATE_TRANSITION',
      message: `run ${run_id} waits for no report: \`turnpike runs ${run_id}\` shows where it stands`,
    });
  }
}

/** The agent run whose caller executes the action. */
async function findAgent(engine: TreeEngine, run_id: string): Promise<RunContext> {
  const tree = await engine.peek(rootRunIdOf(run_id));
  const agent = tree?.run(run_id.slice(0, Math.max(0, run_id.lastIndexOf('.')))) ?? null;
  if (agent?.context.run_kind === 'agent') return agent.context;
  throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run ${run_id} of an agent's action in this ledger` });
}

function createResult({ result }: ActionReport, { case_id }: RunContext): Artifact | null {
  if (result === undefined) return null;
  if (!isJsonObject(result)) throw usageError('result: a JSON object');
  const bytes = Buffer.from(toJson(result));
  if (bytes.length > RESULT_BYTES_MAX) throw usageError(`result: at most ${RESULT_BYTES_MAX} bytes as JSON`);
  return { kind: 'result', case_id, bytes };
}

function toJson(result: JsonObject): string {
  try {
    return canonicalJson(result);
  } catch {
    throw usageError('result: a JSON object without values that JSON cannot represent');
  }
}

/** Whether the report that was recorded first says the same. */
async function isSameReport(store: LedgerStore, tree_id: string, seq: number, input: NewInput): Promise<boolean> {
  for await (const { text } of store.tree(tree_id, seq)) {
    const { body } = parseOwnJson(text) as { readonly body: Readonly<Record<string, unknown>> };
    const given = input as unknown as Readonly<Record<string, unknown>>;
    return ['kind', 'status', 'result', 'match'].every(
      (name) => canonicalJson(given[name] ?? null) === canonicalJson(body[name] ?? null),
    );
  }
  return false;
}

const otherReport = (run_id: string): RunError =>
  new RunError({
    code: 'INVALID_STATE_TRANSITION',
    message: `run ${run_id} was reported with another outcome: the first report counts`,
  });
