// A worker of one version of the program, which creates the ledger. It prints a line when it has joined. Each line of
// its input is a JSON command: it starts a run, or submits a proposal, and prints the result.

import { createInterface } from 'node:readline';
import { createPostgresStore, openTurnpike } from './worker-parts.js';

const { url, schema, folder } = JSON.parse(process.argv[2]);
const store = await createPostgresStore({ url, schema, caseKeysDir: `${folder}/case-keys` });
const turnpike = await openTurnpike({ store, sandbox: `${folder}/sandbox`, restarts: 'automatic', control: false });
console.log('"joined"');
for await (const line of createInterface({ input: process.stdin })) {
  const { start, run_id, proposal, inputId } = JSON.parse(line);
  try {
    const result =
      start === undefined
        ? await turnpike.submit(run_id, proposal, { inputId })
        : (await turnpike.remoteAgents.start(start)).run_id;
    console.log(JSON.stringify(result));
  } catch (error) {
    console.log(JSON.stringify({ code: error.code ?? String(error) }));
  }
}
await turnpike.close();
