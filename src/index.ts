// The public API of `turnpike`, listed explicitly. `turnpike/contract` exports the schemas, `turnpike/machines` the
// machines, and `turnpike/replay` replay and the jest matchers.

export { memoryStore } from './adapters/memory/memory-ledger-store.js';
export { openSandbox } from './adapters/sandbox/file-sandbox.js';
export { sqlDatabase, type SqlDatabaseOptions } from './adapters/records/sql-database.js';
export { winstonLog } from './adapters/system/winston-log.js';
export type { StepResponse } from './contract/run/response.js';
export type { SessionAnswer, SessionData } from './contract/session/session-answer.js';
export type { VerificationReceipt } from './contract/session/session.js';
export type { SessionSpec } from './contract/session/session-spec.js';
export type { RunRecord } from './contract/run/run-record.js';
export type { TraceCarrier } from './contract/trace-context.js';
export type { RunState } from './contract/run/run-state.js';
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
} from './errors.js';
export type { Inspector } from './kernel/interpreter/inert-inspector.js';
export type { Interpreter } from './kernel/interpreter/interpreter.js';
export type { LedgerVerdict } from './ledger/verification/ledger-verdict.js';
export type { Agent, AgentExchange, AgentProposal, AgentSchemas, AgentTurn, RequestOutcome } from './ports/agent.js';
export type { ReviewOrder, Review } from './ports/reviewer.js';
export type { Clock } from './ports/clock.js';
export type { Sandbox } from './ports/effects/sandbox.js';
export type { Ids } from './ports/ids.js';
export type { LedgerStore } from './ports/ledger/ledger-store.js';
export type { Log } from './ports/log.js';
export type { OverlaySource } from './ports/overlay-source.js';
export type { PolicySource } from './ports/policy-source.js';
export type { RecordDatabase } from './ports/effects/records.js';
export type { Telemetry } from './ports/telemetry.js';
export type { ReplayReport } from './replay/replay.js';
export type { LedgerState, RunSnapshot, SessionSnapshot } from './replay/ledger-state.js';
export type { AgentLoopReport, RunAgentOptions, StopReason } from './runtime/agent-loop/run-agent.js';
export type { ContentRequest, ReadRequestOptions } from './runtime/content/read-content.js';
export type { AgentOptions, AgentRun, RunEnding, SubmitOptions } from './runtime/agents/agent-run.js';
export type { ActionReport } from './runtime/agents/action-reports.js';
export type { ActionDecision, DecisionCaller, DecisionRequest } from './runtime/decisions/decisions.js';
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
} from './runtime/high-risk/high-risk-options.js';
export type { UpstreamProblem } from './runtime/upstream/connect-upstreams.js';
export type { ReviewCallback } from './runtime/sessions/checks/reviewers.js';
export type {
  NextRequest,
  SessionCaller,
  Sessions,
  SessionSummary,
  StartSessionOptions,
  TaskDetails,
} from './runtime/sessions/sessions.js';
export type { Readiness, ReadinessCheck, ReadinessReport, ReadinessResult } from './runtime/readiness/readiness.js';
export type { LedgerVitals } from './runtime/readiness/turnpike-readiness.js';
export { copyHome, reopenHome, type CopyHomeOptions, type CopyReport } from './runtime/home/copy/copy-home.js';
export {
  resolveLocation,
  type LedgerLocation,
  type LocationOptions,
  type PostgresLocation,
} from './runtime/home/copy/copy-location.js';
export type { ProgressPart, ProgressReporter, ProgressUnit } from './ports/progress.js';
export type { CopyCounts, CopyProgress } from './runtime/home/copy/copy-ledger.js';
export {
  readTurnpikeOptions,
  type ConfiguredOptions,
  type ReadOptionsOptions,
} from './runtime/configuration/turnpike-configuration.js';
export { openTurnpike, type Turnpike, type TurnpikeOptions } from './runtime/turnpike.js';
export { commandHash, verifyReceipt, type ReceiptSubject, type ReceiptVerdict } from './session/receipt.js';
export { renderAgentOutput } from './step/render-agent-output.js';

// Deprecated names, kept for one minor version. CHANGELOG.md lists them.
export {
  /** @deprecated Use `ActionFailedError`. */
  ActionFailedError as Failed,
  /** @deprecated Use `ActionNotExecutedError`. */
  ActionNotExecutedError as NotExecuted,
} from './errors.js';
export type {
  /** @deprecated Use `RunSnapshot`. */
  RunSnapshot as RunAt,
  /** @deprecated Use `SessionSnapshot`. */
  SessionSnapshot as SessionAt,
} from './replay/ledger-state.js';
/** @deprecated Use `ReadRequestOptions`. */
export type { ReadRequestOptions as RequestReading } from './runtime/content/read-content.js';
/** @deprecated Use `ReconcileOutcome`. */
export type { ReconcileOutcome as Reconciled } from './runtime/effects/define-effects.js';
