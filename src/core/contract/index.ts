// The vocabulary of the contract, published as `turnpike/contract`: schemas and unions, without behaviour.

export {
  ACTION_NAMES,
  ACTIONS,
  RISK_CLASSES,
  type ActionDefinition,
  type ActionName,
  type RiskClass,
} from './policy/catalogue.js';
export { ActionsPolicy } from './policy/actions-policy.js';
export { ArtifactRef } from './artifact-ref.js';
export { ACTION_TYPES, AUDIT_OUTCOMES, AuditEvent, type ActionType, type AuditOutcome } from './run/audit-event.js';
export { canonicalJson } from './json.js';
export type { Effect, EffectResult, GatherRequest, PathFact, SandboxFacts, SandboxRequest } from './run/effect.js';
export type { Entry, EntryType, RecordedInput, SealedEntry } from './run/entry.js';
export { ExportBundle } from './evidence/export-bundle.js';
export {
  ARGUMENT_CAUSES,
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
export { Lane, LanesPolicy } from './policy/lanes.js';
export { DECISIONS, OUTCOMES, PHASES, type Outcome, type Phase, type StepDecision } from './run/phase.js';
export { PinManifest } from './policy/pins.js';
export { Proposal } from './run/proposal.js';
export {
  DecisionResponse,
  DetailedResponse,
  ExplainedResponse,
  EXPOSURES,
  type Exposure,
  type StepResponse,
} from './run/response.js';
export { Role, RolesPolicy } from './policy/roles.js';
export type { RunContext } from './run/run-context.js';
export { RunRecord } from './run/run-record.js';
export {
  RUN_KINDS,
  RUN_STATES,
  TERMINAL_STATES,
  type RunKind,
  type RunState,
  type TerminalState,
} from './run/run-context.js';
export { StepTrace } from './run/step-trace.js';
