// Joins a log and the archives of its beginning to one log, to verify or prove across both. Findings here are about the
// archive files. Verification checks their entries like all others.

import { nameInLedger } from '../../core/contract/entry-name.js';
import type { LedgerFinding } from '../../core/ledger/verification/ledger-problem.js';
import type { IntegratedLog } from './integrated-log.js';
import { EMPTY_HEAD } from '../../core/ledger/proof/merkle.js';
import type { ArchivedPart } from '../../core/ledger/readable-ledger.js';
import type { LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { EvidenceBundle } from './evidence-bundle.js';

/** An opened archive file, with the key of the ledger. */
export interface OpenedArchive {
  /** As the operator typed it. */
  readonly name: string;
  /** Of the whole file. */
  readonly sha256: string;
  readonly evidence: EvidenceBundle;
}

export interface JoinedLog extends IntegratedLog {
  /** Where it begins: at the first entry of the log, or at the first available archive. */
  readonly begin: LogHead;
}

/** The archives in the order of their entries. */
export const sortArchives = (archives: readonly OpenedArchive[]): readonly OpenedArchive[] =>
  [...archives].sort(({ evidence: left }, { evidence: right }) => left.begin.size - right.begin.size);

/**
 * Compares archives with one another and with the archived parts that the store records. Each must continue the one
 * before it, the last one must end where the store begins, and each must be the very file that was written.
 */
export async function* checkArchiveChain(
  archives: readonly OpenedArchive[],
  parts: readonly ArchivedPart[],
): AsyncIterable<LedgerFinding> {
  let end: LogHead | null = null;
  for (const { name, sha256, evidence } of archives) {
    const { begin } = evidence;
    const head = await evidence.head();
    const part = parts.find(({ size }) => size === head.size);
    if (part?.sha256 !== sha256 || part.root !== head.root) {
      yield { rule: 'archive.differs', message: `${name} is not the file that the first ${head.size} entries went to` };
    }
    const before = end ?? headAt(begin.size, parts);
    if (before.size !== begin.size) yield missingFinding(before.size, begin.size);
    else if (before.root !== begin.root) {
      yield {
        rule: 'archive.differs',
        message: `${name} does not go on from what comes before entry ${nameInLedger(begin.size)}`,
      };
    }
    end = head;
  }
  const last = parts.at(-1)?.size ?? 0;
  if (end !== null && end.size !== last) yield missingFinding(end.size, last);
}

/** What precedes the first available archive: nothing, or the end of another archive. */
const headAt = (size: number, parts: readonly ArchivedPart[]): LogHead =>
  parts.find((part) => part.size === size) ?? EMPTY_HEAD;

const missingFinding = (from: number, to: number): LedgerFinding => ({
  rule: 'archive.missing',
  message:
    from < to
      ? `entries ${nameInLedger(from)} to ${nameInLedger(to - 1)} are archived, and in none of these files`
      : `entries ${nameInLedger(to)} to ${nameInLedger(from - 1)} are in more than one place`,
});

/** One log of archives, whose chain has no findings, and the entries that the store still has. */
export function joinLogs(archives: readonly OpenedArchive[], store: IntegratedLog, archived: LogHead): JoinedLog {
  const bundles = archives.map(({ evidence }) => evidence);
  const [first] = bundles;
  const begin = first?.begin ?? archived;
  const ends = bundles.map(({ checkpoint }) => checkpoint.size);
  return {
    begin,
    async *log(from = begin.size) {
      for (const [at, bundle] of bundles.entries()) {
        if (from < (ends[at] ?? 0)) yield* bundle.log(Math.max(from, bundle.begin.size));
      }
      yield* store.log(Math.max(from, archived.size));
    },
    async *tree(tree_id, fromSeq) {
      for (const bundle of bundles) {
        if (!bundle.hasTree(tree_id)) continue;
        yield* bundle.tree(tree_id, fromSeq);
        return;
      }
      yield* store.tree(tree_id, fromSeq);
    },
    artifactsOf: (place) => {
      const { tree_id, log_index = null } = place;
      // An archive contains only whole trees.
      const hasEntry = (bundle: EvidenceBundle, at: number) =>
        log_index === null ? bundle.hasTree(tree_id) : log_index < (ends[at] ?? 0);
      return (bundles.find(hasEntry) ?? store).artifactsOf(place);
    },
  };
}
