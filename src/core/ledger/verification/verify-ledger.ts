// Verification trusts nothing from the store: it reads the whole log once, recomputes everything from texts and
// contents, and compares. It reports each problem by entry and continues after it, up to a limit.

import { loadFeaturesNamedIn } from '../../contract/run/feature-vocabulary.js';
import { isWithheld, type StoredArtifact } from '../../contract/artifact-ref.js';
import type { Entry } from '../../contract/run/entry.js';
import { LedgerError } from '../../errors.js';
import type { ArchivedPart } from '../readable-ledger.js';
import type { KeySource, ReadableLedger, LogHead, StoredEntry } from '../readable-ledger.js';
import { checkEntryArtifacts } from './check-entry-artifacts.js';
import { checkArchivedParts, type NoteOpener } from './check-archives.js';
import { checkEntry, type CheckedEntry } from './check-entry.js';
import { KeyCheck } from './check-keys.js';
import { MarkCheck, type MarkSource } from './check-marks.js';
import { OrderCheck } from './check-order.js';
import { RecordCheck, type RecordSource } from './check-records.js';
import { TreeCheck, type TreeListSource } from './check-trees.js';
import { RunCheck } from './check-runs.js';
import {
  problemOf,
  WHOLE_LOG,
  type LedgerFinding,
  type LedgerProblem,
  type ProblemPlace,
  type PlacedFinding,
} from './ledger-problem.js';
import { appendLeaf, EMPTY_HEAD, findFirstDifference, rootOf } from '../proof/merkle.js';
import {
  refusedVerdict,
  type LedgerVerdict,
  type UnsupportedTree,
  type VerifiedEntries,
  type WithheldSummary,
} from './ledger-verdict.js';
import { WithheldContents } from './withheld-contents.js';

export const PROBLEMS_MAX = 100;

/** A ledger as verification reads it, and the head stored outside of it, or null. */
export interface LedgerSource extends Pick<ReadableLedger, 'log' | 'artifactsOf' | 'head'> {
  /** The marks stored outside the log; if absent, marks are not checked. */
  readonly marks?: MarkSource;
  /** The store's list of trees; if absent, it is not checked. */
  readonly trees?: TreeListSource;
  /** The stored run records; if absent, they are not checked. */
  readonly records?: RecordSource;
  /** Folds the trees through the machines; if absent, only the entries themselves are checked. */
  readonly replay?: TreeReplay;
  readonly externalHead: Pick<LogHead, 'size' | 'root'> | null;
  /** The head where the log begins; if absent, the log begins with its first entry. */
  readonly begin?: LogHead;
  /** The key history; if absent, it is not compared. */
  readonly keys?: () => KeySource | null;
  /**
   * The archived parts of the log, whether or not `log` returns their entries, and the function that opens their notes.
   */
  readonly archives?: { readonly parts: readonly ArchivedPart[]; readonly openNote: NoteOpener };
}

/** Compares each tree with what the machines produce. Takes the entries of a log in order. */
export interface TreeReplay {
  /**
   * @param whole false if something is wrong with this entry, or with an earlier one of its tree: the replay then
   * reports nothing more about the tree, except what an earlier entry has already started
   */
  take(stored: StoredEntry, artifacts: readonly StoredArtifact[], whole: boolean): Promise<readonly PlacedFinding[]>;
  finish(): Iterable<PlacedFinding>;
  /** Trees that could be folded only partly. */
  readonly not_recomputed: number;
  /** Those of them that this installation cannot evaluate. */
  readonly unsupported: readonly UnsupportedTree[];
}

export interface VerifyOptions {
  readonly problems_max?: number;
  /** Whether runs must have all entries that S4 §6 requires; false for entries that belong to no run. */
  readonly complete?: boolean;
}

/**
 * Reads the whole ledger and decides whether it is what was once committed (S4-86, D15), and whether it has everything
 * that S4 §6 requires.
 *
 * It checks each entry against its own text and hash, the previous entry of its tree, the schema of its body, and its
 * content. An input must have all the content that it refers to, and a step must have the marks for its ids. Each run
 * must have the entries that S4 §6 requires, and the machines must produce every tree again. Stored run records must
 * match the entries. The log must match the store's head and the external head. Entries that are committed during
 * verification do no harm. Memory grows with the number of trees and of live runs.
 *
 * @returns the problems in log order, at most `problems_max`; beyond that limit the rest is not read
 * @throws LedgerError LEDGER_UNAVAILABLE if the ledger could not be read, which implies nothing about its content
 */
export async function verifyLedger(
  source: LedgerSource,
  { problems_max = PROBLEMS_MAX, complete = true }: VerifyOptions = {},
): Promise<LedgerVerdict> {
  const found: PlacedFinding[] = [];
  const report = (findings: Iterable<PlacedFinding>): void => {
    for (const finding of findings) found.push(finding);
  };
  const checks = new LedgerChecks(source, complete);
  const { begin = EMPTY_HEAD, archives = { parts: [], openNote: null } } = source;
  let log: ComputedLog = begin;
  const checkHeadsAt = (head: LogHead) => {
    checks.keys?.takeHead(log);
    return placeFindings(WHOLE_LOG, [
      ...checkHeads(log, head, source.externalHead),
      ...checkParts(log, archives.parts),
    ]);
  };
  try {
    // Read this before the log, so that entries committed meanwhile come after it.
    const head = await source.head();
    report(placeFindings(WHOLE_LOG, await checks.begin()));
    report(placeFindings(WHOLE_LOG, checkArchivedParts(archives.parts, archives.openNote)));
    report(checkHeadsAt(head));
    for await (const stored of source.log(begin.size)) {
      await loadFeaturesNamedIn(stored.text);
      const checked = checkEntry(stored);
      report(await checks.take(stored, checked));
      log = { size: log.size + 1, frontier: appendLeaf(log.frontier, log.size, checked.leaf_hash) };
      report(checkHeadsAt(head));
      if (found.length >= problems_max) break;
    }
    if (found.length < problems_max) {
      report(await checkEnd(log, head, source));
      report(checks.finish());
      report(await checks.finishRecords(log.size));
      report(await checks.checkListedTrees(begin.size, log.size));
    }
  } catch (error) {
    const place = { ...WHOLE_LOG, log_index: checks.next };
    report(placeFindings(place, [{ rule: 'log.unreadable', message: tamperingMessage(error) }]));
    report(checks.finish());
    report(await checks.finishRecords(log.size));
  }
  if (found.length > 0) return refusedVerdict(sortProblems(found).slice(0, problems_max));
  const verified: VerifiedEntries = {
    entries: log.size - begin.size,
    trees: checks.trees,
    root: rootOf(log.frontier),
    ...(begin.size > 0 ? { archived: begin.size } : {}),
  };
  const withheld = checks.withheld ?? (begin.size > 0 ? NO_CONTENTS : null);
  return withheld === null
    ? { ok: true, verdict: 'verified', ...verified }
    : { ok: false, verdict: 'by_hash_alone', ...verified, withheld, problems: [] };
}

/** Archived entries are missing with their content: they are counted, and no content is listed. */
const NO_CONTENTS: WithheldSummary = { contents: 0, trees: 0, not_checked: [] };

/** Problems of the log as a whole come last. */
const sortProblems = (found: readonly PlacedFinding[]): readonly LedgerProblem[] =>
  found.map(problemOf).sort((one, other) => (one.log_index ?? Infinity) - (other.log_index ?? Infinity) || 0);

/** All checks that take one entry after the other. */
class LedgerChecks {
  readonly #source: LedgerSource;
  readonly #order: OrderCheck;
  readonly #runs: RunCheck | null;
  readonly #marks: MarkCheck | null;
  readonly #records: RecordCheck | null;
  readonly #trees: TreeCheck | null;
  readonly keys: KeyCheck | null;
  /** Trees with an altered entry: consequences of that entry are not reported. */
  readonly #broken = new Set<string>();
  readonly #withheld = new WithheldContents();

  constructor(source: LedgerSource, complete: boolean) {
    this.#source = source;
    this.#order = new OrderCheck(source.begin?.size);
    this.#runs = complete ? new RunCheck() : null;
    this.#marks = source.marks === undefined ? null : new MarkCheck(source.marks);
    this.#records = source.records === undefined ? null : new RecordCheck(source.records);
    this.#trees = source.trees === undefined ? null : new TreeCheck(source.trees);
    this.keys = source.keys === undefined ? null : new KeyCheck(source.keys);
  }

  get trees(): number {
    return this.#order.trees;
  }

  get next(): number {
    return this.#order.next;
  }

  get withheld(): WithheldSummary | null {
    const { not_recomputed = 0, unsupported = [] } = this.#source.replay ?? {};
    return this.#withheld.report(not_recomputed, unsupported);
  }

  async begin(): Promise<readonly LedgerFinding[]> {
    await this.#trees?.begin();
    return (await this.#records?.begin()) ?? [];
  }

  async take(stored: StoredEntry, checked: CheckedEntry): Promise<readonly PlacedFinding[]> {
    const { log_index, tree_id, seq } = stored;
    const place = { log_index, tree_id, seq };
    const { artifacts, findings } = await this.#checkContent(stored, checked);
    const found: PlacedFinding[] = [
      ...this.#order.take(stored, checked),
      ...placeFindings(place, [...checked.findings, ...findings]),
    ];
    if (found.some(({ place: { tree_id: of } }) => of !== null)) {
      this.#broken.add(tree_id);
      if (checked.envelope !== null) this.#broken.add(checked.envelope.tree_id);
    }
    this.#trees?.take(stored, checked);
    const whole = !this.#broken.has(tree_id);
    if (whole) found.push(...(this.#runs?.take(checked.envelope as Entry, log_index) ?? []));
    if (whole) this.keys?.take(checked.envelope as Entry, log_index);
    found.push(...((await this.#source.replay?.take(stored, artifacts, whole)) ?? []));
    found.push(...placeFindings(place, (await this.#marks?.take(stored, checked)) ?? []));
    found.push(...placeFindings(place, (await this.#records?.take(stored, checked)) ?? []));
    return found;
  }

  *finish(): Iterable<PlacedFinding> {
    yield* this.#runs?.finish((tree_id) => !this.#broken.has(tree_id)) ?? [];
    yield* this.#source.replay?.finish() ?? [];
    yield* this.keys?.finish(this.#source.begin?.size ?? 0) ?? [];
  }

  /** Reports records of entries that the log lacks. The log had `size` entries when the reading ended. */
  async finishRecords(size: number): Promise<readonly PlacedFinding[]> {
    const found: PlacedFinding[] = [];
    if (this.#records === null) return found;
    for await (const { tree_id, ...finding } of this.#records.finish(size))
      found.push({ place: { ...WHOLE_LOG, tree_id }, finding });
    return found;
  }

  /**
   * Reports differences between the list of trees and the log, which had `from` entries when the reading began and
   * `size` when it ended.
   */
  async checkListedTrees(from: number, size: number): Promise<readonly PlacedFinding[]> {
    const found: PlacedFinding[] = [];
    if (this.#trees === null) return found;
    for await (const { tree_id, ...finding } of this.#trees.finish(from, size)) {
      if (!this.#broken.has(tree_id)) found.push({ place: { ...WHOLE_LOG, tree_id }, finding });
    }
    return found;
  }

  async #checkContent(stored: StoredEntry, { envelope }: CheckedEntry) {
    if (envelope === null) return { artifacts: [], findings: [] };
    try {
      const artifacts: readonly StoredArtifact[] = await this.#source.artifactsOf(stored);
      const system = artifacts.filter(isWithheld).flatMap((artifact) => this.#withheld.add(stored, artifact));
      return { artifacts, findings: [...system, ...checkEntryArtifacts(envelope.type, envelope.body, artifacts)] };
    } catch (error) {
      const finding: LedgerFinding = { rule: 'artifact.unreadable', message: tamperingMessage(error) };
      return { artifacts: [], findings: [finding] };
    }
  }
}

/** The part of the log that was read, computed from the texts. */
type ComputedLog = Pick<LogHead, 'size' | 'frontier'>;

function* placeFindings(place: ProblemPlace, findings: Iterable<LedgerFinding>): Iterable<PlacedFinding> {
  for (const finding of findings) yield { place, finding };
}

/** Compares the computed log with each of the two heads that has exactly its size. */
function* checkHeads(
  { size, frontier }: ComputedLog,
  head: LogHead,
  externalHead: LedgerSource['externalHead'],
): Iterable<LedgerFinding> {
  if (size !== head.size && size !== externalHead?.size) return;
  const root = rootOf(frontier);
  if (size === head.size && (root !== head.root || frontier.join() !== head.frontier.join())) {
    const range = findFirstDifference(frontier, head);
    const where = range === null ? '' : `: the first entry that is not as it was is one of ${range.join(' to ')}`;
    const message = `at size ${size} the log has root ${root}, not what the stored head says${where}`;
    yield { rule: 'head.stored', message };
  }
  if (size === externalHead?.size && root !== externalHead.root) {
    const message = `at size ${size} the log has root ${root}, but the external head has root ${externalHead.root}`;
    yield { rule: 'head.differs', message };
  }
}

/** Compares the computed log with the archived part that has exactly its size. */
function* checkParts({ size, frontier }: ComputedLog, parts: readonly ArchivedPart[]): Iterable<LedgerFinding> {
  for (const part of parts) {
    if (part.size !== size || part.root === rootOf(frontier)) continue;
    yield {
      rule: 'archive.differs',
      message: `at size ${size} the root of the log differs from the root of the archived part`,
    };
  }
}

async function checkEnd(log: ComputedLog, head: LogHead, source: LedgerSource): Promise<readonly PlacedFinding[]> {
  const found: PlacedFinding[] = [];
  const { externalHead, begin = EMPTY_HEAD } = source;
  if (externalHead !== null && externalHead.size < begin.size) {
    const message = `the external head has ${externalHead.size} entries, and more than those were archived before`;
    found.push({ place: WHOLE_LOG, finding: { rule: 'head.below', message } });
  }
  if (externalHead !== null && log.size < externalHead.size) {
    const message = `the log ends at size ${log.size}, but the external head has ${externalHead.size} entries`;
    found.push({ place: { ...WHOLE_LOG, log_index: log.size }, finding: { rule: 'head.below', message } });
  }
  // A longer log is correct if the entries were committed while it was read; the head has then advanced too.
  const latest = log.size > head.size ? await source.head() : head;
  if (log.size !== head.size) found.push(...placeFindings(WHOLE_LOG, checkHeads(log, latest, null)));
  if (log.size > latest.size || log.size < head.size) {
    const message = `the log has ${log.size} entries, its head says ${latest.size}`;
    const kind = log.size < head.size ? 'cut' : 'inserted';
    found.push({ place: WHOLE_LOG, finding: { rule: 'head.stored', message, kind } });
  }
  return found;
}

/** @throws the error itself unless it reports that the store was tampered with */
function tamperingMessage(error: unknown): string {
  if (error instanceof LedgerError && error.code === 'LEDGER_TAMPERED') return error.message;
  throw error;
}
