// `turnpike/inspect`: actors shown to the inspectors of XState; see docs/inspectors.md.

export {
  inspectionHub,
  type InspectionHub,
  type InspectionHubOptions,
  type InspectionMessage,
} from '../adapters/inspection-hub.js';
export { statelyObserver, type StatelyInspector } from '../adapters/stately-observer.js';
export { watchLedger, type LedgerWatch, type WatchOptions } from '../runtime/watch-ledger.js';
export { serveXstateInspect, type XstateInspectServer, type XstateInspectServing } from './xstate-inspect.js';
