// What the routes work on: one Turnpike, and what is remembered beside it while it is served.

import type { Right } from '../../contract/token.js';
import type { Clock } from '../../ports/clock.js';
import type { Log } from '../../ports/log.js';
import type { Principal, TokenBook } from '../../ports/token-book.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import type { AgentIdentity } from '../mcp/run-gateway.js';
import type { SessionToolsOptions } from '../mcp/session-tools.js';
import type { KeyedSteps } from './routes/keyed-steps.js';
import type { Metrics } from './metrics.js';
import type { RunAccess } from './routes/run-access.js';
import type { EventStreams } from './event-streams.js';

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
export interface InspectionService {
  /** Null: nothing is inspected here. */
  readonly inspector: InspectorSource | null;
  readonly audit: AccessAudit;
  readonly metrics: Metrics;
  readonly streams: EventStreams;
  readonly log: Log;
}

export interface HttpService extends InspectionService {
  readonly turnpike: Turnpike;
  readonly tokens: TokenBook;
  /** Lane, case and limits of agents that do not name their own. */
  readonly agent: AgentIdentity;
  /** The sessions as somebody speaks to them, or null where there are none. */
  readonly sessionTools: (principal: Principal) => SessionToolsOptions | null;
  /** The folder that export bundles are written to. */
  readonly exports: string;
  readonly access: RunAccess;
  readonly keyedSteps: KeyedSteps;
  readonly version: string;
  readonly clock: Clock;
}

export const hasOneOf = ({ rights }: Principal, required: readonly Right[]): boolean =>
  required.length === 0 || required.some((right) => rights.has(right));
