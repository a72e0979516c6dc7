// What callers of sessions hand over, before it becomes a command.

import { canonicalJson } from '../../contract/canonical-json.js';
import { SessionCommand } from '../../contract/session/session-command.js';
import { isConforming } from '../../contract/validators.js';
import { createNote, type Note } from '../agents/notes.js';

/** What may be said to a pause, an end or a waiver, in characters. */
const DETAIL_CHARS_MAX = 400;

/** What a person says beside a command. @returns null for what is no text, or too long a one */
export function createDetailNote(text: string | null | undefined, case_id: string | null): Note | null {
  const isText = text == null || (text.length <= DETAIL_CHARS_MAX && text.isWellFormed());
  return isText ? createNote(text, case_id) : null;
}

/** What the platform itself says of a session that another one replaces. */
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

/** Undefined for what is no percentage. */
export const validatePercentage = (value: number | undefined): number | null | undefined => {
  if (value === undefined) return null;
  return typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined;
};
