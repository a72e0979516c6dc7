// The conversation that is sent to an agent again, within a limit of bytes: its first exchange, which contains its
// plan, and the newest ones.

import type { AgentExchange, RequestOutcome } from '../../engine/ports/agent-exchange.js';

/** Below this limit, even the notes about truncation would not fit. */
export const CONVERSATION_BYTES_MIN = 4_096;

/** Shares of the limit, in eighths. The first and the last exchange always fit together, so both always stay. */
const PROPOSAL_EIGHTHS = 1;
const RESPONSE_EIGHTHS = 3;

/** Bytes reserved for the note at the end of a truncated text. */
const NOTE_BYTES = 64;

/** One more exchange, before its texts are truncated. */
export interface NewExchange {
  readonly proposal: string | Uint8Array;
  readonly response: string;
  readonly request?: RequestOutcome | null;
}

/** The conversation after one more exchange. The oldest ones are dropped first, except the very first. */
export function appendExchange(
  earlier: readonly AgentExchange[],
  { proposal, response, request = null }: NewExchange,
  bytesMax: number,
): readonly AgentExchange[] {
  const eighth = Math.floor(bytesMax / 8);
  const exchange: AgentExchange = {
    proposal: truncateText(proposal, eighth * PROPOSAL_EIGHTHS),
    response: truncateText(response, eighth * RESPONSE_EIGHTHS),
    left_out: 0,
    ...(request === null ? {} : { request }),
  };
  const exchanges = [...earlier, exchange];
  let size = exchanges.reduce((sum, each) => sum + bytesOf(each), 0);
  let left_out = 0;
  while (size > bytesMax && exchanges.length > 2) {
    for (const dropped of exchanges.splice(1, 1)) {
      size -= bytesOf(dropped);
      left_out += dropped.left_out + 1;
    }
  }
  return left_out === 0 ? exchanges : exchanges.map((each, index) => (index === 1 ? addLeftOut(each, left_out) : each));
}

const addLeftOut = (exchange: AgentExchange, more: number): AgentExchange => ({
  ...exchange,
  left_out: exchange.left_out + more,
});

const bytesOf = ({ proposal, response }: AgentExchange): number =>
  Buffer.byteLength(proposal) + Buffer.byteLength(response);

/** The content as well-formed text of at most `bytesMax` bytes. Longer content is truncated, with a note. */
function truncateText(content: string | Uint8Array, bytesMax: number): string {
  const whole = typeof content === 'string' ? Buffer.byteLength(content) : content.byteLength;
  // A character has at most this number of bytes, so no longer prefix needs to be decoded.
  const prefix =
    typeof content === 'string' ? content.slice(0, bytesMax + 1) : Buffer.from(content.subarray(0, bytesMax + 1));
  // Invalid UTF-8 and unpaired surrogates become U+FFFD.
  const text = Buffer.from(prefix.toString());
  if (whole <= bytesMax && text.byteLength <= bytesMax) return text.toString();
  return `${truncateUtf8(text, bytesMax - NOTE_BYTES)}\n[cut here: this had ${whole} bytes]`;
}

/** At most `bytesMax` bytes of a text, without half a character. */
function truncateUtf8(text: Buffer, bytesMax: number): string {
  let end = Math.min(bytesMax, text.byteLength);
  while (end > 0 && isContinuation(text[end])) end -= 1;
  return text.subarray(0, end).toString();
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
