// The public names of `turnpike`, written out. Schemas are in `turnpike/contract`, machines in `turnpike/machines`,
// replay and jest matchers in `turnpike/replay`.

export { memoryStore } from './adapters/memory-ledger-store.js';
export { openSandbox } from './adapters/sandbox.js';
export { winstonLog } from './adapters/winston-log.js';
export type { StepResponse } from './contract/response.js';
export type { RunRecord } from './contract/run-record.js';
export type { RunState } from './contract/run-state.js';
export { CodedError, InvariantError, LedgerError, PolicyError, RunError, SandboxError, UsageError } from './errors.js';
export type { LedgerVerdict } from './ledger/verify.js';
export type { Clock } from './ports/clock.js';
export type { Sandbox } from './ports/executor.js';
export type { Ids } from './ports/ids.js';
export type { LedgerStore } from './ports/ledger-store.js';
export type { Log } from './ports/log.js';
export type { PolicySource } from './ports/policy-source.js';
export type { ReplayReport } from './replay/replay.js';
export type { AgentOptions, AgentRun, RunEnding, SubmitOptions } from './runtime/agent-run.js';
export type { LedgerReader, RunTree } from './runtime/ledger-reader.js';
export { openTurnpike, type Turnpike, type TurnpikeOptions } from './runtime/turnpike.js';
export { renderAgentOutput } from './step/render-agent-output.js';
