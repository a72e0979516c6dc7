// A worker of one version of the program, which creates the ledger unless it `joins`. It prints a line when it has
// joined. Each line of its input is a JSON command: it starts a run, or submits a proposal, and prints the result.
// With `later` it is of a later version: it knows one more flag, and reports itself to the list of workers as version
// 99.0.0 at that address.

import { createInterface } from 'node:readline';
import * as parts from './worker-parts.js';

const { url, schema, folder, later, joins } = JSON.parse(process.argv[2]);
if (later !== undefined) parts.FLAGS.push({ number: 9_999, what: 'A flag of a later version.' });
const openStore = joins === true ? parts.openPostgresStore : parts.createPostgresStore;
const store = await openStore({ url, schema, caseKeysDir: `${folder}/case-keys` });
const turnpike = await parts.openTurnpike({
  store,
  sandbox: `${folder}/sandbox`,
  restarts: 'automatic',
  control: false,
});
if (later !== undefined) {
  const report = {
    version: '99.0.0',
    address: later,
    volume_id: 'vol_1',
    overlay_epoch: 0,
    refuses: null,
    later_trees: 0,
  };
  await parts.openPostgresCluster({ url, schema }).report(report);
}
console.log('"joined"');
for await (const line of createInterface({ input: process.stdin })) {
  const { start, attached, run_id, proposal, inputId } = JSON.parse(line);
  try {
    let result;
    if (attached !== undefined) result = (await turnpike.startAgent(attached)).run_id;
    else if (start !== undefined) result = (await turnpike.remoteAgents.start(start)).run_id;
    else result = await turnpike.submit(run_id, proposal, { inputId });
    console.log(JSON.stringify(result));
  } catch (error) {
    console.log(JSON.stringify({ code: error.code ?? String(error) }));
  }
}
await turnpike.close();
