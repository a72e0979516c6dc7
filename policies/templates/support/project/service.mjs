// An agent proposes a refund. It is denied until a person has approved exactly this refund.
//
//   node service.mjs [HOME]

import { openTurnpike } from 'turnpike';
import { refunds, tools } from './definitions.mjs';

const [home = '.turnpike'] = process.argv.slice(2);
const turnpike = await openTurnpike({ home, contract: 'contract', tools });
const agent = await turnpike.startAgent({ lane: 'REFUNDS', role: 'SUPPORT_AGENT', case: 'case-0001' });

/** Submits the refund as a model would write it. */
const propose = async () => {
  const args = { tool: 'orders.refund', input: { order: 'A-17', cents: 1250 } };
  const proposal = {
    schema_version: '1.0.0',
    id: crypto.randomUUID(),
    reasoning: 'It arrived broken.',
    action: 'CALL_TOOL',
  };
  const { outcome, error } = await agent.submit(JSON.stringify({ ...proposal, args }));
  console.log(`${outcome}: ${error?.message ?? 'executed'}; ${refunds.length} refunded`);
};

await propose();
// A person sees the exact request with `turnpike approvals`, and votes with `turnpike approve`.
for await (const { run_id, digest } of turnpike.ledger.approvals(new Date().toISOString())) {
  await turnpike.approve({ run: run_id, digests: [digest], actor: 'anna', role: 'APPROVER', decision: 'approve' });
}
await propose();
await agent.end();
await turnpike.close();
