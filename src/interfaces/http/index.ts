// `turnpike/http`: the HTTP service that `turnpike serve` runs.

export {
  joinTokenBooks,
  mintToken,
  singleTokenBook,
  tokenBook,
  TokenFile,
  type MintedToken,
  type TokenGrant,
} from '../../stores/keys/token-file.js';
export { identitiesSource } from '../../home/policy/home-policy.js';
export type { IdentitiesSource, LoadedIdentities } from '../../engine/ports/policy-sources.js';
export type { LoginOptions, OidcIssuerOptions } from '../../engine/ports/identity-provider.js';
export type { IdentityOptions } from '../service/identity-service.js';
export type { Right, TokenRecord } from '../../core/contract/token.js';
export type { Principal, TokenBook, VerifiedCaller } from '../../engine/ports/token-book.js';
export {
  DEFAULT_LIMITS,
  type AdmissionLimits,
  type AdmissionOptions,
  type KindLimits,
} from '../admission/admission-limits.js';
export type { InspectorSource } from '../inspector/inspector-source.js';
export type { HttpServer } from './http-server.js';
export { pageFiles } from './served-page.js';
export { serveSource, type ServeSourceOptions } from './serve-source.js';
export { serveTurnpike, type ServeOptions, type TurnpikeServer } from './serve.js';
export { serveAdmin, type AdminAddress, type AdminOptions, type AdminServer } from './admin/serve-admin.js';
export type { MonitoredProcess } from './admin/serve-admin.js';
export type { Access, AccessAudit } from './http-service.js';
export { turnpikeHttp, type TurnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';
