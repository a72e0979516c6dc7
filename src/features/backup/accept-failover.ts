// Accepts a shared ledger that has lost its newest entries, because an asynchronous standby took over (decision 0044):
// records what was lost, and suspends all effects as a restore does.
//
//   Y1. The record is committed before a head is put aside. So a killed command is repeated, and nothing goes on
//       without the record.
//   Y2. The heads of the lost log stay next to those that continue, as evidence.
//   Y3. Policy can deny it. It cannot wait for votes, because no worker takes any until the loss is recorded. The
//       record lets nothing happen, so the votes are asked for where effects would run again: at the acknowledgement.

import { rename } from 'node:fs/promises';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';
import { headFile } from '../../stores/ledger/head-file.js';
import { putAsideHeads } from '../../stores/ledger/kept-heads.js';
import { signedMemoryHeadStore } from '../../stores/memory/memory-head-store.js';
import { LedgerError, RunError, usageError } from '../../core/errors.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { HeadSeal, LedgerStore, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import type { HomePaths } from '../../home/home-paths.js';
import { firstKeyOf, headTableOf, openSharedHead } from '../../home/home.js';
import { createHeadSeal, readHomeHistory, readLedgerSigner } from '../../home/ledger-key.js';
import { executeGoverned, type Operator } from '../../runtime/operator-acts.js';
import {
  findFailover,
  recordRestore,
  type DecisionParts,
  type RecordedFailover,
  type RestoredLedger,
} from './record-restore.js';

type Head = Pick<LogHead, 'size' | 'root'>;

export interface AcceptFailoverOptions {
  /** Opened alone: no other worker writes. Closed by the caller. */
  readonly store: LedgerStore;
  /** The home of this worker, whose local state is locked. */
  readonly paths: HomePaths;
  readonly policies: PolicySource;
  /** Policy decides as about a restore. Where people have to approve it, they approve its acknowledgement. */
  readonly operator: Operator;
  readonly ids: Ids;
  readonly log: Log;
}

/** What was lost. */
export interface AcceptedFailover extends RecordedFailover {
  /** False if an earlier call has recorded the loss: this one only let this worker continue. */
  readonly isNew: boolean;
  /** The rows and files with heads of the lost log. */
  readonly evidence: readonly string[];
}

/** @throws UsageError if nothing was lost; LedgerError */
export async function acceptFailover(options: AcceptFailoverOptions): Promise<AcceptedFailover> {
  const { store, paths } = options;
  const signer = readLedgerSigner(paths.ledgerKey);
  if (signer === null) throw usageError(`${paths.keys} has no ledger key: mount the key folder of the ledger`);
  const { externalHeadStore } = openSharedHead(store, paths, paths, { readOnly: false });
  const kept = await externalHeadStore.read();
  await externalHeadStore.close();
  // The key history vouches for a head too: the last one before each rotation of the key.
  const vouched = readHomeHistory(paths.ledgerKey)?.rotations.at(-1)?.head ?? null;
  const lost = await largestLost(store, [kept, vouched]);
  if (lost === null)
    throw usageError(
      'the database has every entry that the kept heads and the key history vouch for: nothing was lost',
    );
  const known = await findFailover(store, lost);
  const recorded = known ?? (await record(options, { size: lost.size, root: lost.root }));
  const evidence = await putAside(options, `lost-${recorded.lineage}`, createHeadSeal(signer, paths.ledgerKey));
  const { size, root } = await store.head();
  const next = openSharedHead(store, paths, paths, { readOnly: false }).externalHeadStore;
  await next.write({ size, root });
  await next.close();
  return { ...recorded, isNew: known === null, evidence };
}

async function largestLost(store: LedgerStore, heads: readonly (Head | null)[]): Promise<Head | null> {
  let largest: Head | null = null;
  for (const head of heads) {
    if (head === null || (largest !== null && head.size <= largest.size)) continue;
    if (!(await contains(store, head))) largest = head;
  }
  return largest;
}

async function contains(store: LedgerStore, head: Head): Promise<boolean> {
  try {
    await checkExternalHead(store, { read: () => Promise.resolve(head) });
    return true;
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_BELOW_HEAD') return false;
    throw error;
  }
}

async function record(
  { store, paths, policies, operator, ids, log }: AcceptFailoverOptions,
  lost: Head,
): Promise<RecordedFailover> {
  const { size, root } = await store.head();
  const kept = { size, root };
  const signer = readLedgerSigner(paths.ledgerKey);
  // The heads of the lost log must not be compared here.
  const externalHeadStore = signedMemoryHeadStore(
    kept,
    signer === null ? null : createHeadSeal(signer, paths.ledgerKey),
  );
  const facts = { kept, lost, backup_sha256: null, actor: operator.actor, erased: [] };
  const decide: RestoredLedger['decide'] = (submit, parts) =>
    decideLoss(operator, { kept, lost }, submit, { ...parts, ids });
  const { tree_id, lineage } = await recordRestore(
    { store, externalHeadStore, policies, log, keys: paths, decide },
    facts,
  );
  return { tree_id, lineage, kept, lost };
}

/**
 * Y3. @throws RunError ACT_DENIED: nothing is recorded but the request, and the workers go on refusing the database
 */
async function decideLoss(
  operator: Operator,
  { kept, lost }: { readonly kept: Head; readonly lost: Head },
  submit: () => Promise<string>,
  parts: DecisionParts & { readonly ids: Ids },
): Promise<string> {
  const details = { failover: { kept: { ...kept }, lost: { ...lost } } };
  const request = { action: 'RESTORE_LEDGER', cases: [], details } as const;
  try {
    return await executeGoverned(parts, operator, request, submit);
  } catch (error) {
    if (!(error instanceof RunError) || error.code !== 'APPROVAL_PENDING') throw error;
    return submit();
  }
}

/** Y2. */
async function putAside(
  { store, paths }: AcceptFailoverOptions,
  end: string,
  seal: HeadSeal,
): Promise<readonly string[]> {
  const { head, heads, state } = paths;
  const isContained = (one: Head): Promise<boolean> => contains(store, one);
  const rows = await headTableOf(store)?.putAside(firstKeyOf(paths) ?? '', end, seal, isContained);
  const moved = [...(rows ?? []), ...(await putAsideHeads(heads, end, seal, isContained))];
  const own = await headFile(head, seal).read();
  if (own !== null && !(await contains(store, own))) {
    await rename(head, `${head}.${end}`);
    await fsyncDirectory(state);
    moved.push(`${head}.${end}`);
  }
  return moved;
}
