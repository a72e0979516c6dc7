// Routes for approvers: pending approvals, and votes. Actor and role always come from the token.

import Type from 'typebox';
import { BALLOT_DIGESTS_MAX, ApprovalVote } from '../../../core/contract/run/approval.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { CaseId, closed, Nullable, OneOf, RunId, Sha256, Timestamp } from '../../../core/contract/shapes.js';
import type { VerifiedIdentity } from '../../../core/contract/run/verified-identity.js';
import { TokenId } from '../../../core/contract/token.js';
import { isConforming } from '../../../core/contract/validators.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { Clock } from '../../../engine/ports/clock.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { Approver } from '../../../runtime/ledger/ledger-reader.js';
import { RefusalError } from '../../service/problems.js';
import { checkTokenCase } from './run-access.js';
import { route, type Route } from './route.js';
import { jsonResponse } from './route-shapes.js';

const ApprovalShape = Type.Object(
  {
    run_id: RunId,
    case_id: Nullable(CaseId),
    digest: Sha256,
    name: Type.String(),
    /** The hash of the arguments as canonical JSON; null if the ledger does not show them. */
    args_sha256: Nullable(Sha256),
    requested_by: Type.String(),
    requested_at: Timestamp,
    expires_at: Timestamp,
    votes: Type.Array(ApprovalVote),
    quorum: Type.Integer(),
    approver_roles: Type.Array(Type.String()),
    /** The conditions that ask for the approval, with their messages; absent if none does. */
    conditions: Type.Optional(Type.Array(Type.Object({ id: Type.String(), message: Nullable(Type.String()) }, closed))),
  },
  closed,
);
const ApprovalParams = Type.Object({ run_id: RunId, digest: Sha256 }, closed);
const RequestShape = Type.Union([
  Type.Object(
    { action: Type.String(), args: Type.Object({}, { additionalProperties: true }) },
    { ...closed, description: 'The request. The digest covers it, with its run and case.' },
  ),
  Type.Object(
    { withheld: Type.Object({ sha256: Sha256, bytes: Type.Integer({ minimum: 0 }) }, closed) },
    {
      ...closed,
      description: 'The hash of a request that its lane withholds from readers whose vote could not count.',
    },
  ),
]);
const BallotBody = Type.Object(
  {
    run_id: RunId,
    digests: Type.Array(Sha256, { minItems: 1, maxItems: BALLOT_DIGESTS_MAX }),
    decision: OneOf(['approve', 'reject']),
  },
  closed,
);
const VotesShape = Type.Object(
  {
    votes: Type.Array(
      Type.Object(
        {
          ...{ digest: Sha256, counted: Type.Boolean(), rule_id: Type.String() },
          /** The vote on a request of a coding agent, by a voter who was not authenticated. */
          reminder: Type.Optional(Type.Literal(true)),
        },
        closed,
      ),
    ),
  },
  closed,
);
export const APPROVAL_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/approvals',
    summary: 'List the pending approvals: the hash, requester and votes of each request',
    rights: ['approve', 'observe'],
    responses: {
      200: jsonResponse('All pending approvals.', Type.Object({ approvals: Type.Array(ApprovalShape) }, closed)),
    },
    async handle({ principal, control }, { turnpike, clock }) {
      const approvals = [];
      const all = turnpike.ledger.approvals(nowOf(clock), approverOf(principal), control);
      for await (const { request, withheld, ...open } of all) {
        if (principal.case !== null && principal.case !== open.case_id) continue;
        // Clients poll this list, so it contains no content: reading the arguments is a separate, audited request.
        const isShown = request !== null && withheld === null;
        approvals.push({ ...open, args_sha256: isShown ? sha256(canonicalJson(request.args)) : null });
      }
      return { json: { approvals } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/approvals/{run_id}/{digest}',
    summary: 'Get the exact request of an approval; the ledger records the read',
    rights: ['approve', 'observe'],
    params: ApprovalParams,
    responses: { 200: jsonResponse('The request.', RequestShape) },
    async handle({ principal, params }, { turnpike, clock, audit }) {
      const { approval, source: attached = null } =
        (await turnpike.ledger.approval(params, nowOf(clock), approverOf(principal))) ?? {};
      if (approval === undefined) throw new RefusalError('NOT_FOUND');
      const { request, withheld, case_id } = approval;
      if (principal.case !== null && principal.case !== case_id) throw new RefusalError('NOT_FOUND');
      if (withheld !== null) return { json: { withheld } };
      if (request === null || attached === null) throw new RefusalError('NOT_FOUND');
      const { id: token, actor, role } = principal;
      const { log_index, sha256: content } = attached;
      const subject = { ...params, log_index, sha256: content };
      await audit({ token, actor, role, route: '/api/v1/approvals/{run_id}/{digest}', subject });
      return { json: request };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/approvals',
    summary: 'Vote, as the actor and role of the token, on exact requests of one run',
    rights: ['approve'],
    body: BallotBody,
    responses: { 200: jsonResponse('Each vote, with the rule by which it counts or does not.', VotesShape) },
    async handle({ principal, body: { run_id, digests, decision } }, { turnpike }) {
      if (principal.case !== null) checkTokenCase(principal, (await turnpike.ledger.run(run_id))?.case_id);
      const votes = await turnpike.approve({ run: run_id, digests, decision, ...voterOf(principal) });
      return { json: { votes } };
    },
  }),
];

const nowOf = (clock: Clock): string => new Date(clock.now()).toISOString();

/** A token without the right to approve is not an approver, whatever its role. */
const approverOf = (principal: Principal): Approver | null =>
  principal.rights.has('approve') ? voterOf(principal) : null;

/** The caller as a voter, with the person behind it and how it was authenticated. */
function voterOf(principal: Principal): Approver {
  const { actor, role, person } = principal;
  const identity = voterIdentity(principal);
  return {
    actor,
    role,
    ...omitUndefined({ person, identity }),
  };
}

/** How a caller was authenticated, as its votes record it; undefined for a book of tokens with ids of its own. */
function voterIdentity({ id, person, verified }: Principal): VerifiedIdentity | undefined {
  if (verified !== undefined) return verified.identity;
  return isConforming(TokenId, id) ? { source: 'token', token_id: id, mapped: person !== undefined } : undefined;
}
