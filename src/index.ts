// The public API of `turnpike`, listed explicitly. Other entries: `turnpike/contract` has the schemas,
// `turnpike/machines` the machines, `turnpike/sessions` what sessions have, `turnpike/copies` copies of home
// directories, `turnpike/ports` what a service can implement itself, and `turnpike/replay` replay and the matchers for
// jest.

export { memoryStore } from './stores/memory/memory-ledger-store.js';
export { openSandbox } from './sandbox/files/file-sandbox.js';
export { sqlDatabase, type SqlDatabaseOptions } from './stores/records/sql-database.js';
export { winstonLog } from './system/winston-log.js';
export type { StepResponse } from './core/contract/run/response.js';
export type { RunRecord } from './core/contract/run/run-record.js';
export type { TraceCarrier } from './core/contract/trace-context.js';
export type { RunState } from './core/contract/run/run-context.js';
export {
  AgentError,
  GovernedCallError,
  CapabilityError,
  CodedError,
  ActionFailedError,
  IntegrationError,
  InvariantError,
  LedgerError,
  ActionNotExecutedError,
  PolicyError,
  RecordsError,
  RunError,
  SandboxError,
  UsageError,
} from './core/errors.js';
export type { AgentLoopReport, RunAgentOptions, StopReason } from './runtime/agents/agent-loop.js';
export type { ContentRequest, ReadRequestOptions } from './runtime/content/read-content.js';
export type { AgentOptions, AgentRun, RunEnding, SubmitOptions } from './runtime/agents/agent-run.js';
export type { ActionReport } from './runtime/agents/action-reports.js';
export type { ActionDecision, DecisionCaller, DecisionRequest } from './runtime/agents/decision-request.js';
export type { ProposalApproval, RunRequest } from './runtime/agents/run-requests.js';
export type { LedgerReader, RunTree } from './runtime/ledger/ledger-reader.js';
export {
  defineAction,
  defineExternalTool,
  defineTarget,
  defineTool,
  type Action,
  type ActionOptions,
  type EffectContext,
  type ExternalToolOptions,
  type ReconcileOutcome,
  type Target,
  type TargetOptions,
  type Tool,
  type ToolOptions,
} from './runtime/effects/define-effects.js';
export type {
  Ballot,
  BallotResult,
  ExportOptions,
  CancellableRun,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from './runtime/high-risk-options.js';
export type { UpstreamProblem } from './runtime/effects/tools-of-features.js';
export type { Readiness, ReadinessCheck, ReadinessReport, ReadinessResult } from './host/readiness/readiness.js';
export type { LedgerVitals } from './host/readiness/turnpike-readiness.js';
export {
  resolveLocation,
  type LedgerLocation,
  type LocationOptions,
  type PostgresLocation,
} from './home/ledger-location.js';
export {
  readTurnpikeOptions,
  type ConfiguredOptions,
  type ReadOptionsOptions,
} from './host/configuration/turnpike-configuration.js';
export { openTurnpike, type Turnpike, type TurnpikeOptions } from './host/turnpike.js';
export { renderAgentOutput } from './runtime/agents/render-agent-output.js';
