// Calls that a hook has denied without a decision of the service: nothing of them is in the ledger. The hook program
// counts them in a file for each session, outside of the project, and reports the counts with the next event. Anyone
// may have changed such a file, so it holds nothing but counts: one byte for each call.

import { CLIENT_NAMES } from './clients/client-names.js';
import type { Client, UndecidedReason } from './hook-event.js';

/** How many calls were denied for each reason. */
export type UndecidedCounts = Readonly<Partial<Record<UndecidedReason, number>>>;

/** No file counts more calls. */
export const UNDECIDED_MAX = 4_096;

export const totalOf = (counts: UndecidedCounts): number =>
  Object.values(counts).reduce((sum: number, count) => sum + count, 0);

/**
 * The session that an event names, in a text that may be cut or no JSON: it only decides where a call is counted.
 * @returns null if none is found
 */
export function sessionIn(client: Client, text: string): string | null {
  const found = CLIENT_NAMES[client].sessionMembers.map((name) => valueIn(text, name));
  return found.find((value) => value !== null) ?? null;
}

/** Whether the event is that of a call before it is made. What has no name counts as one. */
export const isCallIn = (text: string): boolean =>
  !/^(?:post|after|session|subagent|tool_result)/i.test(
    valueIn(text, 'hook_event_name') ?? valueIn(text, 'hookName') ?? '',
  );

const valueIn = (text: string, name: string): string | null =>
  new RegExp(`"${name}"\\s*:\\s*"([^"\\\\]{1,128})"`).exec(text)?.[1] ?? null;
