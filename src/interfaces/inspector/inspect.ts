// `turnpike/inspect`: actors shown to the inspectors of XState; see docs/inspectors.md.

export {
  inspectionHub,
  type InspectionHub,
  type InspectionHubOptions,
  type InspectionMessage,
} from './xstate/inspection-hub.js';
export { statelyObserver, type StatelyInspector } from './xstate/stately-observer.js';
export { watchLedger, type LedgerWatch, type WatchOptions } from '../../runtime/ledger/watch-ledger.js';
export { serveXstateInspect, type XstateInspectServer, type XstateInspectOptions } from './xstate/xstate-inspect.js';
