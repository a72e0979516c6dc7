import { LedgerEngine } from './ledger-engine.js';
import type { EngineFactory } from './tree-engine.js';
import { ExclusiveWriter } from './writers/exclusive-writer.js';

/** The engine of one process (ledger-engine.ts): the default. */
export const embeddedEngine: EngineFactory = (parts) => new LedgerEngine(parts, new ExclusiveWriter(parts));
