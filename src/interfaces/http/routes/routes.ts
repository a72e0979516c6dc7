import { AGENT_ROUTES } from './agent-routes.js';
import { APPROVAL_ROUTES } from './approval-routes.js';
import { FEATURES } from '../../../features/declare-features.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import type { Route } from './route.js';
import { RUN_ROUTES } from './run-routes.js';
import { systemRoutes } from './system-routes.js';

const added = await Promise.all(FEATURES.map(async ({ routes }) => (await routes?.()) ?? []));
const WORK_ROUTES = [...AGENT_ROUTES, ...RUN_ROUTES, ...LEDGER_ROUTES, ...APPROVAL_ROUTES, ...added.flat()];

/** All routes of the HTTP API, without MCP and the page: those of features follow the others. */
export const ROUTES: readonly Route[] = [...WORK_ROUTES, ...systemRoutes(WORK_ROUTES)];
