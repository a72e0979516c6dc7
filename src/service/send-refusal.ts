import type { ServerResponse } from 'node:http';
import { problemText, PROBLEM_TYPE, type Refusal } from './problems.js';

/** Answers with a problem document. The client may still be sending, so its connection is not used again. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const text = problemText(refusal);
  response.writeHead(refusal.status, {
    ...refusal.headers,
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  });
  response.end(text);
}
