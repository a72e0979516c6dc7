// Counts what the pinned policies decided between two checkpoints of a log, and signs the result. The store is not
// trusted: the entries that are counted must lead to the roots of both checkpoints.

import { canonicalJson } from '../../core/contract/json.js';
import { COVERAGE_TYPE, type CoverageStatement } from '../../core/contract/evidence/coverage-proof.js';
import { STATEMENT_TYPE } from '../../core/contract/evidence/evidence.js';
import { usageError } from '../../core/errors.js';
import { signCheckpoint } from '../../core/ledger/proof/checkpoint.js';
import { signStatement } from '../../core/ledger/proof/dsse.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';
import { appendLeaf, EMPTY_HEAD, leafHash, rootOf } from '../../core/ledger/proof/merkle.js';
import { PROOF_BYTES_MAX } from '../../runtime/ledger/proof-file.js';
import type { NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { coverageOf, type Coverage } from './policy-coverage.js';
import { mismatchError, proveExtension } from '../../runtime/ledger/ledger-proofs.js';
import type { JoinedLog } from '../../runtime/ledger/joined-log.js';

type Head = Pick<LogHead, 'size' | 'root'>;

/** A signed checkpoint of the log. */
export interface NotedHead extends Head {
  readonly note: string;
}

export interface MeasuredCoverage extends Coverage {
  /** The consistency proof from the earlier to the later checkpoint. */
  readonly proof: readonly string[];
}

/**
 * Counts between two heads of a log.
 * @param from null counts from the first entry
 * @throws LedgerError LEDGER_TAMPERED if the log does not lead to both heads; LEDGER_ARCHIVED if it begins after `from`
 */
export async function measureCoverage(log: JoinedLog, from: Head | null, to: Head): Promise<MeasuredCoverage> {
  const older = from ?? EMPTY_HEAD;
  const proof = await proveExtension(log, older, to);
  const source = { ...log, log: () => readChecked(log, to) };
  return { ...(await coverageOf(source, { from: older.size, to: to.size })), proof };
}

/** The entries up to a head. @throws LedgerError after the last one unless they lead to its root */
async function* readChecked({ begin, log }: JoinedLog, to: Head): AsyncIterable<StoredEntry> {
  let { size, frontier } = begin;
  for await (const entry of log(begin.size)) {
    if (size === to.size) break;
    frontier = appendLeaf(frontier, size, leafHash(entry.text));
    size += 1;
    if (size === to.size && rootOf(frontier) !== to.root) throw mismatchError();
    yield entry;
  }
  if (size < to.size) throw mismatchError();
}

/** @throws UsageError for a statement that is too long to be verified */
export function signCoverage(
  { from, to }: { readonly from: NotedHead | null; readonly to: Head },
  { proof, not_recomputed, policies }: MeasuredCoverage,
  signer: NoteSigner,
): string {
  const statement: CoverageStatement = {
    _type: STATEMENT_TYPE,
    subject: [{ name: signer.name, digest: { sha256: to.root } }],
    predicateType: COVERAGE_TYPE,
    predicate: {
      key: signer.vkey,
      ...keyNotesOf(signer),
      from: from?.note ?? null,
      // Signed again, because a rotation may have replaced the key of the checkpoint.
      to: signCheckpoint(to, signer),
      proof: [...proof],
      not_recomputed,
      policies: [...policies],
    },
  };
  const text = `${JSON.stringify(signStatement(canonicalJson(statement), signer))}\n`;
  if (text.length <= PROOF_BYTES_MAX) return text;
  throw usageError('the policies have more elements than one statement can list: choose a shorter range');
}
