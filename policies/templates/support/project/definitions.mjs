// What the service registers. Loading this file starts nothing, so `turnpike registrations` can read it.

import { defineTool } from 'turnpike';

const closed = (properties) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});

/** What was refunded, in place of a payment provider. */
export const refunds = [];

export const tools = [
  defineTool({
    name: 'orders.refund',
    summary: 'Refund an order, in cents.',
    input: closed({
      order: { type: 'string', maxLength: 40 },
      cents: { type: 'integer', minimum: 1, maximum: 50000 },
    }),
    output: closed({ refunded: { type: 'integer' } }),
    // The payment provider deduplicates by the key, so an attempt may be repeated.
    idempotent: true,
    run: ({ order, cents }, { idempotency_key }) => {
      refunds.push({ order, cents, idempotency_key });
      return { refunded: cents };
    },
  }),
];
