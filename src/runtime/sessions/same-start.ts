import { parseOwnJson } from '../../contract/json/own-json.js';
import type { Artifact } from '../../contract/artifact-ref.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { idempotencyConflict } from '../../errors.js';
import type { LedgerStore } from '../../ports/ledger/ledger-store.js';

/** What an idempotency key of a start is bound to. */
const BOUND_MEMBERS = ['spec', 'settings', 'agent', 'case_id'] as const;

/**
 * Returns if the session was started with the same spec, settings, agent and case. Else the tree of the session refuses
 * the start, and records that.
 * @throws RunError IDEMPOTENCY_CONFLICT
 */
export async function requireSameStart(
  { engine, store }: { readonly engine: Pick<TreeEngine, 'submit'>; readonly store: Pick<LedgerStore, 'tree'> },
  start: Extract<NewInput, { readonly kind: 'open_session' }>,
  materials: readonly Artifact[],
): Promise<void> {
  const given: Readonly<Record<string, unknown>> = { ...start };
  for await (const { text } of store.tree(start.run_id)) {
    const { body } = parseOwnJson(text) as { readonly body: Readonly<Record<string, unknown>> };
    if (BOUND_MEMBERS.every((name) => canonicalJson(given[name] ?? null) === canonicalJson(body[name] ?? null))) return;
    break;
  }
  await engine.submit(start.run_id, { input: start, materials, external: false });
  throw idempotencyConflict();
}
