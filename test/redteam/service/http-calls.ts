// Requests as the clients of the campaign make them.

import { Agent, request } from 'node:http';

export interface Call {
  readonly url: string;
  readonly token: string;
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: a new connection. */
  readonly agent?: Agent;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export const keptAlive = (): Agent => new Agent({ keepAlive: true, maxSockets: 1 });

const TIMEOUT_MS = 20_000;

/** @throws Error without a response */
export function call({ url, token, method = 'GET', body, headers = {}, agent }: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      agent: agent ?? false,
      timeout: TIMEOUT_MS,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
        ...headers,
      },
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
    });
    sent.end(body);
  });
}
