// A workflow function that is executed again after a crash, with a table of its steps in the database of the caller.
// The process "crashes" after a step happened and before its row was written. The second execution reads the rows,
// repeats what has none, and gets the recorded response of the step by its input id.

import Database from 'better-sqlite3';
import { openTurnpike } from 'turnpike';

const table = new Database('workflows.db');
table.exec('CREATE TABLE IF NOT EXISTS steps (workflow TEXT, name TEXT, output TEXT, PRIMARY KEY (workflow, name))');
const turnpike = await openTurnpike({ home: 'steps-home' });
const find = table.prepare('SELECT output FROM steps WHERE workflow = ? AND name = ?').pluck();
const insert = table.prepare('INSERT INTO steps VALUES (?, ?, ?)');
let crashes = 1;

/** Runs a step unless the table has its output. */
async function step(workflow, name, work) {
  const known = find.get(workflow, name);
  if (known !== undefined) return JSON.parse(known);
  const output = await work(`${workflow}/${name}`);
  if (name === 'second' && crashes-- > 0) throw new Error('crash before the row is written');
  insert.run(workflow, name, JSON.stringify(output));
  return output;
}

/** Everything that the function needs is an output of a step, so every execution makes the same proposals. */
async function workflow(id) {
  const { run_id } = await step(id, 'start', () => turnpike.remoteAgents.start({ case: 'case-0001' }));
  const propose = (name, content) =>
    step(id, name, async (inputId) => {
      const proposal = await step(id, `${name}-proposal`, () => proposalText(name, content));
      return JSON.parse(await turnpike.respond(run_id, proposal, { inputId }));
    });
  const outcomes = [];
  for (const name of ['first', 'second', 'third']) outcomes.push((await propose(name, `${name}\n`)).outcome);
  await turnpike.remoteAgents.end(run_id);
  return { run_id, outcomes };
}

function proposalText(name, content) {
  const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'It is my task.' };
  return JSON.stringify({ ...head, action: 'WRITE_FILE', args: { path: `/sandbox/${name}.md`, content } });
}

await workflow('order-17').catch((error) => console.log('first execution:', error.message));
const { run_id, outcomes } = await workflow('order-17');
console.log('second execution:', ...outcomes);

let proposals = 0;
for await (const { type, body } of turnpike.ledger.entries(run_id.split('.')[0])) {
  if (type === 'input' && body.kind === 'proposal') proposals += 1;
}
console.log('proposals in the ledger:', proposals);
await turnpike.close();
