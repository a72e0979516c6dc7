// Routes with which people start promotions and exports. Actor and role always come from the token.

import { join } from 'node:path';
import Type from 'typebox';
import { WRITE_MODES } from '../../../core/contract/policy/lanes.js';
import type { JsonObject } from '../../../core/contract/json.js';
import { CaseId, closed, Identifier, Nullable, OneOf, RunId, Sha256 } from '../../../core/contract/shapes.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import { makeFolder } from '../../../home/home.js';
import type { Turnpike } from '../../../host/turnpike.js';
import { route, type RouteResponse, type Route } from '../../../interfaces/http/routes/route.js';
import { jsonResponse, RunParams, Scope, State } from '../../../interfaces/http/routes/route-shapes.js';
import { checkTokenCase } from '../../../interfaces/http/routes/run-access.js';
import { RefusalError } from '../../../interfaces/service/problems.js';
import type { HighRiskRun, RunStarter } from '../../../runtime/high-risk-options.js';
import { EXPORT_KINDS } from '../export-kinds.js';

const starterProperties = {
  case: Type.Optional(CaseId),
  lane: Type.Optional(Identifier),
  scope: Type.Optional(Scope),
  correlation: Type.Optional(Identifier),
};
const PromotionBody = Type.Object(
  {
    ...starterProperties,
    ticket: Identifier,
    target: Identifier,
    mode: Type.Optional(OneOf(WRITE_MODES)),
    record: Type.Object({}, { additionalProperties: true }),
    sources: Type.Optional(Type.Array(Sha256, { maxItems: 256 })),
  },
  closed,
);
const ExportBody = Type.Object(
  {
    ...starterProperties,
    reason: Type.String({ minLength: 1, maxLength: 400 }),
    kind: Type.Optional(OneOf(EXPORT_KINDS)),
    /** The name of the bundle in the export folder: requests never contain a path. */
    name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$' }),
    format: Type.Optional(OneOf(['folder', 'zip'])),
  },
  closed,
);
const HighRiskShape = Type.Object(
  { run_id: RunId, state: State, reason: Nullable(Type.String()), digest: Nullable(Sha256) },
  closed,
);
const STARTED_RESPONSES = {
  202: jsonResponse('The state of the run; with a digest, it waits for approval of that digest.', HighRiskShape),
};

export const HIGH_RISK_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/promotions',
    kind: 'task',
    summary: 'Promote one sanitized record of a case to shared knowledge',
    rights: ['govern'],
    body: PromotionBody,
    responses: STARTED_RESPONSES,
    async handle({ principal, body }, { turnpike }) {
      const { record, ...rest } = body;
      const promotion = { ...rest, record: record as JsonObject, ...starterOf(principal, body.case) };
      return respondStarted(await turnpike.promote(promotion), turnpike);
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/exports',
    kind: 'task',
    summary: 'Export everything that the ledger records of a case, as a bag in the export folder',
    rights: ['govern'],
    body: ExportBody,
    responses: STARTED_RESPONSES,
    async handle({ principal, body }, { turnpike, exports, audit }) {
      const { name, format = 'folder', ...rest } = body;
      const { id: token, actor, role } = principal;
      await audit({
        token,
        actor,
        role,
        route: '/api/v1/exports',
        subject: { case: body.case ?? principal.case ?? '' },
      });
      makeFolder(exports);
      const destination = join(exports, format === 'zip' ? `${name}.zip` : name);
      const run = await turnpike.export({ ...rest, format, destination, ...starterOf(principal, body.case) });
      return respondStarted(run, turnpike);
    },
  }),
  ...(['promotion', 'export'] as const).map((kind) =>
    route({
      method: 'GET',
      path: `/api/v1/${kind}s/{run_id}`,
      summary: `Get the state of ${kind === 'export' ? 'an export' : 'a promotion'}`,
      rights: ['govern', 'observe'],
      params: RunParams,
      responses: {
        200: jsonResponse('The state; with a digest, it waits for approval of that digest.', HighRiskShape),
      },
      async handle({ principal, params: { run_id } }, { turnpike, access }) {
        const record = await turnpike.ledger.run(run_id);
        if (record?.run_kind !== kind || !access.canSee(principal, record)) throw new RefusalError('RUN_UNKNOWN');
        const run = await turnpike.highRiskRun(run_id);
        return { json: await runStatusOf(run_id, run?.digest ?? null, turnpike) };
      },
    }),
  ),
];

/** The caller, in the case of the request or of the token. @throws RefusalError RIGHT_MISSING for another case */
function starterOf(principal: Principal, requestedCase: string | undefined): RunStarter {
  const { actor, role, person, case: bound } = principal;
  const case_id = requestedCase ?? bound ?? undefined;
  checkTokenCase(principal, case_id);
  return {
    ...{ actor, role },
    ...omitUndefined({ person, case: case_id }),
  };
}

async function respondStarted({ run_id, digest }: HighRiskRun, turnpike: Turnpike): Promise<RouteResponse> {
  return { status: 202, json: await runStatusOf(run_id, digest, turnpike) };
}

async function runStatusOf(run_id: string, digest: string | null, { ledger }: Turnpike) {
  const record = await ledger.run(run_id);
  return { run_id, state: record?.status ?? 'created', reason: record?.outcome ?? null, digest };
}
