// Everything that a ledger has, in a form that is the same for every store.

import { canonicalJson } from '../../../../src/core/contract/json.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import { withholdByLanes } from '../../../../src/runtime/content/lane-withholding.js';
import { writeEvidence } from '../../../../src/features/evidence/write-evidence.js';
import { openHead } from '../../../../src/home/home.js';
import { readLedgerSigner } from '../../../../src/home/ledger-key.js';
import { LedgerReader } from '../../../../src/runtime/ledger/ledger-reader.js';
import { requireSignedHead } from '../../../../src/runtime/ledger/ledger-proofs.js';
import { openCopy } from '../../../../src/features/backup/copy/copy-target.js';
import type { LedgerLocation } from '../../../../src/home/ledger-location.js';
import type { LedgerStore } from '../../../../src/engine/ports/ledger/ledger-store.js';

/** What a store returns, as text. Recovery hints of unfinished trees may name timers in one store only. */
export interface LedgerDump {
  readonly head: string;
  readonly entries: readonly string[];
  readonly trees: readonly string[];
  readonly open: readonly string[];
  readonly records: readonly string[];
  readonly unrecorded: readonly string[];
  readonly marks: string;
  readonly verdict: string;
  readonly replay: string;
  readonly bundle: string;
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

export async function dumpLedger(location: LedgerLocation): Promise<LedgerDump> {
  const store = await openCopy(location);
  const { externalHeadStore } = openHead(location.paths, { readOnly: true });
  try {
    const reader = new LedgerReader(store, externalHeadStore);
    return {
      head: canonicalJson(await store.head()),
      entries: await all(entriesWithContent(store)),
      trees: (await all(store.trees())).map((tree) => canonicalJson(tree)),
      open: (await all(store.openTrees())).map(({ tree_id, unfinished, wake_at }) =>
        canonicalJson([tree_id, unfinished, unfinished ? null : wake_at]),
      ),
      records: await recordsOf(store),
      unrecorded: (await all(store.runRecords.unrecorded())).map(({ tree_id }) => tree_id),
      marks: await marksOf(store),
      verdict: canonicalJson({ ...(await reader.verify()) }),
      replay: canonicalJson({ ...(await reader.replay()) }),
      bundle: await bundleOf(store, location),
    };
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

async function* entriesWithContent(store: LedgerStore): AsyncGenerator<string> {
  for await (const entry of store.log()) {
    const contents = (await store.artifactsOf(entry)).map((artifact) =>
      'bytes' in artifact ? `${artifact.kind} ${artifact.case_id} ${sha256(artifact.bytes)}` : canonicalJson(artifact),
    );
    yield [entry.log_index, entry.leaf_hash, entry.type, entry.text, ...contents].join('\n');
  }
}

async function recordsOf(store: LedgerStore): Promise<readonly string[]> {
  const records: string[] = [];
  for await (const { tree_id, seq } of store.runRecords.trees()) {
    records.push(`${tree_id} ${seq} ${await store.runRecords.count(tree_id)}`);
    for await (const { text } of store.tree(tree_id)) {
      const { body, type } = JSON.parse(text) as { type: string; body: { run_id?: string } };
      if (type === 'run_created') records.push((await store.runRecords.load(tree_id, body.run_id ?? '')) ?? 'none');
    }
  }
  return records;
}

/** The marks of all inputs and proposals of the log. */
async function marksOf(store: LedgerStore): Promise<string> {
  const keys = [];
  for await (const { tree_id, text, type } of store.log()) {
    const { body } = JSON.parse(text) as { body: Readonly<Record<string, unknown>> };
    if (type === 'input') keys.push({ tree_id, input_id: String(body['input_id']) });
    if (typeof body['proposal_id'] === 'string') keys.push({ root_run_id: tree_id, proposal_id: body['proposal_id'] });
  }
  const marks = [];
  for (const key of keys) marks.push(...(await store.marks([key])));
  return canonicalJson(marks.map((mark) => (mark === null ? null : { ...mark })));
}

async function bundleOf(store: LedgerStore, { paths }: LedgerLocation): Promise<string> {
  const { externalHeadStore } = openHead(paths, { readOnly: true });
  const head = requireSignedHead(await externalHeadStore.read());
  await externalHeadStore.close();
  const signer = readLedgerSigner(paths.ledgerKey);
  if (signer === null) throw new Error('the ledger has no key');
  const lines: string[] = [];
  await writeEvidence(withholdByLanes(store), head, signer, (line) => Promise.resolve(void lines.push(line)));
  return lines.join('');
}
