// Calls that a hook has denied without a decision of the service: nothing of them is in the ledger. The hook program
// counts them in a file for each session, outside of the project, and reports the counts with the next event. Anyone
// may have changed such a file, so it holds nothing but counts: one byte for each call.

import { canonicalJson } from '../../core/contract/json.js';
import { toRecordedScopeValue } from '../../core/contract/free-text.js';
import { sha256 } from '../../core/contract/hash.js';
import { UNDECIDED_REASONS, type Client, type UndecidedReason } from './hook-event.js';

/** The byte that counts a call, by the reason of its denial. */
const BYTES: Readonly<Record<UndecidedReason, string>> = {
  no_service: 's',
  too_long: 'l',
  unreadable: 'u',
  failed: 'f',
  refused: 'r',
};
/** How many calls were denied for each reason. */
export type UndecidedCounts = Readonly<Partial<Record<UndecidedReason, number>>>;

/** No file counts more calls. */
export const UNDECIDED_MAX = 4_096;

export const byteOf = (reason: UndecidedReason): string => BYTES[reason];

/** What a file counts. A byte that stands for no reason counts too. */
export function countsIn(bytes: Uint8Array): UndecidedCounts {
  const counts: Partial<Record<UndecidedReason, number>> = {};
  for (const byte of bytes.subarray(0, UNDECIDED_MAX)) {
    const letter = String.fromCharCode(byte);
    const reason = UNDECIDED_REASONS.find((one) => BYTES[one] === letter) ?? 'unreadable';
    counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}

export const totalOf = (counts: UndecidedCounts): number =>
  Object.values(counts).reduce((sum: number, count) => sum + count, 0);

/** The members by which a client names its session, the first ones first. */
const SESSION_MEMBERS: Readonly<Record<Client, readonly string[]>> = {
  'claude-code': ['session_id'],
  codex: ['session_id'],
  'gemini-cli': ['session_id'],
  opencode: ['session_id'],
  cline: ['rootSessionId', 'taskId'],
  cursor: ['conversation_id', 'session_id'],
};

/**
 * The session that an event names, in a text that may be cut or no JSON: it only decides where a call is counted.
 * @returns null if none is found
 */
export function sessionIn(client: Client, text: string): string | null {
  const found = SESSION_MEMBERS[client].map((name) => valueIn(text, name));
  return found.find((value) => value !== null) ?? null;
}

/** Whether the event is that of a call before it is made. What has no name counts as one. */
export const isCallIn = (text: string): boolean =>
  !/^(?:post|after|session|subagent|tool_result)/i.test(
    valueIn(text, 'hook_event_name') ?? valueIn(text, 'hookName') ?? '',
  );

const valueIn = (text: string, name: string): string | null =>
  new RegExp(`"${name}"\\s*:\\s*"([^"\\\\]{1,128})"`).exec(text)?.[1] ?? null;

/** The name of the file that counts for a session, or for events without one; its beginning is that of its home. */
export const countFileName = (home: string, client: Client, session: string | null): string =>
  `${countFilePrefix(home, client)}${hashOf(session === null ? null : toRecordedScopeValue(session))}`;

export const countFilePrefix = (home: string, client: Client): string => `${hashOf(home)}-${client}-`;

const hashOf = (value: string | null): string => sha256(canonicalJson([value])).slice(0, 32);
