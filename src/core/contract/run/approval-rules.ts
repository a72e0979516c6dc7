// The rules that judge ballots and requests for approval. Audit events have their ids.

/** Every rule that judges a ballot or a request for approval, in the order of the checks, with its text. */
export const APPROVAL_RULES = {
  'approval.by_agent': 'An agent approves nothing, in whatever role.',
  'approval.role_unknown': 'The role of the approver is not in roles.yaml.',
  'approval.not_a_person': 'The approver is the system, or a role of the system: only people count.',
  'approval.other_run': 'The ballot is for another run than the one that is asked.',
  'approval.unknown_digest': 'The run has made no request with this digest.',
  'approval.role_not_allowed': 'The rule for the request does not name the role of the approver.',
  'approval.not_verified': 'The rule for the request asks for a voter whom an issuer of its list has authenticated.',
  'approval.step_up_required':
    'The voter must sign in again, as strongly and as recently as the rule for the request asks.',
  'approval.by_requester': 'A person cannot approve their own request.',
  'approval.consumed': 'The approval has been used, and an approval is used once.',
  'approval.already_decided': 'The request has been decided: a rejection stands, and an approval needs no more votes.',
  'approval.expired': 'The request, or what was approved of it, has run out of time.',
  'approval.already_voted': 'The same person has approved the request before.',
  'approval.look_alike': 'The name looks like that of the requester or of an earlier voter: use a name of your own.',
  'approval.person_unknown': 'The voter cannot be compared with the others: make the request again, and vote on that.',
  'approval.person_unmapped':
    'Another source has authenticated an earlier voter, and policy maps one of the two to no person.',
  'approval.rejected': 'An authorized approver has rejected the request.',
  'approval.accepted': 'The vote counts; the quorum is not reached yet.',
  'approval.granted': 'The vote counts, and with it the quorum is reached.',
  'approval.required': 'The request waits for its approval.',
  'approval.not_requested': 'The request has not been made, or the run has too many requests already.',
} as const satisfies Record<string, string>;
export type ApprovalRuleId = keyof typeof APPROVAL_RULES;
export const APPROVAL_RULE_IDS = Object.keys(APPROVAL_RULES) as readonly ApprovalRuleId[];

/** The status of a request at one time. Only `granted` allows the effect. */
export type ApprovalStatus = 'granted' | 'missing' | 'open' | 'rejected' | 'expired' | 'consumed';

/** The audit's rule id for each status; for `missing` and `open`, after the request was made. */
export const APPROVAL_STATUS_RULES = {
  granted: 'approval.granted',
  missing: 'approval.not_requested',
  open: 'approval.required',
  rejected: 'approval.rejected',
  expired: 'approval.expired',
  consumed: 'approval.consumed',
} as const satisfies Record<ApprovalStatus, ApprovalRuleId>;
