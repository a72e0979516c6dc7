// What features add to HTTP services besides routes: what identifies the callers of issuers. It is no promise of the
// registry, as the routes. To remove a feature that is listed here, remove its name here too.

import type { CreateIdentityService } from '../interfaces/service/identity-service.js';
import { createOidcIdentityService } from './identity/service/oidc-identity-service.js';

export const IDENTITY_SERVICES: readonly CreateIdentityService[] = [createOidcIdentityService];
