// A language model works on a task until it finishes. This example uses the AI SDK's own mock, so that it needs no
// network: replace it with a model of a provider package.
//
//   npm install turnpike ai
//   node agent.mjs

import { MockLanguageModelV3 } from 'ai/test';
import { openTurnpike, renderAgentOutput } from 'turnpike';
import { aiSdkAgent } from 'turnpike/ai';

/** The output of the model in each turn. The first one has a Markdown fence: it is rejected with INVALID_JSON. */
const LINES = [
  (id) => `\`\`\`json\n${proposal(id, 'LIST_FILES', { path: '/sandbox/' })}\n\`\`\``,
  (id) => proposal(id, 'WRITE_FILE', { path: '/sandbox/note.md', content: 'Hello.\n' }),
  (id) => proposal(id, 'WRITE_FILE', { path: '/sandbox/run.sh', content: 'rm -rf /\n' }),
  (id) => proposal(id, 'READ_FILE', { path: '/sandbox/note.md' }),
  (id) => proposal(id, 'FINISH', { response: 'The note says hello.' }),
];
const proposal = (id, action, args) =>
  JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'It is my task.', action, args });

let turn = 0;
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const [, id] = /An id for your next proposal: (\S+)$/.exec(prompt.at(-1).content[0].text);
    return {
      content: [{ type: 'text', text: LINES[turn++](id) }],
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { inputTokens: { total: 900 }, outputTokens: { total: 100 } },
      warnings: [],
    };
  },
});

/** An agent is one function. This one prints the last response and passes the turn to the model. */
const asked = aiSdkAgent({ model });
const agent = {
  propose: (told, signal) => {
    if (told.last_response !== null) console.log(renderAgentOutput(told.last_response).agent_output);
    return asked.propose(told, signal);
  },
};

const turnpike = await openTurnpike({ home: 'agent-home' });
const run = await turnpike.startAgent({ case: 'case-0001', budget: { tokens: 50_000 } });
const report = await turnpike.runAgent(agent, run, { task: 'Keep a note that says hello.', maxSteps: 10 });
console.log(report.reason, report.ending.state, report.counts);
console.log(report.answer);
console.log((await turnpike.ledger.verify()).ok, (await turnpike.replay()).ok);
await turnpike.close();
