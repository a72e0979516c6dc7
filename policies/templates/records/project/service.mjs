// An agent writes a ticket, changes it, and reads it. Another case does not see it.
//
//   node service.mjs [HOME]

import { openTurnpike } from 'turnpike';
import { targets } from './definitions.mjs';

const [home = '.turnpike'] = process.argv.slice(2);
const turnpike = await openTurnpike({ home, contract: 'contract', targets });

/** Lets an agent submit one proposal for a case, as a model would write it. */
const propose = async (caseId, action, args) => {
  const agent = await turnpike.startAgent({ lane: 'TICKETS', role: 'RECORDS_AGENT', case: caseId });
  const proposal = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'It is my task.', action, args };
  const { outcome, result } = await agent.submit(JSON.stringify(proposal));
  await agent.end();
  console.log(outcome, JSON.stringify(result?.records ?? null));
};
const ticket = (done) => ({
  target: 'tickets',
  mode: 'upsert',
  record: { id: 't1', title: 'Ask for the invoice.', done },
});

await propose('case-0001', 'WRITE_RECORD', ticket(false));
await propose('case-0001', 'WRITE_RECORD', ticket(true));
await propose('case-0001', 'READ_RECORDS', { target: 'tickets' });
await propose('case-0002', 'READ_RECORDS', { target: 'tickets' });
await turnpike.close();
