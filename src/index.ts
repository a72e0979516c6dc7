// The public names of `turnpike`, written out. Schemas are in `turnpike/contract`, machines in `turnpike/machines`,
// replay and jest matchers in `turnpike/replay`.

export { memoryStore } from './adapters/memory-ledger-store.js';
export { openSandbox } from './adapters/sandbox.js';
export { sqlDatabase, type SqlDatabaseOptions } from './adapters/sql-database.js';
export { winstonLog } from './adapters/winston-log.js';
export type { StepResponse } from './contract/response.js';
export type { SessionAnswer, SessionData } from './contract/session-answer.js';
export type { VerificationReceipt } from './contract/session.js';
export type { SessionSpec } from './contract/session-spec.js';
export type { RunRecord } from './contract/run-record.js';
export type { RunState } from './contract/run-state.js';
export {
  AgentError,
  CapabilityError,
  CodedError,
  Failed,
  InvariantError,
  LedgerError,
  NotExecuted,
  PolicyError,
  RecordsError,
  RunError,
  SandboxError,
  UsageError,
} from './errors.js';
export type { Inspector } from './kernel/inert-inspection.js';
export type { Interpreter } from './kernel/interpreter.js';
export type { LedgerVerdict } from './ledger/verdict.js';
export type { Agent, AgentExchange, AgentProposal, AgentSchemas, AgentTurn } from './ports/agent.js';
export type { ReviewOrder, Review } from './ports/reviewer.js';
export type { Clock } from './ports/clock.js';
export type { Sandbox } from './ports/executor.js';
export type { Ids } from './ports/ids.js';
export type { LedgerStore } from './ports/ledger-store.js';
export type { Log } from './ports/log.js';
export type { OverlaySource } from './ports/overlay-source.js';
export type { PolicySource } from './ports/policy-source.js';
export type { RecordDatabase } from './ports/records.js';
export type { ReplayReport } from './replay/replay.js';
export type { LedgerState, RunAt, SessionAt } from './replay/state.js';
export type { AgentLoopReport, RunAgentOptions, StopReason } from './runtime/agent-loop/run-agent.js';
export type { ContentRequest, RequestReading } from './runtime/content/recorded-reading.js';
export type { AgentOptions, AgentRun, RunEnding, SubmitOptions } from './runtime/agent-run.js';
export type { LedgerReader, RunTree } from './runtime/ledger-reader.js';
export {
  defineAction,
  defineTarget,
  defineTool,
  type Action,
  type ActionOptions,
  type EffectContext,
  type Reconciled,
  type Target,
  type TargetOptions,
  type Tool,
  type ToolOptions,
} from './runtime/effects/define.js';
export type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from './runtime/high-risk/options.js';
export type { UpstreamProblem } from './runtime/upstream/connect-upstreams.js';
export type { ReviewCallback } from './runtime/sessions/callback-reviewer.js';
export type {
  NextRequest,
  SessionCaller,
  Sessions,
  SessionSummary,
  StartSessionOptions,
  TaskDetails,
} from './runtime/sessions/sessions.js';
export { openTurnpike, type Turnpike, type TurnpikeOptions } from './runtime/turnpike.js';
export { commandHash, verifyReceipt, type ReceiptSubject, type ReceiptVerdict } from './session/receipt.js';
export { renderAgentOutput } from './step/render-agent-output.js';
