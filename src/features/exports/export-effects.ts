// Runs EXPORT_BUNDLE, the effect of an export run.

import { dirname } from 'node:path';
import Type from 'typebox';
import type { Effect, EffectResult } from '../../core/contract/run/effect.js';
import { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { Label } from '../../core/contract/policy/labels.js';
import { closed, Identifier, OneOf, PolicyVersions, Timestamp } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { BagError, LedgerError, UsageError } from '../../core/errors.js';
import { joinLabels, createLabel } from '../../core/policy/authorize-run.js';
import type { TreeEngine } from '../../engine/tree-engine.js';
import { CaseHistory } from '../../runtime/case/case-history.js';
import { exportAudience } from '../../runtime/content/audience.js';
import { findWithheldLanes } from '../../runtime/content/withheld-lanes.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import { assembleExportBag, settleExportBag, type ExportBagSummary } from './assemble-bag.js';
import type { ExportBagRequest } from './bag-manifest.js';
import { resolveLocator } from '../../runtime/effects/export-root.js';
import { makeFolder } from '../../home/home.js';
import { computeCaseLabel } from '../../runtime/case/case-label.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';

const ExportArgs = Type.Object(
  {
    bundle_id: Identifier,
    bundle_kind: ExportBundle.properties.bundle_kind,
    export_reason: Type.String({ maxLength: 400 }),
    created_at_utc: Timestamp,
    created_by: ExportBundle.properties.created_by,
    policy_versions: PolicyVersions,
    format: OneOf(['folder', 'zip']),
    /** A path below the folder of exports. */
    locator: Type.String({ maxLength: 600 }),
    /** The combined label of the case when policy allowed the export. */
    label: Label,
    /** Lanes that withhold content of the case, and whose content the bag may nevertheless contain (C84). */
    withheld_lanes: Type.Optional(Type.Array(Type.String({ maxLength: 120 }), { maxItems: 256 })),
    /** The people who approved the run, added at their approval. */
    approvals: Type.Optional(
      Type.Array(Type.Object({ approved_by: Type.String(), role_id: Identifier, approved_at_utc: Timestamp }, closed)),
    ),
  },
  closed,
);

/** The head of the log has everything committed so far. */
export interface ExportParts extends Pick<HostAccess, 'store' | 'log' | 'signer' | 'exports'> {
  readonly engine: Pick<TreeEngine, 'head'>;
}

export class ExportEffects {
  readonly #parts: ExportParts;

  constructor(parts: ExportParts) {
    this.#parts = parts;
  }

  async run(effect: Effect): Promise<EffectResult> {
    const approved = this.#parseExport(effect);
    if (approved === null) return { status: 'failed', cause: 'INTERNAL' };
    const { request, label, released } = approved;
    const { store, log, engine, signer } = this.#parts;
    try {
      // Approval may take days. Meanwhile, runs of the case may have read data that the export was not allowed to
      // contain.
      const { case_id } = request;
      const history = new CaseHistory(store, { case_id, head: await engine.head() });
      const currentLabel = await computeCaseLabel(store, history);
      if (joinLabels(label, currentLabel) !== label) return REFUSED;
      // The same applies to content that a lane withholds: it leaves only as approved.
      const withheld = await findWithheldLanes(store, history);
      if ([...withheld].some(([lane, exports]) => !exports || !released.has(lane))) return REFUSED;
      makeFolder(dirname(request.destination));
      const source = { store, audience: exportAudience(case_id) };
      return doneResult(await assembleExportBag(source, request, { history, signer: signer() }));
    } catch (error) {
      // A failed assembly leaves no files. After any other error the outcome is unknown.
      log.error('an export could not be assembled', { run_id: effect.run_id, error });
      if (!(error instanceof BagError || error instanceof LedgerError)) return this.settle(effect);
      return { status: 'failed', cause: error.code === 'BAG_EXISTS' ? 'ALREADY_EXISTS' : 'IO_ERROR' };
    }
  }

  /** Finds out after a crash whether the bag is complete. */
  async settle(effect: Effect): Promise<EffectResult> {
    const approved = this.#parseExport(effect);
    if (approved === null) return { status: 'unknown' };
    try {
      const summary = await settleExportBag(approved.request);
      return summary === null ? { status: 'failed', cause: 'INTERRUPTED' } : doneResult(summary);
    } catch (error) {
      this.#parts.log.error('the outcome of an export is unknown', { run_id: effect.run_id, error });
      return { status: 'unknown' };
    }
  }

  #parseExport(effect: Effect): ApprovedExport | null {
    try {
      return parseExport(effect, this.#parts.exports);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.#parts.log.error('the destination of an export is invalid', { run_id: effect.run_id, error });
      return null;
    }
  }
}

const doneResult = (summary: ExportBagSummary): EffectResult => ({ status: 'done', result: { ...summary } });

/** Data that was read since the approval was not allowed to leave: it needs a new request. */
const REFUSED: EffectResult = { status: 'failed', cause: 'REFUSED' };

interface ApprovedExport {
  readonly request: ExportBagRequest;
  /** The greatest label that the content may have; it always includes the label of its own case. */
  readonly label: Label;
  /** The lanes whose withheld content the approved request releases; empty without an approval. */
  readonly released: ReadonlySet<string>;
}

function parseExport({ args, case_id, run_id }: Effect, root: string | null): ApprovedExport | null {
  if (case_id === null || !isConforming(ExportArgs, args)) return null;
  const named = args as unknown as Type.Static<typeof ExportArgs>;
  const { approvals = [], label, withheld_lanes = [], ...approved } = named;
  const request: ExportBagRequest = {
    ...approved,
    destination: resolveLocator(root, approved.locator),
    case_id,
    run_id,
    root_run_id: rootRunIdOf(run_id),
    approvals: approvals.map(({ approved_by, role_id, approved_at_utc }) => ({
      approval_type: role_id === 'ATTORNEY_ADMIN' ? 'attorney_admin' : 'delegated_admin',
      approved_by,
      approved_at_utc,
      notes: role_id,
    })),
  };
  const released = new Set(approvals.length === 0 ? [] : withheld_lanes);
  return { request, label: joinLabels(label, createLabel(case_id, [])), released };
}
