// JSON-RPC messages as they come in: read strictly, so that nobody on the way has read another message than we do.

import type { Json } from '../../contract/json.js';
import { scanJson } from '../../step/json-scanner.js';

/** Of one message. A payload that the policy allows fits in several times, however much of it is escaped. */
export const MESSAGE_BYTES_MAX = 4_194_304;
/** Of a message: a proposal may be 64 deep, and stands a few levels inside. */
const DEPTH_MAX = 72;

/** JSON-RPC's codes. */
export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;

export type MessageReadResult =
  | { readonly ok: true; readonly message: Json }
  /** `answer` is what JSON-RPC says to it, under the id of the request where that can be made out. */
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

/** Somebody waits for an answer with this id: a reader that takes anything finds it. */
function findRequestId(text: string): string | number | null {
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown };
    return typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null;
  } catch {
    return null;
  }
}
