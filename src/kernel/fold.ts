// Folding a recorded tree through the machines. It is at once how a tree comes back into memory, what a replay does,
// and how tampering shows: a ledger that the machines would not have spoken differs at the first wrong entry.

import {
  artifactRef,
  checkAvailable,
  isSystemRef,
  type Artifact,
  type ArtifactRef,
  type StoredArtifact,
  type WithheldArtifact,
} from '../contract/artifact-ref.js';
import {
  isOpeningInput,
  type OpeningInput,
  type ProposalMark,
  type RecordedInput,
  type SealedEntry,
} from '../contract/run/entry.js';
import { isJsonObject } from '../contract/json.js';
import { storedPayloadRef } from '../contract/run/payload-prefix.js';
import { canonicalJson } from '../contract/canonical-json.js';
import type { SessionCommand } from '../contract/session/session-command.js';
import { isRecordedInput } from '../contract/validators.js';
import type { Decision } from './decision.js';
import type { Interpretation } from './interpreter/interpreter.js';
import { Tree } from './tree.js';

/** Where a recorded tree first departs from what the machines say. Texts are canonical entries, or null for none. */
export interface Difference {
  readonly tree_id: string;
  readonly seq: number;
  readonly rule:
    | 'entry.differs' // the machines would have written another entry here
    | 'entry.unexpected' // they would have written none
    | 'entry.missing' // they would have written one
    | 'artifact.differs' // the content is not what the entry refers to
    | 'seen.differs' // an id that was proposed before is not remembered, or one is that was not
    | 'machine.failed'; // the machines cannot take this input at all
  readonly expected: string | null;
  readonly found: string | null;
}

export interface RecordedEntry {
  readonly seq: number;
  readonly text: string;
}

/** What became of an entry. */
export type FoldResult =
  | { readonly decision: Decision | null }
  | { readonly difference: Difference }
  | { readonly withheld: WithheldArtifact };

export class Fold {
  readonly tree: Tree;
  #expected: readonly SealedEntry[] = [];
  #next = 0;
  /** The proposal ids that the tree has accepted, by root run: what every later `seen` has to say. */
  readonly #marks: Map<string, ProposalMark> | null;

  /** From the tree's first entry, or from where a tree stands: then nobody knows which ids came before. */
  constructor(from: string | Tree, interpretation?: Interpretation) {
    this.tree = typeof from === 'string' ? new Tree(from, interpretation) : from;
    this.#marks = this.tree.head.seq === 0 ? new Map() : null;
  }

  /** What is still to come of the last input, by the machines; after a difference from there on. */
  get expected(): readonly SealedEntry[] {
    return this.#expected.slice(this.#next);
  }

  /**
   * Takes the tree's next recorded entry. `artifacts` is the content that it brought; only inputs bring any.
   * @returns the decision when the entry was an input, null when it was what an input caused; the difference, or the
   * first content that is needed and not to be had: after these nothing more may be taken
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

  /** Whether the last input has all that it caused: the tree stands where its record does. */
  get isComplete(): boolean {
    return this.#expected[this.#next] === undefined;
  }

  /** What is still to come when the record ends here: null for a whole tree. */
  finish(): Difference | null {
    const expected = this.#expected[this.#next];
    return expected === undefined ? null : this.#toDifference('entry.missing', expected.entry.seq, expected.text, null);
  }

  #applyInput(found: RecordedEntry, storedArtifacts: readonly StoredArtifact[]): FoldResult {
    const recorded = parseInput(found.text);
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

  /** The store's memory of proposal ids is an index that anybody could have cut: the fold has its own. */
  #checkSeen(recorded: RecordedInput, [payload]: readonly Artifact[]): Mismatch | null {
    if (this.#marks === null || recorded.kind !== 'proposal' || payload === undefined) return null;
    const root = this.tree.run(recorded.run_id)?.context.root_run_id;
    // What is only the prefix of a payload was no proposal, even where these bytes alone would be one.
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

/** The references of an input whose content the input itself brings, in the order of its materials. */
export function referencesOf(input: RecordedInput): readonly ArtifactRef[] {
  switch (input.kind) {
    case 'open':
      return [...pinReferences(input), ...(input.notes ?? [])];
    case 'open_session':
      return [...pinReferences(input), input.spec, ...(input.notes ?? [])];
    case 'start_agent':
      return input.given ?? [];
    case 'session':
      return commandReferences(input.command);
    case 'proposal':
      return [storedPayloadRef(input), ...optionalRef(input.prompt), ...optionalRef(input.seen?.response)];
    case 'start_run':
      return [input.request];
    case 'result':
      return optionalRef(input.result);
    case 'cancel':
    case 'resolve':
      return optionalRef(input.note_ref);
    default:
      return [];
  }
}

function commandReferences(command: SessionCommand): readonly ArtifactRef[] {
  switch (command.name) {
    case 'rebase':
      return [command.spec];
    case 'next':
      return optionalRef(command.report);
    case 'pause':
    case 'end':
    case 'waive':
      return optionalRef(command.note_ref);
    default:
      return [];
  }
}

/** The first policy or machine definition that is pinned as something else: what is of a case could be withheld. */
function wrongPin(input: RecordedInput): Mismatch | null {
  const pin = isOpeningInput(input) ? pinReferences(input).find((ref) => !isSystemRef(ref)) : undefined;
  return pin === undefined ? null : { expected: null, found: canonicalJson(pin) };
}

/** Policies and machines, which an opening brings before everything else. */
export const pinReferences = ({
  policies: { lanes, roles, actions },
  machines,
}: OpeningInput): readonly ArtifactRef[] => [lanes.artifact, roles.artifact, actions.artifact, machines];

const optionalRef = (ref: ArtifactRef | null | undefined): readonly ArtifactRef[] => (ref == null ? [] : [ref]);

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

/** The input of an entry, or null. The text may have been tampered with; the machines check what they are given. */
function parseInput(text: string): RecordedInput | null {
  try {
    const entry: unknown = JSON.parse(text);
    if (!isJsonObject(entry) || entry['type'] !== 'input' || !isJsonObject(entry['body'])) return null;
    const body = entry['body'];
    return isRecordedInput(body) ? body : null;
  } catch {
    return null;
  }
}
