// A process that lets an agent work in the run of a key, and may be killed at any time. Its arguments: the home, the
// contract folder, the file that notes each call of the agent.

import { appendFileSync } from 'node:fs';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import type { Agent } from '../../../src/engine/ports/agent-exchange.js';
import { openTurnpike } from '../../../src/host/turnpike.js';

const [home = '', contract = '', calls = ''] = process.argv.slice(2);
const write = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

/** Writes a file, and then finishes with the last outcome. */
const agent: Agent = {
  propose({ conversation, last_response, fresh_id }) {
    appendFileSync(calls, `${conversation.length}\n`);
    const [action, args] =
      last_response === null
        ? ['WRITE_FILE', { path: '/sandbox/a.md', content: 'Hello.\n' }]
        : ['FINISH', { response: JSON.stringify(last_response) }];
    const raw = JSON.stringify({ schema_version: '1.0.0', id: fresh_id, reasoning: 'My task.', action, args });
    return Promise.resolve({ raw, tokens: 10 });
  },
};

const turnpike = await openTurnpike({ home, policies: manifestPolicySource(contract) });
const run = await turnpike.startAgent({ key: 'task-1', case: 'case-0001' });
write({ run_id: run.run_id, resumed: run.resumed, requests: await turnpike.requests(run.run_id) });
const report = await turnpike.runAgent(agent, run, { onRequest: (request) => write({ request }) });
write({ reason: report.reason, answer: report.answer, counts: report.counts });
await turnpike.close();
