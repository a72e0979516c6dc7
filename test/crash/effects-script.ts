// The fixed actions of one agent: one action of every kind that has an effect, and reads between them.

import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import { proposalOf } from './script.js';

/** One action, and how its effect is recognized. */
export interface Act {
  /** A text in the traces of the effect; null if it changes nothing. */
  readonly what: string | null;
  /** The name of the mediated run. */
  readonly request: string;
  readonly payload: string;
  readonly proposal_id: string;
  readonly kind: 'unaskable' | 'idempotent' | 'reconciled' | 'own' | 'other' | 'file' | 'read';
}

const CALLS = [
  ['unaskable', 'billing.charge'],
  ['idempotent', 'mail.send'],
  ['reconciled', 'bank.transfer'],
] as const;
const WRITES = [
  ['own', 'facts', 'append'],
  ['own', 'entities', 'upsert'],
  ['other', 'orders', 'append'],
  ['other', 'balances', 'upsert'],
] as const;

/** Omitted from a short life; one action for each way to lose an outcome remains. */
const LEFT_OUT = ['mail.send', 'bank.transfer', 'entities', 'orders', 'read.orders', 'sandbox_files'];

/** The actions of the agent `who`, or those of a short life. */
export const actsOf = (who: string, brief = false): readonly Act[] =>
  allOf(who).filter(({ request }) => !(brief && LEFT_OUT.includes(request)));

const allOf = (who: string): readonly Act[] => [
  ...CALLS.map(([kind, tool]) => act(who, kind, tool, 'CALL_TOOL', (what) => ({ tool, input: { what } }))),
  ...WRITES.map(([kind, target, mode]) =>
    act(who, kind, target, 'WRITE_RECORD', (id) => ({ target, mode, record: { id, text: `of ${who}` } })),
  ),
  act(who, 'read', 'read.facts', 'READ_RECORDS', () => ({ target: 'facts' })),
  act(who, 'read', 'read.orders', 'READ_RECORDS', () => ({ target: 'orders' })),
  act(who, 'file', 'sandbox_files', 'WRITE_FILE', (what) => ({ path: fileOf(what), content: what })),
];

export const fileOf = (what: string): string => `/sandbox/${what}.txt`;

/** The agent's whole life. The ledger records its responses. */
export async function follow(agent: AgentRun, who: string, brief = false): Promise<void> {
  for (const { payload } of actsOf(who, brief)) await agent.submit(payload);
  await agent.submit(proposalOf(`${who} finish`, 'FINISH', { response: 'done' }));
}

function act(who: string, kind: Act['kind'], request: string, action: string, args: (what: string) => object): Act {
  const what = `${who}-${request}`;
  const payload = proposalOf(what, action, args(what));
  const { id } = JSON.parse(payload) as { readonly id: string };
  return { what: kind === 'read' ? null : what, request, payload, proposal_id: id, kind };
}
