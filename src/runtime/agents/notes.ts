// Free text on its way into the ledger: an artifact of its case, and a reference or a hash in the entry (S4-62, C90).

import { artifactRef, type Artifact, type ArtifactRef } from '../../contract/artifact-ref.js';
import { sha256 } from '../../contract/hash.js';
import type { RunContext } from '../../contract/run/run-context.js';
import { UsageError } from '../../errors.js';
import type { Policy } from '../../policy/policy.js';
import { shouldHashNames } from '../../step/recorded-names.js';
import { toCancelReason, isIdentifier, toRecordedScopeValue } from '../../contract/free-text.js';

/** What is kept of one note, in characters. */
const NOTE_CHARS_MAX = 4_000;

/** A note beside an input: what the input refers to, and what it brings. */
export interface Note {
  readonly references: { readonly note_ref?: ArtifactRef };
  readonly materials: readonly Artifact[];
}
const EMPTY_NOTE: Note = { references: {}, materials: [] };

/** @returns nothing for no text, and for text that belongs to no case: it could not be erased */
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
  readonly session: object | null;
}

/**
 * The `cancel` of an agent run's tree, with its reason as a code and, in other words, as a note. Of a session the
 * activation is the session's to end: the handle of an agent run cancels that run alone (C93).
 */
export function createCancelInput(
  { run_id, root_run_id }: Pick<RunContext, 'run_id' | 'root_run_id'>,
  tree: CancelledTree | null,
  reason: string,
) {
  const code = toCancelReason(reason);
  const { references, materials } = code === reason ? EMPTY_NOTE : createNote(reason, tree?.case_id ?? null);
  const cancelled_run_id = tree?.session == null ? root_run_id : run_id;
  const input = {
    kind: 'cancel',
    run_id: cancelled_run_id,
    input_id: `${run_id}/cancel`,
    reason: code,
    ...references,
  } as const;
  return { input, materials };
}

/** A scope as an `open` records it: identifiers as they are, everything else as a hash beside its artifact. */
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

/** What an agent is started with: what its first input refers to, and what it brings. */
export function createStartPrompts(texts: readonly string[], case_id: string | null) {
  const prompts = createPrompts(texts, case_id);
  return { refers: prompts.length === 0 ? {} : { given: prompts.map(artifactRef) }, prompts };
}

/** What an agent is asked with: what its proposal refers to, and what that brings behind the payload. */
export function createProposalPrompt(text: string | undefined, case_id: string | null) {
  const materials = createPrompts(text === undefined ? [] : [text], case_id);
  const [prompt] = materials;
  return { refers: prompt === undefined ? {} : { prompt: artifactRef(prompt) }, materials };
}

/** What an agent is started or asked with, as artifacts of its case. @throws UsageError for too many or too long */
function createPrompts(prompts: readonly string[], case_id: string | null): readonly Artifact[] {
  const isWithinLimits = prompts.every(
    (text) => typeof text === 'string' && Buffer.byteLength(text) <= PROMPT_BYTES_MAX,
  );
  if (prompts.length > PROMPTS_MAX || !isWithinLimits) {
    throw new UsageError({ code: 'USAGE', message: 'prompts: at most 16 texts, each of 4 MiB' });
  }
  // Without a case the text could not be erased.
  if (case_id === null) return [];
  return [...new Set(prompts)].map((text) => ({ kind: 'prompt', case_id, bytes: Buffer.from(text.toWellFormed()) }));
}

/** An id that a caller gives to its request: printable ASCII without blanks is an identifier. */
const PRINTABLE = /^[\x21-\x7e]+$/;

/** The id by which a request is recorded: its own, or its hash where it may be a text. */
const hashInputId = (inputId: string): string => (PRINTABLE.test(inputId) ? inputId : `id:${sha256(inputId)}`);

/** Every id by which a request may be recorded. */
export function inputKeysOf(tree_id: string, inputId: string | undefined) {
  const ids = inputId === undefined ? [] : [...new Set([inputId, hashInputId(inputId)])];
  return ids.map((input_id) => ({ tree_id, input_id }));
}

/** The same in a tree that records no free text; in an older one, the id as it is. */
export const toRecordedInputId = (inputId: string | undefined, policy: Policy): string | undefined =>
  inputId === undefined || !shouldHashNames(policy) ? inputId : hashInputId(inputId);
