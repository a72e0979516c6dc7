// Verification trusts nothing from the store: it reads the whole log once, recomputes everything from texts and
// contents, and compares. It reports each problem by entry and continues after it, up to a limit.

import { loadFeaturesNamedIn } from '../../contract/run/feature-vocabulary.js';
import {
  isWithheld,
  type StoredArtifact,
  artifactRef,
  canBeWithheld,
  type WithheldArtifact,
} from '../../contract/artifact-ref.js';
import type { Entry } from '../../contract/run/entry.js';
import { LedgerError } from '../../errors.js';
import type {
  ArchivedPart,
  KeySource,
  LogHead,
  StoredEntry,
  InputKey,
  ReadableLedger,
  ProposalKey,
} from '../readable-ledger.js';
import { checkArchivedParts, type NoteOpener } from './check-archives.js';
import { checkEntry, type CheckedEntry } from './check-entry.js';
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
  UNCHECKED_LISTED_MAX,
  type UncheckedContent,
} from './ledger-verdict.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { readRotation, type KeyRotation } from '../proof/key-history.js';
import { nameInTree } from '../../contract/entry-name.js';

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

/**
 * Compares the content that came with an entry with the references in its body. Two are the same if hash, size, kind
 * and case are equal.
 * @returns findings for content without a reference and, in an input, for references without content: a fold needs all
 * content of an input
 */
function checkEntryArtifacts(
  type: string,
  body: unknown,
  attached: readonly StoredArtifact[],
): readonly LedgerFinding[] {
  const referredKeys = new Set(collectRefKeys(body));
  const attachedKeys = new Set(attached.map((artifact) => keyOf({ ...artifactRef(artifact) })));
  const findings: LedgerFinding[] = [];
  for (const key of attachedKeys) {
    if (!referredKeys.has(key)) {
      findings.push({ rule: 'artifact.unreferenced', message: `the entry does not refer to its content ${key}` });
    }
  }
  for (const key of type === 'input' ? collectRefKeys(withoutEarlierContent(body)) : []) {
    if (!attachedKeys.has(key))
      findings.push({ rule: 'artifact.missing', message: `the input lacks its content ${key}` });
  }
  return findings;
}

/**
 * The sources of a promotion came with earlier inputs, and of a payload over the limit only a prefix comes (C80). All
 * other content that an input refers to comes with it.
 */
function withoutEarlierContent(body: unknown): unknown {
  if (!isJsonObject(body)) return body;
  if (body['kind'] === 'start_run') return { ...body, inputs: [] };
  return body['kind'] === 'proposal' && body['prefix'] !== undefined ? { ...body, payload: null } : body;
}

/** Anything shaped like an artifact_ref, at any depth: the schemas of the bodies allow it in many places. */
function* collectRefKeys(value: unknown): Iterable<string> {
  if (Array.isArray(value)) {
    for (const item of value) yield* collectRefKeys(item);
  } else if (isJsonObject(value)) {
    if (isReferenceLike(value)) yield keyOf(value);
    else for (const member of Object.values(value)) yield* collectRefKeys(member);
  }
}

interface ReferenceLike {
  readonly hash_sha256: string;
  readonly artifact_kind: string;
  readonly byte_size?: unknown;
  readonly case_id?: unknown;
}

const isReferenceLike = (value: object): value is ReferenceLike =>
  'artifact_id' in value &&
  'artifact_kind' in value &&
  'hash_sha256' in value &&
  typeof value.artifact_kind === 'string' &&
  typeof value.hash_sha256 === 'string';

const keyOf = ({ hash_sha256, artifact_kind, byte_size, case_id }: ReferenceLike): string =>
  JSON.stringify([hash_sha256.toLowerCase(), artifact_kind, byte_size ?? null, case_id ?? null]);

// Compares the key history of a log with the rotations that the log records. The history was checked before, as a chain
// (src/core/ledger/proof/key-history.ts); only the log shows that its end is missing.

interface RecordedRotation {
  readonly place: ProblemPlace;
  readonly number: number;
  readonly note: string;
}

class KeyCheck {
  readonly #source: () => KeySource | null;
  readonly #rotations: readonly KeyRotation[];
  readonly #recorded: RecordedRotation[] = [];
  /** The roots of this log at the sizes of the rotations. */
  readonly #roots = new Map<number, string>();
  /** The smallest size at which a restore has cut the log. */
  #keptSize = Infinity;

  /** @param source is read again at the end, because a key may be rotated meanwhile */
  constructor(source: () => KeySource | null) {
    this.#source = source;
    this.#rotations = rotationsOf(source()?.notes ?? []);
  }

  take({ type, body, seq, tree_id }: Entry & { readonly tree_id: string }, log_index: number): void {
    if (type !== 'input') return;
    if (body.kind === 'restore') this.#keptSize = Math.min(this.#keptSize, body.kept.size);
    if (body.kind !== 'rotate_key' || body.rotation.purpose !== 'ledger') return;
    const { number, note } = body.rotation;
    this.#recorded.push({ place: { log_index, tree_id, seq }, number, note });
  }

  /** The log up to here. */
  takeHead({ size, frontier }: Pick<LogHead, 'size' | 'frontier'>): void {
    if (this.#rotations.some(({ head }) => head.size === size)) this.#roots.set(size, rootOf(frontier));
  }

  /** @param begin entries before it are in an archive */
  *finish(begin: number): Iterable<PlacedFinding> {
    const source = this.#source();
    if (source === null) return;
    const { notes, isUnfinished } = source;
    for (const { place, number, note } of this.#recorded) {
      if (notes[number - 1] === note) continue;
      const why = notes[number - 1] === undefined ? 'does not have it' : 'has another one';
      const message = `the log records rotation ${number} of its key, and the key history ${why}`;
      yield { place, finding: { rule: 'key.unknown', message } };
    }
    const recorded = new Set(this.#recorded.map(({ number }) => number));
    const rotations = rotationsOf(notes);
    for (const { number, head } of rotations) {
      const isPending = isUnfinished && number === rotations.length;
      if (!recorded.has(number) && !isPending && head.size >= begin) {
        const message = `the key history has rotation ${number} at size ${head.size}, and the log does not record it`;
        yield { place: WHOLE_LOG, finding: { rule: 'key.unrecorded', message } };
      }
      const root = this.#roots.get(head.size) ?? head.root;
      // A restore has replaced the entries after the ones that it kept.
      if (root === head.root || head.size > this.#keptSize) continue;
      const message = `rotation ${number} of the key vouches for another log at size ${head.size}`;
      yield { place: WHOLE_LOG, finding: { rule: 'key.differs', message } };
    }
  }
}

const rotationsOf = (notes: readonly string[]): readonly KeyRotation[] =>
  notes.map((note) => readRotation(note)?.rotation).filter((rotation) => rotation !== undefined);

/** The contents that verification could not check, counted and, up to a limit, listed. */
export class WithheldContents {
  readonly #listed: UncheckedContent[] = [];
  #contents = 0;

  /** @returns a finding if the content is missing and nothing allows that */
  add({ log_index, tree_id, seq }: StoredEntry, artifact: WithheldArtifact): readonly LedgerFinding[] {
    const { kind, case_id, withheld, sha256 } = artifact;
    this.#contents += 1;
    if (this.#listed.length < UNCHECKED_LISTED_MAX) {
      this.#listed.push({ log_index, tree_id, seq, kind, case_id, withheld, sha256 });
    }
    if (canBeWithheld(artifact)) return [];
    const message = `the content ${sha256} (${kind}) is missing, and nothing may withhold it: restore it from a backup`;
    return [{ rule: 'artifact.system_withheld', message }];
  }

  /**
   * @param trees how many trees could be folded only in part
   * @param unsupported those of them that this installation cannot evaluate
   * @returns null if everything could be checked
   */
  report(trees: number, unsupported: readonly UnsupportedTree[]): WithheldSummary | null {
    if (this.#contents === 0 && unsupported.length === 0) return null;
    const summary = { contents: this.#contents, trees, not_checked: this.#listed };
    return unsupported.length === 0 ? summary : { ...summary, unsupported: unsupported.slice(0, UNCHECKED_LISTED_MAX) };
  }
}

// Checks the marks with which the store remembers proposal ids and the input ids that callers chose. A lost mark would
// let a request run twice, so the log determines which marks must exist.

type MarkSource = Pick<ReadableLedger, 'marks'>;

interface PendingProposal {
  readonly seq: number;
  readonly input_id: string;
}

/** The phases that store no mark for a proposal that they reject (C19). */
const PHASES_WITHOUT_MARK: readonly unknown[] = ['RECEIVE', 'PARSE', 'VALIDATE_SCHEMA'];

/** Takes the entries of a log in order. Memory grows with the number of pending steps. */
class MarkCheck {
  readonly #source: MarkSource;
  /** For each agent run, its proposal that has no trace yet. */
  readonly #pendingProposals = new Map<string, PendingProposal>();

  constructor(source: MarkSource) {
    this.#source = source;
  }

  /** Reports wrong or missing marks of a step, at its trace. @throws LedgerError */
  async take({ tree_id, seq }: StoredEntry, { envelope, findings }: CheckedEntry): Promise<readonly LedgerFinding[]> {
    const body = envelope?.body;
    // Another check has already reported an invalid entry.
    if (findings.length > 0 || !isJsonObject(body)) return [];
    const { kind, run_id, input_id } = body;
    if (typeof run_id !== 'string') return [];
    if (envelope?.type === 'input' && kind === 'proposal' && typeof input_id === 'string') {
      this.#pendingProposals.set(run_id, { seq, input_id });
    }
    const pending = envelope?.type === 'step_trace' ? this.#pendingProposals.get(run_id) : undefined;
    if (pending === undefined) return [];
    this.#pendingProposals.delete(run_id);
    return this.#checkMarks(tree_id, run_id, pending, body);
  }

  async #checkMarks(
    tree_id: string,
    run_id: string,
    pending: PendingProposal,
    trace: JsonObject,
  ): Promise<readonly LedgerFinding[]> {
    const { seq } = pending;
    const keys = [inputKey(tree_id, run_id, pending), proposalKey(run_id, trace)];
    const marks = await this.#source.marks(keys.filter((key) => key !== null));
    const [input, proposal] = keys.map((key) =>
      key === null ? undefined : marks[key === keys[0] ? 0 : marks.length - 1],
    );
    const findings: LedgerFinding[] = [];
    if (input !== undefined && input?.seq !== seq) {
      findings.push({
        rule: 'mark.input',
        message: `the mark of the input at ${nameInTree(tree_id, seq)} is missing or wrong: the input could be accepted again`,
      });
    }
    const isKnown = proposal != null && 'run_id' in proposal && proposal.run_id === run_id && proposal.seq === seq;
    if (proposal !== undefined && !isKnown) {
      findings.push({
        rule: 'mark.proposal',
        message: `the mark of the proposal at ${nameInTree(tree_id, seq)} is missing or wrong: its id could be accepted again`,
      });
    }
    return findings;
  }
}

/** Input ids that the engine derives begin with the run's id and need no mark. */
const inputKey = (tree_id: string, run_id: string, { input_id }: PendingProposal): InputKey | null =>
  input_id.startsWith(`${run_id}/`) ? null : { tree_id, input_id };

function proposalKey(run_id: string, { proposal_id, replay_of, phase_failed_at }: JsonObject): ProposalKey | null {
  if (typeof proposal_id !== 'string' || replay_of !== null || PHASES_WITHOUT_MARK.includes(phase_failed_at))
    return null;
  const root_run_id = run_id.slice(0, Math.max(run_id.lastIndexOf('.'), 0));
  return { root_run_id, proposal_id: proposal_id.toLowerCase() };
}
