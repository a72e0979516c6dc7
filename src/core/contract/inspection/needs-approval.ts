// How an inspector presents a decision that waits for an approval. The recorded outcome stays as it is: DENIED for a
// proposal of an agent, and `allow` for a promotion or export that waits in `created` (D7).

/** The rule of a decision that waits for an approval. */
export const APPROVAL_RULE = 'approval.required';

/** The label and the tone of such a decision. */
export const NEEDS_APPROVAL = 'needs approval';

export const needsApproval = (rule_id: string | null | undefined): boolean => rule_id === APPROVAL_RULE;
