import { defineTool, openTurnpike } from 'turnpike';

const object = (of) => ({ type: 'object', properties: of, required: Object.keys(of), additionalProperties: false });
const refund = defineTool({
  name: 'orders.refund',
  input: object({ order: { type: 'string' }, cents: { type: 'integer' } }),
  output: object({ paid: { type: 'integer' } }),
  idempotent: false, // two attempts could pay twice, so no attempt is repeated
  run: ({ order, cents }) => {
    console.log(`the bank pays ${cents} cents back for order ${order}`);
    return { paid: cents };
  },
});
const turnpike = await openTurnpike({ home: '.turnpike', contract: 'contract', tools: [refund] });
const agent = await turnpike.startAgent({ role: 'SUPPORT_AGENT', lane: 'REFUNDS', case: 'customer-7' });
const call = { action: 'CALL_TOOL', args: { tool: 'orders.refund', input: { order: 'A-17', cents: 1250 } } };
const request = { schema_version: '1.0.0', reasoning: 'It arrived broken.', ...call }; // a model, or an adapter
const ask = () => agent.submit(JSON.stringify({ id: crypto.randomUUID(), ...request }));

console.log('first time:', (await ask()).error.message);
const [held] = await turnpike.requests(agent.run_id);
const vote = { actor: 'anna', role: 'APPROVER', decision: 'approve' };
await turnpike.approve({ run: agent.run_id, digests: [held.digest], ...vote }); // the digest names exactly this request
console.log('after the approval by anna:', (await ask()).outcome);
console.log('once more:', (await ask()).error.message);
console.log('the ledger is', (await turnpike.ledger.verify()).verdict);
await turnpike.close();
