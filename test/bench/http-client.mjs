// The client of `npm run bench -- http`: as many connections as there are runs, each proposing in its own.

import autocannon from '../../tools/ci/autocannon.mjs';
import { payload } from './payloads.mjs';

const { url, token, runs, seconds } = JSON.parse(process.argv[2]);
let next = 0;
let steps = 0;
let errors = 0;

const instance = autocannon({
  url,
  connections: runs.length,
  duration: seconds,
  setupClient: (client) => {
    const run = runs[next];
    next += 1;
    client.setRequests([
      {
        method: 'POST',
        path: `/api/v1/agents/${run}/steps`,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        setupRequest: (request) => ({ ...request, body: payload('read') }),
        onResponse: (status, body) => {
          steps += 1;
          if (status !== 200 || !body.includes('"outcome":"SUCCESS"')) errors += 1;
        },
      },
    ]);
  },
});
const { duration, errors: broken, timeouts } = await instance;
console.log(JSON.stringify({ rate: steps / duration, errors: errors + broken + timeouts }));
