import { parseOwnJson } from '../../contract/json/own-json.js';
import type { Artifact } from '../../contract/artifact-ref.js';
import { canonicalJson } from '../../contract/canonical-json.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { idempotencyConflict } from '../../errors.js';
import type { LedgerStore } from '../../ports/ledger/ledger-store.js';

/** What an idempotency key of a start is bound to. */
const BOUND_MEMBERS = ['spec', 'settings', 'case_id', 'scope'] as const;

/** The names that policy has for the person are not compared: policy may have changed since. */
function boundText(start: Readonly<Record<string, unknown>>): string {
  const agent = start['agent'];
  const { person, ...named } = (agent ?? {}) as { readonly person?: { readonly canonical_id?: string } };
  const members = BOUND_MEMBERS.map((name) => start[name] ?? null);
  return canonicalJson([...members, named, person?.canonical_id ?? null]);
}

/**
 * Returns if the session was started with the same spec, settings, agent, case and scope. Else the tree of the session
 * refuses the start, and records that.
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
    if (boundText(given) === boundText(body)) return;
    break;
  }
  await engine.submit(start.run_id, { input: start, materials, external: false });
  throw idempotencyConflict();
}
