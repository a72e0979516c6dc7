import { EmbeddedEngine } from './embedded-engine.js';
import type { EngineFactory } from './tree-engine.js';

/** The engine of one process (embedded-engine.ts): the default. */
export const embeddedEngine: EngineFactory = (parts) => new EmbeddedEngine(parts);
