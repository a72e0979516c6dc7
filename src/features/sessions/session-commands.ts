// Prepares session commands before the session applies them, and answers commands to closed sessions.

import { type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { SessionAnswer } from './contract/session-answer.js';
import { SessionCommand } from './contract/session-command.js';
import type { SessionRole } from './contract/session.js';
import type { Actor } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { applyCommand } from './rules/apply-command.js';
import { rejectionAnswer } from './rules/command-answer.js';
import type { SessionState } from './rules/session-state.js';
import { createNote, type Note } from '../../runtime/agents/caller-input.js';

/** Limit of the text that may accompany a pause, an end or a waiver, in characters. */
const DETAIL_CHARS_MAX = 400;

/** The text that a person adds to a command, as a note. @returns null for malformed or too long text */
export function createDetailNote(text: string | null | undefined, case_id: string | null): Note | null {
  const isText = text == null || (text.length <= DETAIL_CHARS_MAX && text.isWellFormed());
  return isText ? createNote(text, case_id) : null;
}

/** The platform's own detail of a session that another one replaces. */
export const FORCE_REPLACED = 'force_replaced';
export const platformDetail = (detail: string | undefined): string | null =>
  detail === FORCE_REPLACED ? detail : null;

export function isRecordable(command: SessionCommand): boolean {
  try {
    return isConforming(SessionCommand, command) && canonicalJson(command).length > 0;
  } catch {
    return false;
  }
}

/** @returns undefined for an invalid percentage */
export const validatePercentage = (value: number | undefined): number | null | undefined => {
  if (value === undefined) return null;
  return typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined;
};

// Ids in a command that belong to the session are recorded as they are, all others as hashes (C90). No step, attempt or
// phase has a hash as its id, so the session rejects the hash as it would reject the id.

export function hashForeignIds(command: SessionCommand, session: SessionState): SessionCommand {
  const recordId = (id: string): string =>
    id.startsWith(`${session.session_id}-`) && PLATFORM_ID.test(id) ? id : hashId(id);
  const recordPhaseId = (id: string): string =>
    session.spec.phases.some((known) => known.id === id) ? id : hashId(id);
  switch (command.name) {
    case 'verify':
      return { ...command, step_id: recordId(command.step_id) };
    case 'review':
      return { ...command, step_id: recordId(command.step_id), phase_id: recordPhaseId(command.phase_id) };
    case 'waive':
      return { ...command, phase_id: recordPhaseId(command.phase_id) };
    case 'resume': {
      const { acknowledge } = command;
      if (acknowledge === null) return command;
      return { ...command, acknowledge: { ...acknowledge, gate_attempt_id: recordId(acknowledge.gate_attempt_id) } };
    }
    default:
      return command;
  }
}

/** The end of an id that the platform made: a word and an ordinal. */
const PLATFORM_ID = /-[a-z]{1,8}\d{1,9}$/;
const hashId = (id: string): string => `sha256-${sha256(id)}`;

interface CommandSource {
  readonly actor: Actor;
  readonly role: SessionRole;
  readonly time: string;
  readonly input_id: string;
}

/**
 * Answers a command to a closed session. Nothing of it is recorded.
 * @returns the state of the session; for its last report sent again, the answer to that report (C65)
 */
export function answerClosedSession(
  session: SessionState,
  command: SessionCommand,
  source: CommandSource,
  [material]: readonly Artifact[],
): SessionAnswer {
  const vouch = { issue: { step_id: '', issue: 1, proof_sha256: '' }, evidence_intact: null };
  const work = { touched: [], busy: false, refuses_unmediated: false };
  const report =
    command.name === 'next' && command.report !== null && material !== undefined
      ? (parseOwnJson(Buffer.from(material.bytes).toString('utf8')) as JsonObject)
      : null;
  const turn = applyCommand(session, command, { ...source, vouch, work, report, new_spec: null });
  return turn.answer ?? rejectionAnswer(session, 'INVALID_STATE_TRANSITION');
}
