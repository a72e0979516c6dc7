import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/contract/json.js';
import {
  EVIDENCE_FORMAT,
  STATEMENT_BYTES_MAX,
  type EvidenceEntry,
  type EvidenceHeader,
} from '../../core/contract/evidence/evidence.js';
import { isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { UsageError, usageError } from '../../core/errors.js';
import { signCheckpoint } from '../../core/ledger/proof/checkpoint.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';
import { signStatement } from '../../core/ledger/proof/dsse.js';
import type { NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { ExternalHead, LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { EvidenceSummary, type EvidenceCounts } from '../../runtime/ledger/evidence-summary.js';
import { parseStoredEntry, isRunEntry } from '../../runtime/ledger/stored-entry.js';

/**
 * Writes the evidence bundle of a ledger line by line, from the first entry that is not archived to the end of its
 * signed checkpoint. Memory: one entry with its content, and the records of the runs.
 */
export async function writeEvidence(
  store: Pick<LedgerStore, 'log' | 'artifactsOf' | 'archives'>,
  head: Pick<ExternalHead, 'size' | 'root'>,
  signer: NoteSigner,
  write: (line: string) => Promise<void>,
): Promise<EvidenceCounts> {
  const content = createHash('sha256');
  const writeValue = async (value: object): Promise<void> => {
    const line = `${JSON.stringify(value)}\n`;
    content.update(line);
    await write(line);
  };
  const summary = new EvidenceSummary();
  const from = (await store.archives.parts()).at(-1);
  // Signed again, because a rotation may have replaced the key of the checkpoint; otherwise the bytes are the same.
  const signed = { format: EVIDENCE_FORMAT, key: signer.vkey, checkpoint: signCheckpoint(head, signer) } as const;
  const header: EvidenceHeader = { ...signed, ...keyNotesOf(signer) };
  await writeValue(from === undefined ? header : { ...header, from: { size: from.size, frontier: from.frontier } });
  if (head.size > (from?.size ?? 0)) {
    for await (const stored of store.log(from?.size ?? 0)) {
      const artifacts = await store.artifactsOf(stored);
      summary.add(isRunEntry(stored) ? parseStoredEntry(stored) : null, artifacts);
      await writeValue({ entry: stored.text, artifacts: artifacts.map(lineOf) } satisfies EvidenceEntry);
      if (stored.log_index === head.size - 1) break;
    }
  }
  const statement = summary.statement(signer.name, head.root, content.digest('hex'));
  const last = `${JSON.stringify(signStatement(canonicalJson(statement), signer))}\n`;
  if (last.length > STATEMENT_BYTES_MAX) throw tooManyRunsError();
  await write(last);
  return summary.counts;
}

function lineOf(artifact: StoredArtifact): EvidenceEntry['artifacts'][number] {
  if (isWithheld(artifact)) return artifact;
  const { kind, case_id, bytes } = artifact;
  return { kind, case_id, content: Buffer.from(bytes).toString('base64') };
}

const tooManyRunsError = (): UsageError =>
  usageError(
    'the ledger has more runs than one bundle can list: archive its beginning first (`ledger archive --before`)',
  );
