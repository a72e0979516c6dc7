// Sessions of one process: what a service opens when it first uses one.

import type { TreeEngine } from '../../engine/tree-engine.js';
import { SessionRuns, type SessionRunsParts } from './session-runs.js';
import type { Sessions } from './sessions.js';
import { specFiles } from './spec/read-spec-files.js';
import { SpecSource } from './spec/spec-source.js';

declare module '../../runtime/host-feature.js' {
  interface HostParts {
    readonly sessions: Sessions;
  }
}

export function openSessions(parts: Omit<SessionRunsParts, 'specs'>, engine: TreeEngine): SessionRuns {
  const sessions = new SessionRuns({ ...parts, specs: new SpecSource(specFiles) });
  sessions.attach(engine);
  return sessions;
}
