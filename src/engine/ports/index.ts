// `turnpike/ports`: what an embedding service can implement itself in place of the parts that `openTurnpike` has.

export type { Inspector } from '../../kernel/interpreter/inert-inspector.js';
export type { Interpreter } from '../../kernel/interpreter/interpreter.js';
export type { Agent, AgentExchange, AgentProposal, AgentSchemas, AgentTurn, RequestOutcome } from './agent-exchange.js';
export type { Clock } from './clock.js';
export type { RecordDatabase } from './effects/records.js';
export type { Sandbox } from './effects/sandbox.js';
export type { Ids } from './ids.js';
export type { LedgerStore } from './ledger/ledger-store.js';
export type { Log } from './log.js';
export type { OverlaySource, PolicySource } from './policy-sources.js';
export type { Telemetry } from './telemetry.js';
