import { openTurnpike } from 'turnpike';

const turnpike = await openTurnpike({ home: 'turnpike-home' });
const agent = await turnpike.startAgent({ case: 'case-0001' });
const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'A note for later.' };
const proposal = { ...head, action: 'WRITE_FILE', args: { path: '/sandbox/note.md', content: 'Hello.\n' } };
console.log(await agent.submit(JSON.stringify(proposal)));
console.log(await agent.end());
console.log((await turnpike.ledger.verify()).ok, (await turnpike.replay()).ok);
await turnpike.close();
