// Parses JSON-RPC messages strictly, so that no intermediary can have read a different message.

import { type Json, scanJson } from '../../core/contract/json.js';

/** Size limit of one message in bytes. It is several times that of a payload, however many escapes that contains. */
export const MESSAGE_BYTES_MAX = 4_194_304;
/** Depth limit of a message: a proposal may have a depth of 64, and is nested a few levels. */
const DEPTH_MAX = 72;

/** Error codes of JSON-RPC. */
export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;

type MessageReadResult =
  | { readonly ok: true; readonly message: Json }
  /** `answer` is the JSON-RPC error response, with the id of the request if that can be found. */
  | { readonly ok: false; readonly answer: string };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readMessage(bytes: Uint8Array): MessageReadResult {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { ok: false, answer: errorResponse(PARSE_ERROR, 'Parse error: not UTF-8') };
  }
  const scanned = scanJson(text, DEPTH_MAX, 'exact');
  if (scanned.ok) return { ok: true, message: scanned.value };
  return { ok: false, answer: errorResponse(PARSE_ERROR, `Parse error: ${scanned.problem}`, findRequestId(text)) };
}

export const errorResponse = (code: number, message: string, id: string | number | null = null): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });

/** Finds the id with a lenient parser, because a client waits for a response with this id. */
function findRequestId(text: string): string | number | null {
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown };
    return typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null;
  } catch {
    return null;
  }
}
