import type { RecordedInput } from '../run/input.js';

/** The label of the row of a proposal; null for one without a label of its own. May throw for a tampered proposal. */
export type ProposalLabel = (proposal: Extract<RecordedInput, { readonly kind: 'proposal' }>) => string | null;
