// A client of the service that needs neither the SDK nor the ledger: the ingress of Restate and the exchange.

import { sha256 } from '../../core/contract/hash.js';
import { RestateClientError } from '../../core/errors.js';
import { readReferenced, type ContentExchange } from './content-exchange.js';
import { parseMessage, SubmitResult } from './restate-messages.js';

/** Options of `submitThroughRestate`. */
export interface RestateSubmission {
  /** The address of the ingress, e.g. `http://127.0.0.1:8080`. */
  readonly ingress: string;
  readonly exchange: ContentExchange;
  /** The case of the run, else its tree. */
  readonly key: string;
  readonly run_id: string;
  /** The caller's id of this request: printable ASCII, at most 160 characters. */
  readonly input_id: string;
  readonly payload: string | Uint8Array;
  /** The name of the service in Restate. @default 'turnpike' */
  readonly service?: string;
  /** Further headers for `authorize`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts the request. The step may still happen: send it again with the same input id. */
  readonly signal?: AbortSignal;
}

/** What a submission has become. */
export type RestateStep = SubmitResult & {
  /** The response as the JSON text whose hash the ledger records. */
  readonly text: string;
};

/** Limit of an error message that is read, in characters. */
const CODE_CHARS_MAX = 60;

/**
 * Puts a payload into the exchange, submits it by its reference, reads the response, and removes both.
 * A caller that got no answer repeats the call with the same input id and payload.
 * @throws RestateClientError
 */
export async function submitThroughRestate(submission: RestateSubmission): Promise<RestateStep> {
  const { ingress, exchange, key, run_id, input_id, payload, service = 'turnpike', headers = {}, signal } = submission;
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const reference = { sha256: sha256(bytes), bytes: bytes.byteLength };
  const content = { kind: 'payload', run_id, input_id, sha256: reference.sha256 } as const;
  await exchange.write(content, bytes);
  const path = [service, key, 'submit'].map(encodeURIComponent).join('/');
  const response = await fetch(`${ingress}/${path}`, {
    method: 'POST',
    body: JSON.stringify({ run_id, input_id, payload: reference }),
    headers: { ...headers, 'content-type': 'application/json' },
    ...(signal === undefined ? {} : { signal }),
  }).catch((cause: unknown) => {
    throw new RestateClientError({ code: 'UNAVAILABLE', message: 'the ingress did not answer', cause });
  });
  const body = new Uint8Array(await response.arrayBuffer().catch(() => new ArrayBuffer(0)));
  const result = response.ok ? parseMessage(SubmitResult, body) : null;
  if (result === null) throw failureOf(response.status, body);
  const text = await readReferenced(exchange, { kind: 'response', run_id, input_id }, result.response);
  // A concurrent call with the same input id may have read and removed it.
  if (text === null) throw new RestateClientError({ code: 'UNAVAILABLE', message: 'the exchange has no response' });
  await exchange.remove({ kind: 'response', run_id, input_id, sha256: result.response.sha256 });
  await exchange.remove(content);
  return { ...result, text: Buffer.from(text).toString('utf8') };
}

/** A code of the service is the message of an error of Restate: `{ "message": "[404] RUN_UNKNOWN" }`. */
function failureOf(status: number, body: Uint8Array): RestateClientError {
  const text = Buffer.from(body.subarray(0, 4_096)).toString('utf8');
  const code =
    status < 500 || status === 507 ? (/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.exec(text)?.[0] ?? 'REFUSED') : 'UNAVAILABLE';
  return new RestateClientError({ code: code.slice(0, CODE_CHARS_MAX), message: `Restate answered with ${status}` });
}
