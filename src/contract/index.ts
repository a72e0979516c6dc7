// The contract's vocabulary, as `turnpike/contract`: schemas and unions, no behaviour.

export {
  ACTION_NAMES,
  ACTIONS,
  RISK_CLASSES,
  type ActionDefinition,
  type ActionName,
  type RiskClass,
} from './actions.js';
export { ActionsPolicy } from './actions-policy.js';
export { ArtifactRef } from './artifact-ref.js';
export { ACTION_TYPES, AUDIT_OUTCOMES, AuditEvent, type ActionType, type AuditOutcome } from './audit-event.js';
export { canonicalJson } from './canonical-json.js';
export type { Effect, EffectResult, GatherRequest, PathFact, SandboxFacts } from './effect.js';
export { ENTRY_TYPES, type Entry, type EntryType, type RecordedInput, type SealedEntry } from './entry.js';
export { ExportBundle } from './export-bundle.js';
export {
  EXECUTION_CAUSES,
  FAULT_CODES,
  FAULTS,
  messageOf,
  POLICY_CAUSES,
  type ExecutionCause,
  type Fault,
  type FaultCode,
  type PolicyCause,
} from './fault.js';
export { Lane, LanesPolicy } from './lanes.js';
export { DECISIONS, OUTCOMES, PHASES, type Outcome, type Phase, type StepDecision } from './phase.js';
export { PinManifest } from './pins.js';
export { Proposal } from './proposal.js';
export { DecisionResponse, DetailedResponse, EXPOSURES, type Exposure, type StepResponse } from './response.js';
export { Role, RolesPolicy } from './roles.js';
export type { RunContext } from './run-context.js';
export { RunRecord } from './run-record.js';
export {
  RUN_KINDS,
  RUN_STATES,
  TERMINAL_STATES,
  type RunKind,
  type RunState,
  type TerminalState,
} from './run-state.js';
export { StepTrace } from './step-trace.js';
