// EXPORT_BUNDLE: what an export run performs.

import { dirname } from 'node:path';
import Type from 'typebox';
import type { Effect, EffectResult } from '../../contract/run/effect.js';
import { ExportBundle } from '../../contract/evidence/export-bundle.js';
import { Label } from '../../contract/policy/labels.js';
import { closed, Identifier, OneOf, PolicyVersions, Timestamp } from '../../contract/shapes.js';
import { isConforming } from '../../contract/validators.js';
import { BagError, LedgerError, UsageError } from '../../errors.js';
import { joinLabels, createLabel } from '../../policy/labels.js';
import type { LedgerStore, LogHead } from '../../ports/ledger/ledger-store.js';
import type { Log } from '../../ports/log.js';
import { CaseHistory } from '../case/case-history.js';
import { exportAudience } from '../content/audience.js';
import { findWithheldLanes } from '../evidence/withheld-lanes.js';
import type { BagSigner } from '../export/bag-payload.js';
import {
  assembleExportBag,
  settleExportBag,
  type ExportBagRequest,
  type ExportBagSummary,
} from '../export/assemble-bag.js';
import { resolveLocator } from '../export/export-root.js';
import { makeFolder } from '../home/home.js';
import { computeCaseLabel } from '../high-risk/case-label.js';
import { rootRunIdOf } from '../ledger/ledger-reader.js';

export const EXPORT_BUNDLE = 'EXPORT_BUNDLE';

const ExportArgs = Type.Object(
  {
    bundle_id: Identifier,
    bundle_kind: ExportBundle.properties.bundle_kind,
    export_reason: Type.String({ maxLength: 400 }),
    created_at_utc: Timestamp,
    created_by: ExportBundle.properties.created_by,
    policy_versions: PolicyVersions,
    format: OneOf(['folder', 'zip']),
    /** Below the folder of exports. */
    locator: Type.Optional(Type.String({ maxLength: 600 })),
    /** An absolute path, of requests that were recorded before there were locators. */
    destination: Type.Optional(Type.String({ maxLength: 4_096 })),
    /** What runs of the case had read when policy allowed the export. */
    label: Label,
    /** Lanes that withhold content of the case, and whose content the bundle may hold all the same (C84). */
    withheld_lanes: Type.Optional(Type.Array(Type.String({ maxLength: 120 }), { maxItems: 256 })),
    /** Who has approved; put there when the run was. */
    approvals: Type.Optional(
      Type.Array(Type.Object({ approved_by: Type.String(), role_id: Identifier, approved_at_utc: Timestamp }, closed)),
    ),
  },
  closed,
);

export interface ExportParts {
  readonly store: LedgerStore;
  readonly log: Log;
  /** Gives the head of the log with all that was committed before. */
  readonly head: () => Promise<LogHead>;
  /** Gives the key of the ledger; null where it has none. */
  readonly signer: () => BagSigner;
  /** The folder of exports; null where there is none. */
  readonly root: string | null;
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
    const { store, log, head, signer } = this.#parts;
    try {
      // People may have taken days, and meanwhile runs of the case may have read what was not allowed to go out.
      const { case_id } = request;
      const history = new CaseHistory(store, { case_id, head: await head() });
      const currentLabel = await computeCaseLabel(store, history);
      if (joinLabels(label, currentLabel) !== label) return REFUSED;
      // The same holds for content that a lane withholds: it leaves only as it was approved.
      const withheld = await findWithheldLanes(store, history);
      if ([...withheld].some(([lane, exports]) => !exports || !released.has(lane))) return REFUSED;
      if (request.locator !== null) makeFolder(dirname(request.destination));
      const source = { store, audience: exportAudience(case_id) };
      return doneResult(await assembleExportBag(source, request, { history, signer: signer() }));
    } catch (error) {
      // What cannot be assembled leaves nothing behind; anything else nobody can be sure of.
      log.error('a bundle could not be assembled', { run_id: effect.run_id, error });
      if (!(error instanceof BagError || error instanceof LedgerError)) return this.settle(effect);
      return { status: 'failed', cause: error.code === 'BAG_EXISTS' ? 'ALREADY_EXISTS' : 'IO_ERROR' };
    }
  }

  /** Is the bundle there, whole? */
  async settle(effect: Effect): Promise<EffectResult> {
    const approved = this.#parseExport(effect);
    if (approved === null) return { status: 'unknown' };
    try {
      const summary = await settleExportBag(approved.request);
      return summary === null ? { status: 'failed', cause: 'INTERRUPTED' } : doneResult(summary);
    } catch (error) {
      this.#parts.log.error('whether a bundle was assembled is unknown', { run_id: effect.run_id, error });
      return { status: 'unknown' };
    }
  }

  #parseExport(effect: Effect): ApprovedExport | null {
    try {
      return parseExport(effect, this.#parts.root);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.#parts.log.error('a bundle has no place', { run_id: effect.run_id, error });
      return null;
    }
  }
}

const doneResult = (summary: ExportBagSummary): EffectResult => ({ status: 'done', result: { ...summary } });

/** What was read since then, is not what was allowed to go out: it has to be asked for anew. */
const REFUSED: EffectResult = { status: 'failed', cause: 'REFUSED' };

interface ApprovedExport {
  readonly request: ExportBagRequest;
  /** The most that the bundle may come from; its own case always is in it. */
  readonly label: Label;
  /** The lanes whose withheld content the approved request releases; none without an approval. */
  readonly released: ReadonlySet<string>;
}

function parseExport({ args, case_id, run_id }: Effect, root: string | null): ApprovedExport | null {
  if (case_id === null || !isConforming(ExportArgs, args)) return null;
  const named = args as unknown as Type.Static<typeof ExportArgs>;
  const { approvals = [], label, withheld_lanes = [], locator, destination, ...approved } = named;
  if ((locator === undefined) === (destination === undefined)) return null;
  const request: ExportBagRequest = {
    ...approved,
    destination: destination ?? resolveLocator(root, locator ?? ''),
    locator: locator ?? null,
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
