import { parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import type { Artifact } from '../../core/contract/artifact-ref.js';
import type { OpenSessionInput } from './contract/session-input.js';
import type { NewInput, TreeEngine } from '../../engine/tree-engine.js';
import { idempotencyConflict } from '../../core/errors.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';

/**
 * What an idempotency key of a start is not bound to: what each request and each process has of its own, and the
 * caller. Every other member is bound.
 */
const UNBOUND_MEMBERS: ReadonlySet<string> = new Set<keyof OpenSessionInput>([
  ...(['input_id', 'time', 'kind', 'run_id', 'by'] as const),
  // Policy and program may have changed since. The scope has the hashes of its notes.
  ...(['policies', 'machines', 'notes'] as const),
]);

/** The names that policy has for the person are not compared: policy may have changed since. */
function boundText(start: Readonly<Record<string, unknown>>, unbound: ReadonlySet<string>): string {
  const agent = start['agent'];
  const { person, ...named } = (agent ?? {}) as { readonly person?: { readonly canonical_id?: string } };
  const members = Object.entries(start).filter(([name]) => !unbound.has(name));
  return canonicalJson([{ ...Object.fromEntries(members), agent: named }, person?.canonical_id ?? null]);
}

/**
 * Returns if the session was started with the same members. Else the tree of the session
 * refuses the start, and records that.
 * @throws RunError IDEMPOTENCY_CONFLICT
 */
export async function requireSameStart(
  { engine, store }: { readonly engine: Pick<TreeEngine, 'submit'>; readonly store: Pick<LedgerStore, 'tree'> },
  start: Extract<NewInput, { readonly kind: 'open_session' }>,
  materials: readonly Artifact[],
  /** Absent: the correlation id of the start was drawn. */
  correlation: string | undefined,
): Promise<void> {
  const unbound = correlation === undefined ? new Set([...UNBOUND_MEMBERS, 'correlation_id']) : UNBOUND_MEMBERS;
  for await (const { text } of store.tree(start.run_id)) {
    const { body } = parseOwnJson(text) as { readonly body: Readonly<Record<string, unknown>> };
    // An earlier version may have recorded fewer members.
    const given = Object.fromEntries(Object.entries(start).filter(([name]) => name in body));
    if (boundText(given, unbound) === boundText(body, unbound)) return;
    break;
  }
  await engine.submit(start.run_id, { input: start, materials, rememberInputId: false });
  throw idempotencyConflict();
}
