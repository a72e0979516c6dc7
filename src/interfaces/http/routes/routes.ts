import { AGENT_ROUTES } from './agent-routes.js';
import { DECISION_ROUTES } from './decision-routes.js';
import { HOOK_ROUTES } from './hook-routes.js';
import { LEDGER_ROUTES } from './ledger-routes.js';
import { PEOPLE_ROUTES } from './people-routes.js';
import type { Route } from './route.js';
import { RUN_ROUTES } from './run-routes.js';
import { SESSION_ROUTES } from './session-routes.js';
import { systemRoutes } from './system-routes.js';

const WORK_ROUTES = [
  ...AGENT_ROUTES,
  ...DECISION_ROUTES,
  ...HOOK_ROUTES,
  ...RUN_ROUTES,
  ...LEDGER_ROUTES,
  ...PEOPLE_ROUTES,
  ...SESSION_ROUTES,
];

/** All routes of the HTTP API, without MCP and the page. */
export const ROUTES: readonly Route[] = [...WORK_ROUTES, ...systemRoutes(WORK_ROUTES)];
