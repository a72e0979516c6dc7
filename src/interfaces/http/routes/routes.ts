import { AGENT_ROUTES } from './agent-routes.js';
import { APPROVAL_ROUTES } from './approval-routes.js';
import { FEATURE_ROUTES } from '../../../features/feature-routes.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import type { Route } from './route.js';
import { RUN_ROUTES } from './run-routes.js';
import { systemRoutes } from './system-routes.js';

const WORK_ROUTES = [...AGENT_ROUTES, ...RUN_ROUTES, ...LEDGER_ROUTES, ...APPROVAL_ROUTES, ...FEATURE_ROUTES];

/** All routes of the HTTP API, without MCP and the page: those of features follow the others. */
export const ROUTES: readonly Route[] = [...WORK_ROUTES, ...systemRoutes(WORK_ROUTES)];
