// What can be said of a ballot or a request for approval (D7).

/** Every rule by which a ballot or a request is judged, in the order of the checks, with what it says. */
export const APPROVAL_RULES = {
  'approval.by_agent': 'An agent approves nothing, in whatever role.',
  'approval.role_unknown': 'The role of the approver is not in roles.yaml.',
  'approval.not_a_person': 'The approver is the system, or a role of the system: only people count.',
  'approval.other_run': 'The ballot is for another run than the one that is asked.',
  'approval.unknown_digest': 'The run has made no request with this digest.',
  'approval.role_not_allowed': 'The rule for the request does not name the role of the approver.',
  'approval.by_requester': 'Nobody approves a request of their own.',
  'approval.consumed': 'The approval has been used, and an approval is used once.',
  'approval.already_decided': 'The request has been decided: a rejection stands, and an approval needs no more votes.',
  'approval.expired': 'The request, or what was approved of it, has run out of time.',
  'approval.already_voted': 'The same person has approved the request before.',
  'approval.look_alike': 'The name looks like that of the requester or of an earlier voter: use a name of your own.',
  'approval.person_unknown': 'The voter cannot be compared with the others: make the request again, and vote on that.',
  'approval.rejected': 'Somebody who may approve the request has rejected it.',
  'approval.accepted': 'The vote counts; the quorum is not reached yet.',
  'approval.granted': 'The vote counts, and with it the quorum is reached.',
  'approval.required': 'The request waits for its approval.',
  'approval.not_requested': 'The request has not been made, or the run has too many requests already.',
} as const satisfies Record<string, string>;
export type ApprovalRuleId = keyof typeof APPROVAL_RULES;
export const APPROVAL_RULE_IDS = Object.keys(APPROVAL_RULES) as readonly ApprovalRuleId[];
