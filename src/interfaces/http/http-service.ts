// What the routes work on: one Turnpike, and the state of the service.

import type { Right } from '../../core/contract/token.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Log } from '../../engine/ports/log.js';
import type { Principal, TokenBook } from '../../engine/ports/token-book.js';
import type { Turnpike } from '../../host/turnpike.js';
import type { IdentityService } from '../service/identity-service.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import type { AgentIdentity } from '../mcp/run-gateway.js';
import type { AddedToolOptions } from '../../runtime/host-feature.js';
import type { Metrics } from './metrics.js';
import type { RunAccess } from './routes/run-access.js';
import type { EventStreams } from './event-streams.js';

/** A read of content: of an agent's text, a case's content, or an exported bag. */
export interface Access {
  readonly actor: string;
  readonly role: string;
  readonly token: string;
  /** The route, as in the OpenAPI document. */
  readonly route: string;
  /** The subject: parameters of the route, or the entry and hash that they resolve to. Never a caller's free text. */
  readonly subject: Readonly<Record<string, string | number>>;
}

/** Records a read before the content is shown. If it throws, the content is not shown. */
export type AccessAudit = (access: Access) => Promise<void>;

/** The parts that suffice to inspect a ledger without writing to it. */
export interface InspectionService {
  /** Null: inspection is not offered. */
  readonly inspector: InspectorSource | null;
  readonly audit: AccessAudit;
  readonly metrics: Metrics;
  readonly streams: EventStreams;
  readonly log: Log;
  /** Callers whom issuers have authenticated. Absent: only tokens of the token book are accepted. */
  readonly identity?: IdentityService;
  /** The address of another worker that executes the steps of a run; null if none is known. */
  readonly findWorker?: (run_id: string, isOfLater?: boolean) => Promise<string | null>;
}

/** Options that only features read. */
export interface FeatureOptions extends AddedToolOptions {
  /**
   * The home directory that hooks of coding agents name, and the variables by which their folder of counts is found.
   * There the service counts the events that it denies without a record. Default: they are not counted.
   */
  readonly hookCounts?: {
    readonly home: string;
    readonly environment: Readonly<Record<string, string | undefined>>;
  };
}

export interface HttpService extends InspectionService {
  readonly turnpike: Turnpike;
  readonly tokens: TokenBook;
  /** Defaults for lane, case and limits of agents. */
  readonly agent: AgentIdentity;
  /** Each route of a feature reads its own. */
  readonly options: FeatureOptions;
  /** The folder for exported bags. */
  readonly exports: string;
  /** Whether the sandbox may be on a network file system. */
  readonly unsafeShared: boolean;
  readonly access: RunAccess;
  readonly version: string;
  readonly clock: Clock;
}

export const hasOneOf = ({ rights }: Principal, required: readonly Right[]): boolean =>
  required.length === 0 || required.some((right) => rights.has(right));
