// What the services of a ledger have registered, as their run trees pin it. A process without these services needs it
// to check a policy that names their tools, tables and actions.

import { NO_REGISTRATIONS, parseRegistrations, type Registrations } from '../../core/contract/policy/catalogue.js';
import { isWithheld } from '../../core/contract/artifact-ref.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { scanJson } from '../../core/contract/json.js';

/** Newest entries among which run trees are looked for, and how many of those are read. */
const ENTRIES_READ = 65_536;
const TREES_READ = 64;
const DEFINITIONS_DEPTH_MAX = 64;

/**
 * The registrations of the newest run tree that has any; none if no such tree is among the newest.
 * @throws LedgerError
 */
export async function registrationsInLedger(
  store: Pick<LedgerStore, 'head' | 'trees' | 'artifactsOf' | 'archives'>,
): Promise<Registrations> {
  const { size } = await store.head();
  const archived = (await store.archives.parts()).at(-1)?.size ?? 0;
  const trees: string[] = [];
  for await (const { tree_id, log_index } of store.trees({ from: Math.max(archived, size - ENTRIES_READ) })) {
    // A tree that is not in the log yet is among the newest too.
    if (log_index === null || log_index >= archived) trees.push(tree_id);
    if (trees.length > TREES_READ) trees.shift();
  }
  for (const tree_id of trees.toReversed()) {
    const registrations = await registrationsOf(store, tree_id);
    if (!isEmpty(registrations)) return registrations;
  }
  return NO_REGISTRATIONS;
}

async function registrationsOf(store: Pick<LedgerStore, 'artifactsOf'>, tree_id: string): Promise<Registrations> {
  const artifacts = await store.artifactsOf({ tree_id, seq: 0 });
  const definitions = artifacts.find((artifact) => artifact.kind === 'machines');
  if (definitions === undefined || isWithheld(definitions)) return NO_REGISTRATIONS;
  const scanned = scanJson(Buffer.from(definitions.bytes).toString('utf8'), DEFINITIONS_DEPTH_MAX);
  return (scanned.ok ? parseRegistrations(scanned.value) : null) ?? NO_REGISTRATIONS;
}

const isEmpty = ({ actions, tools, targets }: Registrations): boolean =>
  actions.length + tools.length + targets.length === 0;
