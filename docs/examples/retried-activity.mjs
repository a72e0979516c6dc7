// An activity as a workflow engine runs it: at least once, with the same arguments after every failure. Here the worker
// loses the first response, as in a crash between the step and the report of the activity. The input id makes the
// repetition harmless: it gets the recorded response, and the file is written once.

import { openTurnpike } from 'turnpike';

const turnpike = await openTurnpike({ home: 'activity-home' });
const { run_id } = await turnpike.remoteAgents.start({ case: 'case-0001' });

/** The activity: its input id consists of the workflow's id and the step's name, so every attempt has the same one. */
const writeNote = ({ workflow, proposal }) => turnpike.respond(run_id, proposal, { inputId: `${workflow}/write-note` });

/** What an engine does with an activity: the same call again until one attempt reports its result. */
async function runActivity(activity, input, isLost) {
  for (let attempt = 1; ; attempt += 1) {
    const result = await activity(input);
    if (!isLost(attempt)) return { attempt, result };
  }
}

/** The engine records the input of an activity before its first attempt, so the proposal stays the same. */
const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'A note for later.' };
const args = { path: '/sandbox/note.md', content: 'Hello.\n' };
const input = { workflow: 'order-17', proposal: JSON.stringify({ ...head, action: 'WRITE_FILE', args }) };

const { attempt, result } = await runActivity(writeNote, input, (number) => number < 3);
console.log(`attempt ${attempt}:`, JSON.parse(result).outcome);

let proposals = 0;
for await (const { type, body } of turnpike.ledger.entries(run_id.split('.')[0])) {
  if (type === 'input' && body.kind === 'proposal') proposals += 1;
}
console.log('proposals in the ledger:', proposals);
await turnpike.remoteAgents.end(run_id);
await turnpike.close();
