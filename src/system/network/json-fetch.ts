// Fetches a JSON document of another service, within limits: of its size, of the time, and of where it comes from.

import { isJsonObject, type JsonObject, readJson } from '../../core/contract/json.js';
import { isSafeUrl } from '../../core/contract/safe-url.js';

const FETCH_MS_MAX = 5_000;

/** The document, or why it is missing. The reason is for the log. */
export type JsonFetchResult = { readonly json: JsonObject } | { readonly failed: string };

export interface JsonFetchOptions {
  readonly bytesMax: number;
  /** For a form that is posted. */
  readonly form?: URLSearchParams;
  /** For JSON that is posted. Without it and a form: a GET. */
  readonly body?: string;
  /** Default: 5 s. */
  readonly timeoutMs?: number;
  readonly authorization?: string;
}

/** Whether an address that a document of `issuer` names may be used: not without TLS if the issuer has it. */
export const isSafeEndpoint = (text: string, issuer: string): boolean =>
  isSafeUrl(text) && (text.startsWith('https:') || issuer.startsWith('http:'));

/** Never throws. Redirects are refused: the address was configured, or comes from a checked document. */
export async function fetchJson(
  url: string,
  { bytesMax, form, body, timeoutMs = FETCH_MS_MAX, authorization }: JsonFetchOptions,
): Promise<JsonFetchResult> {
  if (!isSafeUrl(url)) return { failed: 'the address is neither https nor of this machine' };
  try {
    const response = await fetch(url, {
      method: form === undefined && body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      credentials: 'omit',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: form ?? body ?? null,
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      return { failed: `it answered with status ${response.status}` };
    }
    const bytes = await readBounded(response, bytesMax);
    if (bytes === null) return { failed: `its answer is longer than ${bytesMax} bytes` };
    const json = readJson(bytes);
    if (json === undefined) return { failed: 'its answer is not JSON, or has a member twice' };
    return isJsonObject(json) ? { json } : { failed: 'its answer is not a JSON object' };
  } catch (error) {
    return { failed: describeFailure(error) };
  }
}

/** Null if the body is longer than the limit. */
async function readBounded(response: Response, bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  if (response.body === null) return new Uint8Array(0);
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    // Leaving the loop cancels the body.
    if (length > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The name of the error only: its text may repeat what the other side has sent. */
function describeFailure(error: unknown): string {
  const { cause, name = 'Error' } = error as { readonly cause?: { readonly code?: unknown }; readonly name?: string };
  const code = cause?.code;
  return `it could not be reached (${typeof code === 'string' ? code : name})`;
}
