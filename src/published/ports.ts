// `turnpike/ports`: what an embedding service can implement itself in place of the parts that `openTurnpike` has.

export type { Inspector } from '../kernel/interpreter/inert-inspector.js';
export type { Interpreter } from '../kernel/interpreter/interpreter.js';
export type {
  Agent,
  AgentExchange,
  AgentProposal,
  AgentSchemas,
  AgentTurn,
  RequestOutcome,
} from '../engine/ports/agent-exchange.js';
export type { Clock } from '../engine/ports/clock.js';
export type { RecordDatabase } from '../engine/ports/effects/records.js';
export type { Sandbox } from '../engine/ports/effects/sandbox.js';
export type { Ids } from '../engine/ports/ids.js';
export type { LedgerStore } from '../engine/ports/ledger/ledger-store.js';
export type { Log } from '../engine/ports/log.js';
export type { OverlaySource, PolicySource } from '../engine/ports/policy-sources.js';
export type { Telemetry } from '../engine/ports/telemetry.js';
