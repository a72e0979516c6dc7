// The tools that features add to those of a service, before the catalogue is made.

import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import type { Tool } from './define-effects.js';

/** The options of `openTurnpike` with which a feature adds tools. */
export interface FeatureToolOptions {
  /** `true`: the servers of upstreams.json in the contract folder. A path: those of that folder. Default: none. */
  readonly upstreams?: boolean | string;
  readonly hooks?: boolean;
  readonly contract?: string;
  readonly clock?: Clock;
  readonly log?: Log;
}

/** The tools that a feature adds. */
export interface AddedTools {
  readonly tools: readonly Tool[];
  readonly problems: readonly UpstreamProblem[];
  /** Closes every connection and ends every process that was started. */
  close(): Promise<void>;
}

/** Why a tool of an upstream server, or the whole server, is not available. */
export interface UpstreamProblem {
  readonly server: string;
  /** The name as lanes list it; null if the problem concerns the whole server. */
  readonly tool: string | null;
  readonly problem:
    | 'unreachable' // the server cannot be started, reached or read
    | 'unusable' // the name, definition or schema of the tool is not supported
    | 'not_pinned' // no operator has pinned the tool
    | 'changed' // the definition differs from the pinned one
    | 'missing'; // the tool is pinned, but the server no longer lists it
  /** One line, for people. */
  readonly message: string;
}
