// A gate of one function, for the events of clients: it reads them with the dialects of the package, and replies with
// them. It shows what a client does with a reply, without policy, ledger and service. `decide` gets the read event and
// its number among the calls, and returns an answer, or the text 'hang' or 'cut'.

import { createServer } from 'node:http';

/** Starts the gate. `events` holds `{ event, read, answer }` of everything that came. */
export async function startDialectGate(port, dialects, decide) {
  const events = [];
  let rule = decide;
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const client = request.url.slice(1);
    const dialect = dialects[client];
    const event = JSON.parse(Buffer.concat(parts).toString());
    const read = dialect.readEvent(event);
    const entry = { event, read, answer: null };
    events.push(entry);
    const calls = events.filter(({ read: one }) => one?.kind === 'call').length;
    entry.answer = read?.kind === 'call' ? await rule(read, calls, event) : { decision: 'none' };
    if (entry.answer === 'hang') return;
    if (entry.answer === 'cut') return void request.socket.destroy();
    const reply =
      read === null ? dialect.writeFailure('Turnpike: the event cannot be read', event) : replyOf(entry, dialect);
    response.end(JSON.stringify(reply));
  });
  await new Promise((listening) => server.listen(port, '127.0.0.1', listening));
  return {
    events,
    setRule: (next) => (rule = next),
    close: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}

const replyOf = ({ answer, event }, dialect) =>
  typeof answer === 'string' ? dialect.writeFailure('Turnpike: no decision', event) : dialect.writeReply(answer, event);
