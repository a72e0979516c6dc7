// Folds a recorded tree through the machines. Recovery, replay and tamper detection all use this: a ledger that the
// machines would not have produced differs at its first wrong entry.

import {
  artifactRef,
  checkAvailable,
  isSystemRef,
  type Artifact,
  type ArtifactRef,
  type StoredArtifact,
  type WithheldArtifact,
} from '../core/contract/artifact-ref.js';
import { isOpeningInput, type ProposalMark, type RecordedInput, type SealedEntry } from '../core/contract/run/entry.js';
import { loadFeaturesNamedIn, missingFeature, missingFeatureError } from '../core/contract/run/feature-vocabulary.js';
import { isJsonObject, parseOwnJson, canonicalJson } from '../core/contract/json.js';
import { INPUT_SCHEMAS, pinReferences, referencesOf } from '../core/contract/run/input.js';
import type { EntryPlace } from '../core/ledger/readable-ledger.js';
import { isRecordedInput } from '../core/contract/validators.js';
import type { LedgerError } from '../core/errors.js';
import type { Decision } from './decision.js';
import type { Interpretation } from './interpreter/interpreter.js';
import { isUnsupported, loadPinnedFeatures } from './pinned-policy.js';
import { Tree } from './tree.js';

/**
 * The first difference between a recorded tree and what the machines produce. `expected` and `found` are canonical
 * entries, or null if that side has no entry.
 */
export interface Difference {
  readonly tree_id: string;
  readonly seq: number;
  readonly rule:
    | 'entry.differs' // the machines produce a different entry here
    | 'entry.unexpected' // the machines produce no entry here
    | 'entry.missing' // the machines produce an entry that is not recorded
    | 'artifact.differs' // the content does not match its reference in the entry
    | 'seen.differs' // `seen` does not match the proposal ids accepted before
    | 'machine.failed'; // the machines cannot process this input
  readonly expected: string | null;
  readonly found: string | null;
}

interface RecordedEntry {
  readonly seq: number;
  readonly text: string;
}

/** The result of applying one recorded entry. */
type FoldResult =
  | { readonly decision: Decision | null }
  | { readonly difference: Difference }
  | { readonly withheld: WithheldArtifact }
  /** This installation cannot evaluate the policy of the tree: whether the record is right is not known. */
  | { readonly unsupported: LedgerError };

export class Fold {
  readonly tree: Tree;
  #expected: readonly SealedEntry[] = [];
  #next = 0;
  /** The accepted proposal ids by root run. Every later `seen` must agree with them. Null if the start is unknown. */
  readonly #marks: Map<string, ProposalMark> | null;

  /** Starts at a tree's first entry, or from a restored tree, whose earlier proposal ids are unknown. */
  constructor(from: string | Tree, interpretation?: Interpretation) {
    this.tree = typeof from === 'string' ? new Tree(from, interpretation) : from;
    this.#marks = this.tree.head.seq === 0 ? new Map() : null;
  }

  /** The entries that the machines expect next for the last input; after a difference, from that entry on. */
  get expected(): readonly SealedEntry[] {
    return this.#expected.slice(this.#next);
  }

  /**
   * Applies the tree's next recorded entry. `artifacts` is the content of that entry; only inputs have any.
   * @returns the decision if the entry is an input, or null if it is a consequence of one; otherwise the difference, or
   * the first required artifact that is withheld, or what this installation lacks. After any of these, apply no more
   * entries.
   */
  apply(found: RecordedEntry, artifacts: readonly StoredArtifact[]): FoldResult {
    const expected = this.#expected[this.#next];
    if (expected !== undefined) {
      if (expected.text !== found.text)
        return { difference: this.#toDifference('entry.differs', found.seq, expected.text, found.text) };
      this.#next += 1;
      return { decision: null };
    }
    return this.#applyInput(found, artifacts);
  }

  /** Whether every consequence of the last input has been applied, so the tree matches its record. */
  get isComplete(): boolean {
    return this.#expected[this.#next] === undefined;
  }

  /** The first entry that is missing if the record ends here; null if the tree is complete. */
  finish(): Difference | null {
    const expected = this.#expected[this.#next];
    return expected === undefined ? null : this.#toDifference('entry.missing', expected.entry.seq, expected.text, null);
  }

  #applyInput(found: RecordedEntry, storedArtifacts: readonly StoredArtifact[]): FoldResult {
    const body = parseInputBody(found.text);
    // An input of core is judged by its schema, whatever else it names.
    const missing = isOfCore(body) ? null : missingFeature(body);
    if (missing !== null) return this.#toUnsupported(found, missingFeatureError(missing));
    const recorded = isRecordedInput(body) ? body : null;
    if (recorded === null) {
      return { difference: this.#toDifference('entry.unexpected', found.seq, null, found.text) };
    }
    const mismatch = wrongPin(recorded) ?? findMismatch(referencesOf(recorded), storedArtifacts);
    if (mismatch !== null)
      return { difference: this.#toDifference('artifact.differs', found.seq, mismatch.expected, mismatch.found) };
    const artifacts = checkAvailable(storedArtifacts);
    if ('withheld' in artifacts) return { withheld: artifacts };
    const seen = this.#checkSeen(recorded, artifacts);
    if (seen !== null) return { difference: this.#toDifference('seen.differs', found.seq, seen.expected, seen.found) };
    let decision: Decision;
    try {
      decision = this.tree.decide({ recorded, materials: artifacts });
    } catch (error) {
      if (isUnsupported(error)) return this.#toUnsupported(found, error);
      return { difference: this.#toDifference('machine.failed', found.seq, null, String(error)) };
    }
    const [first] = decision.entries;
    if (first?.text !== found.text) {
      return { difference: this.#toDifference('entry.differs', found.seq, first?.text ?? null, found.text) };
    }
    for (const mark of decision.marks) this.#marks?.set(`${mark.root_run_id} ${mark.proposal_id}`, mark);
    this.#expected = decision.entries;
    this.#next = 1;
    return { decision };
  }

  /** What cannot be evaluated is compared with its canonical form at least: the same text says what it needs. */
  #toUnsupported({ seq, text }: RecordedEntry, error: LedgerError): FoldResult {
    const canonical = canonicalJson(parseOwnJson(text));
    return text === canonical
      ? { unsupported: error }
      : { difference: this.#toDifference('entry.differs', seq, canonical, text) };
  }

  /** Anyone with file access could truncate the store's index of proposal ids, so the fold keeps its own. */
  #checkSeen(recorded: RecordedInput, [payload]: readonly Artifact[]): Mismatch | null {
    if (this.#marks === null || recorded.kind !== 'proposal' || payload === undefined) return null;
    const root = this.tree.run(recorded.run_id)?.context.root_run_id;
    // A payload stored as a prefix was not a valid proposal, even if the prefix alone would parse as one.
    const isWhole = recorded.prefix === undefined;
    const id = root === undefined || !isWhole ? null : this.tree.proposalKey(payload.bytes);
    const mark = id === null ? undefined : this.#marks.get(`${root ?? ''} ${id}`);
    const { seen } = recorded;
    const same =
      mark === undefined || seen === null
        ? mark === undefined && seen === null
        : mark.run_id === seen.run_id &&
          mark.step_index === seen.step_index &&
          mark.payload_sha256 === seen.payload_sha256;
    if (same) return null;
    return {
      expected: mark === undefined ? null : `step ${mark.step_index} of ${mark.run_id}`,
      found: seen === null ? null : `step ${seen.step_index} of ${seen.run_id}`,
    };
  }

  #toDifference(rule: Difference['rule'], seq: number, expected: string | null, found: string | null): Difference {
    return { tree_id: this.tree.tree_id, seq, rule, expected, found };
  }
}

/** A stored entry that is applied to a fold. */
interface EntryToFold extends EntryPlace {
  readonly type: string;
  readonly text: string;
}

/** Loads the features that the entry needs, and reads the content that a fold takes with it. */
export async function readContentToFold(
  entry: EntryToFold,
  source: { artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]> },
): Promise<readonly StoredArtifact[]> {
  if (entry.type !== 'input') return [];
  await loadFeaturesNamedIn(entry.text);
  const contents = await source.artifactsOf(entry);
  if (entry.seq === 0) await loadPinnedFeatures(contents);
  return contents;
}

/**
 * Loads the features that an entry needs: what it names, and what the policies need that it pins. Only inputs need a
 * feature that no earlier entry of their tree has needed.
 */
export async function loadFeaturesOf(
  { type, seq, text }: Pick<EntryToFold, 'type' | 'seq' | 'text'>,
  contents: readonly StoredArtifact[],
): Promise<void> {
  if (type !== 'input') return;
  const named = loadFeaturesNamedIn(text);
  if (named !== null) await named;
  const pinned = seq === 0 ? loadPinnedFeatures(contents) : null;
  if (pinned !== null) await pinned;
}

/** The first policy or machine definition that is not pinned as system content. Content of a case can be withheld. */
function wrongPin(input: RecordedInput): Mismatch | null {
  const pin = isOpeningInput(input) ? pinReferences(input).find((ref) => !isSystemRef(ref)) : undefined;
  return pin === undefined ? null : { expected: null, found: canonicalJson(pin) };
}

interface Mismatch {
  readonly expected: string | null;
  readonly found: string | null;
}

function findMismatch(references: readonly ArtifactRef[], artifacts: readonly StoredArtifact[]) {
  const expected = references.map((reference) => canonicalJson(reference));
  const found = artifacts.map((artifact) => canonicalJson(artifactRef(artifact)));
  for (let i = 0; i < Math.max(expected.length, found.length); i += 1) {
    if (expected[i] !== found[i]) return { expected: expected[i] ?? null, found: found[i] ?? null };
  }
  return null;
}

const isOfCore = (body: unknown): boolean =>
  isJsonObject(body) && typeof body['kind'] === 'string' && Object.hasOwn(INPUT_SCHEMAS, body['kind']);

/** Parses the body of an input; null if it is malformed. The text may have been tampered with; the fold verifies it. */
function parseInputBody(text: string): unknown {
  try {
    const entry: unknown = JSON.parse(text);
    return isJsonObject(entry) && entry['type'] === 'input' ? entry['body'] : null;
  } catch {
    return null;
  }
}
