// `turnpike/http`: the HTTP service, as the command `turnpike serve` serves it.

export {
  joinedBooks,
  mintToken,
  singleToken,
  tokenBook,
  TokenFile,
  type Minted,
  type TokenGrant,
} from '../../adapters/token-book.js';
export type { Right, TokenRecord } from '../../contract/token.js';
export type { Principal, TokenBook } from '../../ports/token-book.js';
export { DEFAULT_LIMITS, type AdmissionLimits, type AdmissionOptions, type KindLimits } from '../admission/limits.js';
export type { InspectorSource } from '../inspector/source.js';
export type { HttpServer } from './listen.js';
export { pageFiles } from './page.js';
export { serveSource, type SourceServing } from './serve-source.js';
export { serveTurnpike, type Serving } from './serve.js';
export type { Access, AccessAudit } from './service.js';
export { turnpikeHttp, type TurnpikeHttp, type TurnpikeHttpOptions } from './turnpike-http.js';
