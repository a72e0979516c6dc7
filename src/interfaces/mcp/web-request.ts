// Converts requests and responses of Node to those of the web platform, which the SDK uses.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The SDK reads no address: the path was checked before. */
const ADDRESS = 'http://turnpike.invalid/mcp';

/** The head of a request. Its body was read before; its signal is aborted when the client has disconnected. */
export function toWebRequest(request: IncomingMessage, response: ServerResponse): Request {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !name.startsWith(':')) headers.set(name, [value].flat().join(', '));
  }
  return new Request(ADDRESS, { method: request.method ?? 'POST', headers, signal: gone.signal });
}

/** Sends a response, no faster than the client reads it. A client that disconnects ends it. */
export async function sendWebResponse(web: Response, response: ServerResponse): Promise<void> {
  // Without a client, a body that nothing reads would never end.
  if (response.destroyed) {
    await web.body?.cancel();
    return;
  }
  const headers = Object.fromEntries(web.headers);
  // The SDK returns JSON when it is complete: its length is known, and it needs no chunks.
  if (headers['content-type']?.startsWith('application/json') === true) {
    const bytes = Buffer.from(await web.arrayBuffer());
    response.writeHead(web.status, { ...headers, 'content-length': bytes.byteLength });
    response.end(bytes);
    return;
  }
  response.writeHead(web.status, headers);
  // A stream of events may be silent for long, and its client waits for the head.
  response.flushHeaders();
  if (web.body !== null) await sendBody(web.body.getReader(), response);
  response.end();
}

async function sendBody(reader: ReadableStreamDefaultReader<Uint8Array>, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  const stop = (): void => {
    gone.abort();
    void reader.cancel().catch(() => undefined);
  };
  response.once('close', stop);
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    if (response.destroyed) break;
    if (!response.write(read.value)) await once(response, 'drain', gone).catch(() => undefined);
  }
  response.off('close', stop);
}
