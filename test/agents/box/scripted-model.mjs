// A scripted model on loopback, for the APIs that coding agents speak: Anthropic Messages, OpenAI Responses and Chat
// Completions, and Gemini.
//
// A script is a list of turns, `{ text }` or `{ calls: [{ tool, input }] }`, or an object of such lists: `default`, and
// others by a word that stands in the first message of a user, for subagents. The server has no state: the calls that a
// conversation holds already determine the next turn. A call with `capture` gets, in place of "$1" in its input, what
// group 1 of that expression last matched in the request. `before` of a turn is awaited before its first answer.

import { createServer } from 'node:http';
import { CHAT, GEMINI, MESSAGES, RESPONSES } from './model-apis.mjs';

/** Starts the model. `requests` holds every body that a client has sent; `setScript` replaces the script. */
export async function startModel(port, firstScript) {
  let script = firstScript;
  const requests = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const path = request.url.split('?')[0];
    const raw = Buffer.concat(parts).toString();
    const body = raw === '' ? {} : JSON.parse(raw);
    requests.push({ path, body });
    await respond(request.method, path, body, response, script);
  });
  await new Promise((listening) => server.listen(port, '127.0.0.1', listening));
  return {
    requests,
    setScript: (next) => (script = next),
    close: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}

const APIS = [
  [/\/messages$/, MESSAGES],
  [/\/responses$/, RESPONSES],
  [/\/chat\/completions$/, CHAT],
  [/:(?:streamG|g)enerateContent$/, GEMINI],
];

/** The turns whose `before` was called. */
const prepared = new WeakSet();

async function prepare(turn) {
  if (turn.before === undefined || prepared.has(turn)) return;
  prepared.add(turn);
  await turn.before();
}

async function respond(method, path, body, response, script) {
  if (method !== 'POST') return sendJson(response, { object: 'list', data: [], models: [] });
  if (path.endsWith('/count_tokens')) return sendJson(response, { input_tokens: 10 });
  if (path.endsWith(':countTokens')) return sendJson(response, { totalTokens: 10 });
  const api = APIS.find(([pattern]) => pattern.test(path))?.[1];
  if (api === undefined) return sendJson(response, { error: { message: 'no such route', type: 'not_found' } }, 404);
  const conversation = api.read(body);
  const turn = conversation.hasTools ? turnFor(script, conversation) : { text: conversation.fallback ?? 'ok' };
  await prepare(turn);
  const { whole, events } = api.write(filled(turn, body), body);
  return api.streams(body, path) ? sendEvents(response, events) : sendJson(response, whole);
}

function turnFor(script, { calls, firstText }) {
  const word = Array.isArray(script)
    ? null
    : Object.keys(script).find((key) => key !== 'default' && firstText.includes(key));
  let left = calls;
  for (const turn of Array.isArray(script) ? script : script[word ?? 'default']) {
    if (turn.calls === undefined || left < turn.calls.length) return turn;
    left -= turn.calls.length;
  }
  return { text: 'The script is over' };
}

const filled = (turn, body) => ({ ...turn, calls: turn.calls?.map((call) => filledCall(call, JSON.stringify(body))) });

function filledCall(call, raw) {
  const found = call.capture && [...raw.matchAll(new RegExp(call.capture, 'g'))].pop()?.[1];
  if (!found) return call;
  return {
    ...call,
    input: JSON.parse(
      JSON.stringify(call.input).replaceAll('"$1"', /^\d+$/.test(found) ? found : JSON.stringify(found)),
    ),
  };
}

const sendJson = (response, body, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

const sendEvents = (response, events) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const [name, data] of events) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${name === null ? '' : `event: ${name}\n`}data: ${text}\n\n`);
  }
  response.end();
};
