// The public API of `turnpike`, listed explicitly. `turnpike/contract` exports the schemas, `turnpike/machines` the
// machines, and `turnpike/replay` replay and the jest matchers.

export { memoryStore } from './stores/memory/memory-ledger-store.js';
export { openSandbox } from './sandbox/files/file-sandbox.js';
export { sqlDatabase, type SqlDatabaseOptions } from './stores/records/sql-database.js';
export { winstonLog } from './system/winston-log.js';
export type { StepResponse } from './core/contract/run/response.js';
export type { SessionAnswer, SessionData } from './features/sessions/contract/session-answer.js';
export type { VerificationReceipt } from './features/sessions/contract/session.js';
export type { SessionSpec } from './features/sessions/contract/session-spec.js';
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
export type { Inspector } from './kernel/interpreter/inert-inspector.js';
export type { Interpreter } from './kernel/interpreter/interpreter.js';
export type { LedgerVerdict } from './core/ledger/verification/ledger-verdict.js';
export type {
  Agent,
  AgentExchange,
  AgentProposal,
  AgentSchemas,
  AgentTurn,
  RequestOutcome,
} from './engine/ports/agent-exchange.js';
export type { ReviewOrder, Review } from './features/sessions/checks/reviewer.js';
export type { Clock } from './engine/ports/clock.js';
export type { Sandbox } from './engine/ports/effects/sandbox.js';
export type { Ids } from './engine/ports/ids.js';
export type { LedgerStore } from './engine/ports/ledger/ledger-store.js';
export type { Log } from './engine/ports/log.js';
export type { OverlaySource, PolicySource } from './engine/ports/policy-sources.js';
export type { RecordDatabase } from './engine/ports/effects/records.js';
export type { Telemetry } from './engine/ports/telemetry.js';
export type { ReplayReport } from './kernel/replay/replay.js';
export type { LedgerState, RunSnapshot } from './kernel/replay/ledger-state.js';
export type { SessionSnapshot } from './features/sessions/tree/session-of.js';
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
export type { ReviewCallback } from './features/sessions/checks/reviewers.js';
export type {
  NextRequest,
  SessionCaller,
  Sessions,
  SessionSummary,
  StartSessionOptions,
  TaskDetails,
} from './features/sessions/sessions.js';
export type { Readiness } from './host/readiness/readiness.js';
export type { ReadinessCheck, ReadinessReport, ReadinessResult } from './host/readiness/readiness-reporter.js';
export type { LedgerVitals } from './host/readiness/turnpike-readiness.js';
export {
  resolveLocation,
  type LedgerLocation,
  type LocationOptions,
  type PostgresLocation,
} from './home/ledger-location.js';
export { copyHome, reopenHome } from './features/backup/copies.js';
export type { CopyHomeOptions, CopyReport } from './features/backup/copy/copy-home.js';
export type { ProgressPart, ProgressReporter, ProgressUnit } from './engine/ports/progress.js';
export type { CopyCounts, CopyProgress } from './features/backup/copy/copy-ledger.js';
export {
  readTurnpikeOptions,
  type ConfiguredOptions,
  type ReadOptionsOptions,
} from './host/configuration/turnpike-configuration.js';
export { openTurnpike, type Turnpike, type TurnpikeOptions } from './host/turnpike.js';
export {
  commandHash,
  verifyReceipt,
  type ReceiptSubject,
  type ReceiptVerdict,
} from './features/sessions/rules/receipt.js';
export { renderAgentOutput } from './runtime/agents/render-agent-output.js';
