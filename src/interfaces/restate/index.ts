// The entry `turnpike/restate` of the package. It needs the package @restatedev/restate-sdk.

export { exchangeFolder, type ContentExchange, type ExchangedContent } from './content-exchange.js';
export { RestateClientError } from '../../core/errors.js';
export { submitThroughRestate, type RestateStep, type RestateSubmission } from './restate-client.js';
export type {
  CancelMessage,
  ContentReference,
  LastStep,
  LookResult,
  RunMessage,
  SubmitMessage,
  SubmitResult,
  VoteMessage,
} from './restate-messages.js';
export type { RestateRunRecord, RestateTurnpike, VoteResult } from './restate-turnpike.js';
export {
  turnpikeService,
  type RestateCall,
  type RestateHandler,
  type TurnpikeServiceOptions,
} from './turnpike-service.js';
