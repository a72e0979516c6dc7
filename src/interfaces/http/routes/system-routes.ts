// Routes for the service itself: health, metrics, the policy in force and the OpenAPI document.

import Type from 'typebox';
import { ActionsPolicy } from '../../../core/contract/policy/actions-policy.js';
import { ApprovalRule } from '../../../core/contract/run/approval.js';
import { Lane } from '../../../core/contract/policy/lanes.js';
import { Role } from '../../../core/contract/policy/roles.js';
import { closed, PolicyVersions } from '../../../core/contract/shapes.js';
import { openApiDocument } from './openapi-document.js';
import { RefusalError } from '../../service/problems.js';
import { route, type Route } from './route.js';
import { jsonResponse, openObject, textResponse } from './route-shapes.js';
import { AGENT_ROUTES } from './agent-routes.js';
import { APPROVAL_ROUTES } from './approval-routes.js';
import { FEATURE_ROUTES } from '../../../features/feature-routes.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import { RUN_ROUTES } from './run-routes.js';

const PolicyShape = openObject({
  versions: PolicyVersions,
  lanes: Type.Array(Lane),
  roles: Type.Array(Role),
  actions: ActionsPolicy.properties.actions,
  limits: ActionsPolicy.properties.limits,
  approvals: Type.Array(ApprovalRule),
  exposure: Type.String(),
});
const HealthShape = Type.Object(
  {
    status: Type.Literal('ok'),
    version: Type.String(),
    ledger_entries: Type.Integer({ minimum: 0 }),
    components: Type.Integer({ minimum: 1 }),
    unsafe_shared: Type.Optional(Type.Literal(true)),
  },
  closed,
);

const SYSTEM_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/health',
    head: true,
    kind: 'live',
    summary: 'Check that this process can do all its work now; the problem of a 503 lists what it cannot do',
    rights: [],
    responses: { 200: jsonResponse('The service is healthy; otherwise 503.', HealthShape) },
    async handle(_request, { turnpike, version, unsafeShared }) {
      const { isReady, checks } = await turnpike.readiness.report();
      if (!isReady)
        throw new RefusalError(
          'UNHEALTHY',
          {},
          checks.filter(({ reason }) => reason !== null),
        );
      const [ledger_entries, policy] = await Promise.all([turnpike.ledger.size(), turnpike.policy()]);
      const health = { status: 'ok', version, ledger_entries, components: policy.actions.size };
      return { json: unsafeShared ? { ...health, unsafe_shared: true } : health };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/metrics',
    kind: 'live',
    summary: 'Get the metrics for Prometheus',
    rights: ['observe'],
    responses: { 200: textResponse('The text format of Prometheus.', 'text/plain') },
    handle: async (_request, { metrics }) => ({ bytes: await metrics.text(), type: metrics.type }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/policy',
    summary: 'Get the policy in force for new runs, and its versions',
    rights: ['observe', 'govern'],
    responses: { 200: jsonResponse('The policy in force.', PolicyShape) },
    async handle(_request, { turnpike }) {
      const [policy, versions] = await Promise.all([turnpike.policy(), turnpike.policyVersions()]);
      const { lanes, roles, actions, limits, approvals, exposure } = policy;
      const lists = { lanes: [...lanes.values()], roles: [...roles.values()], actions: [...actions.values()] };
      return { json: { versions, ...lists, limits, approvals, exposure } };
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/openapi.json',
    isCompressed: true,
    summary: 'Get this document',
    rights: [],
    responses: { 200: jsonResponse('OpenAPI 3.1.', Type.Object({}, { additionalProperties: true })) },
    handle: (_request, { version }) => ({ json: openApiDocument(ROUTES, version) }),
  }),
];

const WORK_ROUTES = [...AGENT_ROUTES, ...RUN_ROUTES, ...LEDGER_ROUTES, ...APPROVAL_ROUTES, ...FEATURE_ROUTES];

/** All routes of the HTTP API, without MCP and the page: those of features follow the others. */
export const ROUTES: readonly Route[] = [...WORK_ROUTES, ...SYSTEM_ROUTES];
