import type { ExportBundle } from '../../contract/evidence/export-bundle.js';
import type { JsonObject } from '../../contract/json.js';
import type { ConfidentialityFlag } from '../../contract/policy/labels.js';
import type { WriteMode } from '../../contract/policy/lanes.js';
import type { RunEnding } from '../agents/agent-run.js';

/** Who starts a promotion or an export. */
export interface RunStarter {
  /** For the audit; 3 to 120 characters. */
  readonly actor: string;
  readonly role: string;
  readonly case: string;
  readonly lane?: string;
  /** Further scope fields that the lane requires. */
  readonly scope?: Readonly<Record<string, string>>;
  readonly correlation?: string;
}

export interface PromoteOptions extends RunStarter {
  /** `promotion_ticket_id` (S4-71). */
  readonly ticket: string;
  /** A registered target of shared knowledge. */
  readonly target: string;
  readonly mode?: WriteMode;
  /** The sanitized insight, as a record of that target. */
  readonly record: JsonObject;
  /** Artifacts of the case that it was made from, by their SHA-256. */
  readonly sources?: readonly string[];
  /** What the record itself may hold; a promotion lane prohibits all of it. */
  readonly confidentiality?: readonly ConfidentialityFlag[];
}

export interface ExportOptions extends RunStarter {
  readonly reason: string;
  readonly kind?: ExportBundle['bundle_kind'];
  /** A path at which nothing is yet, below the folder of exports: relative to that folder, or absolute. */
  readonly destination: string;
  readonly format?: 'folder' | 'zip';
}

/** A promotion or export run, as its caller holds it. */
export interface HighRiskRun {
  readonly run_id: string;
  readonly root_run_id: string;
  readonly correlation_id: string;
  /** What people have to approve before anything happens (D7); null where nobody has to, or it was denied at once. */
  readonly digest: string | null;
  /** Resolves when the run has ended; rejects when this process lets go of it before. */
  readonly finished: Promise<RunEnding>;
}

/** Somebody's answer to requests of one run. */
export interface Ballot {
  readonly run: string;
  /** Each an exact request: its SHA-256, as `approvals` lists it. */
  readonly digests: readonly string[];
  readonly decision: 'approve' | 'reject';
  readonly actor: string;
  readonly role: string;
}

/** What became of a ballot for one digest: `counted`, and the rule that says why or why not. */
export interface BallotResult {
  readonly digest: string;
  readonly counted: boolean;
  readonly rule_id: string;
}

/** D8: what somebody has found out of an action whose outcome was unknown. */
export interface Resolution {
  /** The mediated run that ended as OUTCOME_UNKNOWN. */
  readonly run: string;
  readonly outcome: 'done' | 'not_executed';
  readonly actor: string;
  readonly role: string;
  readonly note?: string;
}
