// Counts how often each element of the pinned policies decided between two sizes of a log. The trees are folded from
// their first entries; only decisions of the range count. `measureCoverage` counts between two checkpoints and does not
// trust the store: the entries that are counted must lead to the roots of both.

import {
  type ElementCoverage,
  type OtherRuleCount,
  type PolicyCoverage as PolicyCoverageReport,
  COVERAGE_TYPE,
  type CoverageStatement,
} from '../../core/contract/evidence/coverage-proof.js';
import { OPTIONAL_FILE_KEYS, POLICY_FILES } from '../../core/contract/policy/pins.js';
import { isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { InvariantError, usageError } from '../../core/errors.js';
import type { Policy } from '../../core/policy/policy.js';
import type { ReplayEntry, ReplaySource } from '../../kernel/replay/replay.js';
import { decidingElements } from './deciding-elements.js';
import { decisionsIn, type ReadCount } from './decision-fold.js';
import { elementKey, elementsOf, type PolicyElement } from './policy-elements.js';
import type { RecordedDecision, RecordedVerdict } from './recorded-decision.js';
import { canonicalJson } from '../../core/contract/json.js';
import { STATEMENT_TYPE } from '../../core/contract/evidence/evidence.js';
import { signCheckpoint } from '../../core/ledger/proof/checkpoint.js';
import { signStatement } from '../../core/ledger/proof/dsse.js';
import { keyNotesOf } from '../../core/ledger/proof/key-history.js';
import { appendLeaf, EMPTY_HEAD, leafHash, rootOf } from '../../core/ledger/proof/merkle.js';
import { PROOF_BYTES_MAX } from '../../runtime/ledger/proof-file.js';
import type { NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { LogHead, StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import { mismatchError, proveExtension } from '../../runtime/ledger/ledger-proofs.js';
import type { JoinedLog } from '../../runtime/ledger/joined-log.js';

/** The entries with `from` <= index < `to`. */
export interface LogRange {
  readonly from: number;
  readonly to: number;
}

export interface Coverage {
  /** Trees of the range that were counted only in part: content is not available, or a policy cannot be evaluated. */
  readonly not_recomputed: number;
  /** What to install, if this installation cannot evaluate the policy of one of them. */
  readonly needs?: string;
  /** One report for each version of the policy that decided in the range, in the order of their first decisions. */
  readonly policies: readonly PolicyCoverageReport[];
}

type CoverageSource = Pick<ReplaySource, 'log' | 'tree' | 'artifactsOf'>;

/**
 * Counts the decisions of a range.
 * @throws LedgerError LEDGER_TAMPERED for a ledger that the machines would not have written
 */
export async function coverageOf(source: CoverageSource, range: LogRange): Promise<Coverage> {
  const pins = new Map<string, readonly string[]>();
  const touched = new Set<string>();
  const incomplete = new Set<string>();
  const log = async function* (): AsyncIterable<ReplayEntry> {
    if (range.to === 0) return;
    for await (const entry of source.log()) {
      if (entry.log_index >= range.from) touched.add(entry.tree_id);
      yield entry;
      if (entry.log_index === range.to - 1) return;
    }
  };
  // The files are hashed from the same bytes that the fold decides by.
  const artifactsOf: CoverageSource['artifactsOf'] = async (place) => {
    const artifacts = await source.artifactsOf(place);
    if (!pins.has(place.tree_id)) pins.set(place.tree_id, hashPins(artifacts));
    return artifacts;
  };
  const policies = new Map<string, VersionCoverage>();
  const count: ReadCount = { trees: 0, entries: 0, not_recomputed: 0 };
  const onIncomplete = (tree_id: string): void => void incomplete.add(tree_id);
  for await (const decision of decisionsIn({ ...source, log, artifactsOf }, undefined, count, onIncomplete)) {
    if (decision.log_index < range.from) continue;
    const pinned = pins.get(decision.tree_id);
    if (pinned === undefined) throw new InvariantError('a decision in a tree that is not open');
    const used = filesOf(pinned, decision.policy);
    const version = Object.values(used).join(' ');
    const coverage = policies.get(version) ?? new VersionCoverage(used, decision.policy);
    policies.set(version, coverage);
    coverage.add(decision);
  }
  const not_recomputed = [...incomplete].filter((tree_id) => touched.has(tree_id)).length;
  return {
    not_recomputed,
    ...(not_recomputed > 0 && count.needs !== undefined ? { needs: count.needs } : {}),
    policies: [...policies.values()].map((coverage) => coverage.report),
  };
}

/** The hashes of what the first input of a tree pins. */
const hashPins = (artifacts: readonly StoredArtifact[]): readonly string[] =>
  artifacts
    .slice(0, POLICY_FILES.length + 1 + OPTIONAL_FILE_KEYS.length)
    .map((artifact) => (isWithheld(artifact) ? artifact.sha256 : sha256(artifact.bytes)));

/** A tree pins lanes, roles, actions and machine definitions, then conditions and counters if there are any. */
function filesOf(
  [lanes = '', roles = '', actions = '', , conditions = '', counters = '']: readonly string[],
  policy: Policy,
): PolicyCoverageReport['files'] {
  return {
    ...{ lanes, roles, actions },
    ...(policy.conditions === undefined ? {} : { conditions }),
    ...(policy.counters === undefined ? {} : { counters }),
  };
}

interface Counted {
  allowed: number;
  denied: number;
}

const addVerdict = (counted: Counted, { decision }: RecordedVerdict): void => {
  if (decision === 'allow') counted.allowed += 1;
  else counted.denied += 1;
};

/** The counts of one version of the policy. */
class VersionCoverage {
  readonly #files: PolicyCoverageReport['files'];
  readonly #elements: ReadonlyMap<string, PolicyElement & Counted>;
  readonly #other = new Map<string | null, OtherRuleCount & Counted>();
  readonly #trees = new Set<string>();
  #decisions = 0;

  constructor(files: PolicyCoverageReport['files'], policy: Policy) {
    this.#files = files;
    this.#elements = new Map(
      elementsOf(policy).map((element) => [elementKey(element), { ...element, allowed: 0, denied: 0 }]),
    );
  }

  add(decision: RecordedDecision): void {
    const { tree_id, said } = decision;
    this.#decisions += 1;
    this.#trees.add(tree_id);
    const keys = new Set(decidingElements(decision).map(elementKey));
    const elements = [...keys].flatMap((key) => this.#elements.get(key) ?? []);
    for (const element of elements) addVerdict(element, said);
    if (elements.length > 0) return;
    const other = this.#other.get(said.rule_id) ?? { rule_id: said.rule_id, allowed: 0, denied: 0 };
    this.#other.set(said.rule_id, other);
    addVerdict(other, said);
  }

  get report(): PolicyCoverageReport {
    return {
      files: this.#files,
      decisions: this.#decisions,
      trees: this.#trees.size,
      elements: [...this.#elements.values()] satisfies ElementCoverage[],
      other: [...this.#other.values()],
    };
  }
}

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
