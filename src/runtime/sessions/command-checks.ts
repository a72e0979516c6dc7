// What callers of sessions hand over, before it becomes a command.

import { canonicalJson } from '../../contract/canonical-json.js';
import { SessionCommand } from '../../contract/session-command.js';
import { conforms } from '../../contract/validators.js';
import { noteOf, type Note } from '../notes.js';

/** What may be said to a pause, an end or a waiver, in characters. */
const DETAIL_CHARS_MAX = 400;

/** What a person says beside a command. @returns null for what is no text, or too long a one */
export function detailNote(text: string | null | undefined, case_id: string | null): Note | null {
  const isText = text == null || (text.length <= DETAIL_CHARS_MAX && text.isWellFormed());
  return isText ? noteOf(text, case_id) : null;
}

/** What the platform itself says of a session that another one replaces. */
export const FORCE_REPLACED = 'force_replaced';
export const ownDetail = (detail: string | undefined): string | null => (detail === FORCE_REPLACED ? detail : null);

export function isRecordable(command: SessionCommand): boolean {
  try {
    return conforms(SessionCommand, command) && canonicalJson(command).length > 0;
  } catch {
    return false;
  }
}

/** Undefined for what is no percentage. */
export const percent = (value: number | undefined): number | null | undefined => {
  if (value === undefined) return null;
  return typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined;
};
