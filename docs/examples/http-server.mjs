// The HTTP service in your own server: `node http-server.mjs [PORT]` prints a token and listens.

import { createServer } from 'node:http';
import { openTurnpike } from 'turnpike';
import { TokenFile, turnpikeHttp } from 'turnpike/http';

const [port = '8080'] = process.argv.slice(2);
const turnpike = await openTurnpike({ home: 'turnpike-home' });
// The file of the tokens of `turnpike token`. This token is new, and printed once.
const tokens = new TokenFile(turnpike.home.tokens);
const { token } = tokens.mint({ actor: 'reporter', role: 'SANDBOX_AGENT', rights: ['act'], days: 30 });

const http = turnpikeHttp({ turnpike, tokens, hosts: [`127.0.0.1:${port}`] });
const server = createServer((request, response) => void http.handler(request, response));
server.listen(Number(port), '127.0.0.1', () => console.log(token));
// Or, in your own Fastify: fastify.register(http.plugin)

process.once('SIGTERM', async () => {
  http.endStreams();
  await new Promise((closed) => server.close(closed).closeIdleConnections());
  await http.close();
  await turnpike.close();
});
