import { LedgerEngine } from './ledger-engine.js';
import { withSuspension } from './effect-runner.js';
import type { EngineFactory } from './tree-engine.js';
import { ExclusiveWriter } from './writers/exclusive-writer.js';

/** The engine of one process (ledger-engine.ts): the default. */
export const embeddedEngine: EngineFactory = (parts) => {
  const suspendable = withSuspension(parts);
  return new LedgerEngine(suspendable, new ExclusiveWriter(suspendable));
};
