// Ledgers of random runs as rows, and the data that a verifier gets of them.

import type { Artifact } from '../../src/core/contract/artifact-ref.js';
import { type JsonObject, canonicalJson } from '../../src/core/contract/json.js';
import { NO_PREV } from '../../src/core/contract/run/entry.js';
import type { LedgerProblem } from '../../src/core/ledger/verification/ledger-problem.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../src/core/ledger/proof/merkle.js';
import { verifyLedger } from '../../src/core/ledger/verification/verify-ledger.js';
import type { EntryPlace, LogHead } from '../../src/engine/ports/ledger/ledger-store.js';
import { ReplayCheck } from '../../src/kernel/replay/check-replay.js';
import { randomTree } from '../fixtures/random-tree.js';

export interface Row {
  readonly tree_id: string;
  readonly seq: number;
  readonly type: string;
  readonly text: string;
  readonly leaf_hash: string;
  readonly artifacts: readonly Artifact[];
}

export interface Ledger {
  readonly rows: readonly Row[];
  readonly head: LogHead;
  readonly externalHeadStore: LogHead;
}

/** A random run tree, and a small one whose entries alternate with it in the log. */
export function randomLedger(seed: number, inputs = 1 + (seed % 4)): Ledger {
  const trees = [randomTree(seed, { inputs }), randomTree(seed + 500_000, { inputs: 0, close: false })];
  const turns = trees.map(({ decisions }) =>
    decisions.map(({ entries, artifacts }) =>
      entries.map(({ entry: { tree_id, seq, type }, text, leaf_hash }, at): Row => {
        return { tree_id, seq, type, text, leaf_hash, artifacts: at === 0 ? artifacts : [] };
      }),
    ),
  );
  const [large = [], small = []] = turns;
  const rows = large.flatMap((turn, at) => [...turn, ...(small[at] ?? [])]);
  const head = headOf(rows);
  return { rows, head, externalHeadStore: head };
}

export const headOf = (rows: readonly Row[]): LogHead =>
  extendHead(
    EMPTY_HEAD,
    rows.map(({ leaf_hash }) => leaf_hash),
  );

/** Corrects the chains of the trees, as an attacker who knows the format does: seq, place, prev, hash. */
export function rechained(rows: readonly Row[]): readonly Row[] {
  const ends = new Map<string, { readonly seq: number; readonly hash: string }>();
  return rows.map((row) => {
    const entry = JSON.parse(row.text) as { body: JsonObject; prev: string; seq: number; type: string };
    const { seq, hash } = ends.get(row.tree_id) ?? { seq: 0, hash: NO_PREV };
    let changed = row;
    if (entry.seq !== seq || entry.prev !== hash) {
      const place = { event_id: `${row.tree_id}:${seq}`, sequence: seq };
      const body = entry.type === 'audit_event' ? { ...entry.body, ...place } : entry.body;
      const text = canonicalJson({ ...entry, body, prev: hash, seq });
      changed = { ...row, seq, text, leaf_hash: leafHash(text) };
    }
    ends.set(row.tree_id, { seq: seq + 1, hash: changed.leaf_hash });
    return changed;
  });
}

/* eslint-disable @typescript-eslint/require-await -- a store reads from elsewhere, this one has it all */
/** The complete result of verifying a ledger. */
export async function problemsOf({ rows, head, externalHeadStore }: Ledger): Promise<readonly LedgerProblem[]> {
  const stored = rows.map((row, log_index) => ({ ...row, log_index }));
  const store = {
    async *log() {
      yield* stored;
    },
    async *tree(tree_id: string) {
      yield* stored.filter((row) => row.tree_id === tree_id);
    },
    artifactsOf: async ({ log_index }: EntryPlace) => stored[log_index ?? -1]?.artifacts ?? [],
    head: async () => head,
  };
  const verdict = await verifyLedger({ ...store, externalHead: externalHeadStore, replay: new ReplayCheck(store) });
  return verdict.ok ? [] : verdict.problems;
}
/* eslint-enable @typescript-eslint/require-await */
