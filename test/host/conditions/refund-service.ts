// A service that refunds payments, for tests of conditions.

import Type from 'typebox';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import type { BenchOptions } from '../../fixtures/bench.js';
import { serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

/** The refunds that were paid. */
export const refunds: { readonly key: string; readonly amount: number }[] = [];
export const refund = defineTool({
  name: 'payments.refund',
  summary: 'Refund a payment.',
  input: Type.Object(
    { order: Type.String({ maxLength: 40 }), amount: Type.Integer({ minimum: 1 }) },
    { additionalProperties: false },
  ),
  output: Type.Object({ receipt: Type.String() }, { additionalProperties: false }),
  idempotent: false,
  timeout: 1_000,
  resultBytesMax: 1_000,
  run: ({ amount }, { idempotency_key: key }) => {
    refunds.push({ key, amount });
    return { receipt: `r-${amount}` };
  },
});

/** The shipped policy, with a lane that may call the tool. */
export const refundEdit: NonNullable<BenchOptions['edit']> = (name, text) =>
  serviceEdit(name, text).replace('tools: [billing.charge', 'tools: [payments.refund, billing.charge');

/** The proposal of a refund. */
export const refundCall = (amount: number, order = 'o-1'): string =>
  JSON.stringify(proposal('CALL_TOOL', { tool: 'payments.refund', input: { order, amount } }));
