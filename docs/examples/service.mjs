// A service with a tool, two tables, a promotion that waits for a second person, and an export.
//
//   turnpike init --template reference
//   cp contract/policy/actions.service.yaml contract/policy/actions.yaml && turnpike policy pin
//   node service.mjs

import Type from 'typebox';
import { defineTarget, defineTool, openTurnpike } from 'turnpike';

const closed = { additionalProperties: false };
const record = Type.Object({ id: Type.String(), text: Type.String() }, closed);
const said = [];

const turnpike = await openTurnpike({
  home: 'service-home',
  contract: 'contract',
  tools: [
    defineTool({
      name: 'interview.prompt.next',
      input: Type.Object({ topic: Type.String() }, closed),
      output: Type.Object({ question: Type.String() }, closed),
      idempotent: true,
      run: ({ topic }, { idempotency_key }) => {
        said.push(idempotency_key);
        return { question: `What do you remember of ${topic}?` };
      },
    }),
  ],
  targets: [
    defineTarget({ name: 'transcripts', record, key: ['id'] }),
    defineTarget({ name: 'shared_playbooks', record, key: ['id'], plane: 'shared' }),
  ],
});

/** One proposal, as a model would write it. */
const propose = async (agent, action, args) => {
  const proposal = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'It is my task.', action, args };
  const { outcome, result, error } = await agent.submit(JSON.stringify(proposal));
  console.log(action, outcome, result ?? error.message);
};

const asked = { role: 'INTERVIEW_AGENT', case: 'case-0001', scope: { client_session_id: 'session-1' } };
const interview = await turnpike.startAgent({ lane: 'TOOL_INTERVIEW_CAPTURE', ...asked });
await propose(interview, 'CALL_TOOL', { tool: 'interview.prompt.next', input: { topic: 'the evening' } });
await propose(interview, 'CALL_TOOL', { tool: 'mail.send', input: {} });
await interview.end();

const intake = await turnpike.startAgent({ lane: 'WRITE_INTAKE_ARTIFACTS', ...asked });
const text = 'The witness saw a red car leave the yard at ten in the evening.';
await propose(intake, 'WRITE_RECORD', { target: 'transcripts', mode: 'append', record: { id: 't1', text } });
await propose(intake, 'READ_RECORDS', { target: 'transcripts' });
await intake.end();

const anna = { actor: 'anna', role: 'ATTORNEY_ADMIN', case: 'case-0001' };
const bert = { actor: 'bert', role: 'ATTORNEY_ADMIN', decision: 'approve' };
const promote = (id, insight) =>
  turnpike.promote({ ...anna, ticket: 'T-1', target: 'shared_playbooks', record: { id, text: insight } });

const copied = await promote('p1', 'One saw a red car leave the yard at ten in the evening.');
console.log('promotion', (await copied.finished).reason);
const insight = await promote('p2', 'Ask about vehicles early.');
await turnpike.approve({ run: insight.run_id, digests: [insight.digest], ...bert });
console.log('promotion', (await insight.finished).state);

const bundle = await turnpike.export({ ...anna, reason: 'internal review', destination: 'bundle' });
await turnpike.approve({ run: bundle.run_id, digests: [bundle.digest], ...bert });
console.log('export', (await bundle.finished).state);

console.log((await turnpike.ledger.verify()).ok, (await turnpike.replay()).ok, said.length);
await turnpike.close();
