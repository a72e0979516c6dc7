import { usageError } from '../../core/errors.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import { IDENTITY_SERVICES } from '../../features/feature-services.js';
import type { IdentityOptions, IdentityService } from '../service/identity-service.js';

/**
 * What identifies callers of issuers: that of the caller, or of the feature.
 * @throws UsageError for an issuer that cannot be used, and without the feature
 */
export function createIdentity(options: IdentityOptions | IdentityService, clock: Clock, log: Log): IdentityService {
  if ('identify' in options) return options;
  const [create] = IDENTITY_SERVICES;
  if (create === undefined) throw usageError('identity: this installation has no feature that identifies callers');
  return create(options, clock, log);
}
