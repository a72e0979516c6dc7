// The client of http-step-cost: one connection for each run, each sending its next step when it has the response.

import { Agent, request } from 'node:http';
import { payload } from './payloads.mjs';

const { url, token, runs, kind, steps } = JSON.parse(process.argv[2]);
const { hostname, port } = new URL(url);
let left = steps;
let failures = 0;

function step(run, agent) {
  const body = payload(kind);
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ hostname, port, agent, method: 'POST', path: `/api/v1/agents/${run}/steps` },
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => {
        if (response.statusCode !== 200 || !text.includes('"outcome":"SUCCESS"')) failures += 1;
        resolve();
      });
    });
    sent.end(body);
  });
}

console.log('begun');
await Promise.all(
  runs.map(async (run) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (left > 0) {
      left -= 1;
      await step(run, agent);
    }
    agent.destroy();
  }),
);
console.log(JSON.stringify({ failures }));
