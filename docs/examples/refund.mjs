import { defineTool, openTurnpike } from 'turnpike';

const object = (of) => ({ type: 'object', properties: of, required: Object.keys(of), additionalProperties: false });
const refund = defineTool({
  name: 'orders.refund',
  input: object({ order: { type: 'string' }, cents: { type: 'integer' } }),
  output: object({ paid: { type: 'integer' } }),
  idempotent: false, // a second payment would be a second payment: never repeat it
  run: ({ order, cents }) => {
    console.log(`the bank pays ${cents} cents back for order ${order}`);
    return { paid: cents };
  },
});
const turnpike = await openTurnpike({ home: '.turnpike', contract: 'contract', tools: [refund] });
const agent = await turnpike.startAgent({ role: 'SUPPORT_AGENT', lane: 'REFUNDS', case: 'customer-7' });
const call = { action: 'CALL_TOOL', args: { tool: 'orders.refund', input: { order: 'A-17', cents: 1250 } } };
const request = { schema_version: '1.0.0', reasoning: 'It arrived broken.', ...call }; // a model writes this
const ask = () => agent.submit(JSON.stringify({ id: crypto.randomUUID(), ...request }));

console.log('first time:', (await ask()).error.message);
for await (const { run_id, digest } of turnpike.ledger.approvals(new Date().toISOString()))
  await turnpike.approve({ run: run_id, digests: [digest], actor: 'anna', role: 'APPROVER', decision: 'approve' });
console.log('after the approval of anna:', (await ask()).outcome);
console.log('once more:', (await ask()).error.message);
console.log('the record is', (await turnpike.ledger.verify()).verdict);
await turnpike.close();
