// The routes that features add to the HTTP API, in their order. A service has all of them at once and can be required
// from CommonJS, so they are no promise of the registry. To remove a feature that has routes, remove its name here too.

import type { Route } from '../interfaces/http/routes/route.js';
import { DECISION_ROUTES } from './decisions/routes/decision-routes.js';
import { HOOK_ROUTES } from './hooks/routes/hook-routes.js';
import { HIGH_RISK_ROUTES } from './promotions/routes/high-risk-routes.js';
import { SESSION_ROUTES } from './sessions/routes/session-routes.js';

export const FEATURE_ROUTES: readonly Route[] = [
  ...DECISION_ROUTES,
  ...HIGH_RISK_ROUTES,
  ...HOOK_ROUTES,
  ...SESSION_ROUTES,
];
