// An agent run on XState's own actors, with an inspector that prints each state that an actor enters.

import { openTurnpike } from 'turnpike';

const turnpike = await openTurnpike({
  home: 'inspected-home',
  interpreter: 'xstate',
  inspect: (event) => {
    if (event.type !== '@xstate.snapshot') return;
    const { actorRef, snapshot } = event;
    console.log(actorRef.logic.id, JSON.stringify(snapshot.value), snapshot.status);
  },
});
const agent = await turnpike.startAgent({ case: 'case-0001' });
const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'Look around.' };
await agent.submit(JSON.stringify({ ...head, action: 'LIST_FILES', args: { path: '/sandbox/' } }));
await agent.end();
await turnpike.close();
