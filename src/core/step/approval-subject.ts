// What a step needs an approval for: its action, or the call rule that its call matches.

import { callApprovalSubject } from '../policy/calls.js';
import type { Policy } from '../policy/policy.js';
import { isJsonObject } from '../contract/json.js';
import type { AuthorizationSubject } from './authorization-subject.js';
import { mediatedContext } from './requests/mediated-request.js';

type Requester = Pick<AuthorizationSubject, 'agent' | 'action' | 'args' | 'mediated_run_id'>;

/** The subject of the approval rules: `call.ID` if a call rule of its lane asks for an approval, else the action. */
export function approvalSubject(step: Requester, policy: Policy): string {
  const action = step.action ?? '';
  if (action !== 'CALL_TOOL') return action;
  const lane = policy.lanes.get(mediatedContext(step, policy).lane_id ?? '');
  const { tool, input } = step.args ?? {};
  if (lane?.calls === undefined || typeof tool !== 'string' || !isJsonObject(input)) return action;
  return callApprovalSubject(lane, { tool, input }) ?? action;
}
