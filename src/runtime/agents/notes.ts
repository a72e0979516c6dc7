// Stores free text for the ledger: as an artifact of its case, with a reference or hash in the entry (S4-62, C90).

import { artifactRef, type Artifact, type ArtifactRef } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import { usageError } from '../../core/errors.js';
import type { SubmitOptions } from './agent-run.js';
import { toCancelReason, isIdentifier, toRecordedScopeValue } from '../../core/contract/free-text.js';

/** The number of characters that are stored of one note. */
const NOTE_CHARS_MAX = 4_000;

/** A note of an input: its reference and its artifact. */
export interface Note {
  readonly references: { readonly note_ref?: ArtifactRef };
  readonly materials: readonly Artifact[];
}
const EMPTY_NOTE: Note = { references: {}, materials: [] };

/** @returns nothing for a missing text, and for a text without a case, which could not be erased */
export function createNote(text: string | null | undefined, case_id: string | null): Note {
  if (text === null || text === undefined || text === '' || case_id === null) return EMPTY_NOTE;
  const note: Artifact = {
    kind: 'note',
    case_id,
    bytes: Buffer.from(text.slice(0, NOTE_CHARS_MAX).toWellFormed()),
  };
  return { references: { note_ref: artifactRef(note) }, materials: [note] };
}

interface CancelledTree {
  readonly case_id: string | null;
  /** The feature that opened the tree; null for a run tree. */
  readonly rootFeature: object | null;
}

/**
 * The `cancel` of an agent run's tree, with its reason as a code or, in other words, as a note. Only the feature
 * that opened a tree may end its root runs: the handle of an agent run cancels that run alone (C93).
 */
export function createCancelInput(
  { run_id, root_run_id }: Pick<RunContext, 'run_id' | 'root_run_id'>,
  tree: CancelledTree | null,
  reason: string,
) {
  const code = toCancelReason(reason);
  const { references, materials } = code === reason ? EMPTY_NOTE : createNote(reason, tree?.case_id ?? null);
  const cancelled_run_id = tree?.rootFeature == null ? root_run_id : run_id;
  const input = {
    kind: 'cancel',
    run_id: cancelled_run_id,
    input_id: `${run_id}/cancel`,
    reason: code,
    ...references,
  } as const;
  return { input, materials };
}

/** A scope as an `open` records it: identifiers verbatim, other values as hashes with their artifacts. */
export function createScopeNotes(scope: Readonly<Record<string, string>>, case_id: string | null) {
  const texts =
    case_id === null ? [] : Object.values(scope).filter((value) => value.trim() !== '' && !isIdentifier(value));
  const materials = [...new Set(texts)].map((text): Artifact => ({ kind: 'note', case_id, bytes: Buffer.from(text) }));
  const recorded = Object.entries(scope).map(([field, value]) => [field, toRecordedScopeValue(value)] as const);
  return {
    scope: Object.fromEntries(recorded),
    ...(materials.length === 0 ? {} : { notes: materials.map(artifactRef) }),
    materials,
  };
}

const PROMPTS_MAX = 16;
export const PROMPT_BYTES_MAX = 4_194_304;

/** The start prompts of an agent: references for its first input, and their artifacts. */
export function createStartPrompts(texts: readonly string[], case_id: string | null) {
  const prompts = createPrompts(texts, case_id);
  return { refers: prompts.length === 0 ? {} : { given: prompts.map(artifactRef) }, prompts };
}

/** The prompt of a proposal, or the event that it is made of: its reference, and the artifact after the payload. */
export function createProposalPrompt(
  { prompt, hookEvent }: Pick<SubmitOptions, 'prompt' | 'hookEvent'>,
  case_id: string | null,
) {
  const text = hookEvent ?? prompt;
  const kind = hookEvent === undefined ? 'prompt' : 'hook_event';
  const [found] = createPrompts(text === undefined ? [] : [text], case_id);
  if (found === undefined) return { refers: {}, materials: [] };
  const material: Artifact = { ...found, kind };
  return { refers: { prompt: artifactRef(material) }, materials: [material] };
}

/**
 * Prompts as artifacts of their case.
 * @throws UsageError for too many or too long prompts
 */
function createPrompts(prompts: readonly string[], case_id: string | null): readonly Artifact[] {
  const isWithinLimits = prompts.every(
    (text) => typeof text === 'string' && Buffer.byteLength(text) <= PROMPT_BYTES_MAX,
  );
  if (prompts.length > PROMPTS_MAX || !isWithinLimits) {
    throw usageError('prompts: at most 16 texts, each of 4 MiB');
  }
  // Without a case the text could not be erased.
  if (case_id === null) return [];
  return [...new Set(prompts)].map((text) => ({ kind: 'prompt', case_id, bytes: Buffer.from(text.toWellFormed()) }));
}

/** A caller's request id counts as an identifier if it is printable ASCII without spaces. */
const PRINTABLE = /^[\x21-\x7e]+$/;
export const isPrintable = (inputId: string): boolean => PRINTABLE.test(inputId);

/** The recorded id of a request: the id itself, or its hash if it may be text. */
const hashInputId = (inputId: string): string => (isPrintable(inputId) ? inputId : `id:${sha256(inputId)}`);

/** Every id that a request may have been recorded under. */
export function inputKeysOf(tree_id: string, inputId: string | undefined) {
  const ids = inputId === undefined ? [] : [...new Set([inputId, hashInputId(inputId)])];
  return ids.map((input_id) => ({ tree_id, input_id }));
}

/** The id under which a request is recorded. */
export const toRecordedInputId = (inputId: string | undefined): string | undefined =>
  inputId === undefined ? undefined : hashInputId(inputId);
