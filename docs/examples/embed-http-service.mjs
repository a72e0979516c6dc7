// A small service that embeds Turnpike: agents reach it over HTTP, on this machine only.
//
//   POST /agents                  {"case": "case-0001"}     201 {"run_id": ...}
//   POST /agents/:id/proposals    one raw proposal          200 the step's one response, whatever its outcome
//   GET  /runs/:id                                          200 the run record
//
// An `Idempotency-Key` makes it safe to repeat a proposal. There is no authentication: a service that is reachable from
// other machines adds its own, which decides who may start an agent in which case.
//
//   node docs/examples/embed-http-service.mjs [HOME] [PORT]

import { createServer } from 'node:http';
import { CodedError, openTurnpike } from 'turnpike';

const [home = 'turnpike-home', port = '8321'] = process.argv.slice(2);
/** Above the limit of the policy (64 KiB), so that a step rejects an oversized proposal and the ledger records it. */
const BODY_BYTES_MAX = 262_144;
const STATUS = { USAGE: 400, RUN_UNKNOWN: 404, RUN_ENDED: 409, AGENT_BUSY: 429, CLOSED: 503, LEDGER_UNAVAILABLE: 503 };
const ROUTES = [
  ['POST', /^\/agents$/, startAgent],
  ['POST', /^\/agents\/([\w.]{1,120})\/proposals$/, propose],
  ['GET', /^\/runs\/([\w.]{1,120})$/, showRun],
];

const turnpike = await openTurnpike({ home });
const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
  answer(request)
    .then((given) => send(response, given))
    .catch((error) => send(response, problemOf(error)));
});
server.maxConnections = 64;
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);

/** Answers the requests in flight, then closes the home directory. Remote agents continue and can be resumed. */
async function stop() {
  await new Promise((closed) => {
    server.close(closed);
    server.closeIdleConnections();
  });
  await turnpike.close();
}

async function answer(request) {
  // DNS rebinding can make a browser page call loopback under another name: only this host name is served.
  if (!/^(?:127\.0\.0\.1|localhost):\d+$/.test(request.headers.host ?? '')) return problem(403, 'HOST');
  for (const [method, pattern, handle] of ROUTES) {
    const found = pattern.exec(request.url ?? '');
    if (found !== null && request.method === method) return handle(request, found[1]);
  }
  return problem(404, 'NO_ROUTE');
}

async function startAgent(request) {
  const body = await bodyOf(request);
  if (body === null) return problem(413, 'TOO_LARGE');
  const { case: case_id } = parsed(body);
  if (typeof case_id !== 'string') return problem(400, 'USAGE', 'name a case');
  const agent = await turnpike.startAgent({ case: case_id, link: 'remote', idleMs: 900_000 });
  return { status: 201, body: { run_id: agent.run_id, correlation_id: agent.correlation_id } };
}

async function propose(request, run_id) {
  // A page cannot send this type to another origin without a CORS preflight.
  if (request.headers['content-type'] !== 'application/json') return problem(415, 'CONTENT_TYPE');
  const payload = await bodyOf(request);
  if (payload === null) return problem(413, 'TOO_LARGE');
  const key = request.headers['idempotency-key'];
  if (key !== undefined && !/^[\x21-\x7e]{1,160}$/.test(key)) return problem(400, 'USAGE', 'unusable Idempotency-Key');
  return { status: 200, body: await turnpike.submit(run_id, payload, key === undefined ? {} : { inputId: key }) };
}

async function showRun(_request, run_id) {
  const record = await turnpike.ledger.run(run_id);
  return record === null ? problem(404, 'RUN_UNKNOWN') : { status: 200, body: record };
}

/** The whole body, byte for byte, or null if it is too large; the rest is then not read. */
async function bodyOf(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parsed(body) {
  try {
    return JSON.parse(body.toString('utf8')) ?? {};
  } catch {
    return {};
  }
}

const problem = (status, code, detail = '') => ({ status, body: { status, code, detail } });

/** Errors of the library have a code. Any other error is a bug, and its text does not leave the service. */
function problemOf(error) {
  const known = error instanceof CodedError && error.code in STATUS;
  if (known) return problem(STATUS[error.code], error.code, error.message);
  console.error(error);
  return problem(500, 'INTERNAL');
}

function send(response, { status, body }) {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
  if (status === 413) response.req.destroy();
}
