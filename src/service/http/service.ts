// What the routes work on: one Turnpike, and what is remembered beside it while it is served.

import type { Right } from '../../contract/token.js';
import type { Clock } from '../../ports/clock.js';
import type { Log } from '../../ports/log.js';
import type { Principal, TokenBook } from '../../ports/token-book.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import type { InspectorSource } from '../inspector/source.js';
import type { AgentIdentity } from '../mcp/run-door.js';
import type { SessionDeskOptions } from '../mcp/session-desk.js';
import type { KeyedSteps } from './keyed-steps.js';
import type { Metrics } from './metrics.js';
import type { RunAccess } from './run-access.js';
import type { Streams } from './stream.js';

/** Somebody reads content: what an agent wrote, what a case holds, or a bundle of it. */
export interface Access {
  readonly actor: string;
  readonly role: string;
  readonly token: string;
  /** The route, as the OpenAPI document has it. */
  readonly route: string;
  /** What of it: parameters of the route, or the entry and hash that they lead to. Nothing that a caller makes up. */
  readonly subject: Readonly<Record<string, string | number>>;
}

/** Writes down that somebody reads, before he gets it. Where that fails, he does not get it. */
export type AccessAudit = (access: Access) => Promise<void>;

/** What of it is enough to look at a ledger, with nobody who writes to it. */
export interface LookingService {
  /** Null: nothing is inspected here. */
  readonly inspector: InspectorSource | null;
  readonly audit: AccessAudit;
  readonly metrics: Metrics;
  readonly streams: Streams;
  readonly log: Log;
}

export interface HttpService extends LookingService {
  readonly turnpike: Turnpike;
  readonly tokens: TokenBook;
  /** Lane, case and limits of agents that do not name their own. */
  readonly agent: AgentIdentity;
  /** The sessions as somebody speaks to them, or null where there are none. */
  readonly desk: (principal: Principal) => SessionDeskOptions | null;
  /** The folder that export bundles are written to. */
  readonly exports: string;
  readonly access: RunAccess;
  readonly keyed: KeyedSteps;
  readonly version: string;
  readonly clock: Clock;
}

export const hasOneOf = ({ rights }: Principal, wanted: readonly Right[]): boolean =>
  wanted.length === 0 || wanted.some((right) => rights.has(right));
