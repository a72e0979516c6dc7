// What features add to HTTP services besides routes: what identifies the callers of issuers, and where metrics are
// registered. They are no promises of the registry, as the routes. To remove a feature that is listed here, remove its
// name here too.

import type { CreateMetricRegistry } from '../interfaces/http/metrics.js';
import type { CreateIdentityService } from '../interfaces/service/identity-service.js';
import { createOidcIdentityService } from './identity/service/oidc-identity-service.js';
import { createCollectedMetrics } from './telemetry/service/collected-metrics.js';

export const IDENTITY_SERVICES: readonly CreateIdentityService[] = [createOidcIdentityService];
export const METRIC_REGISTRIES: readonly CreateMetricRegistry[] = [createCollectedMetrics];
