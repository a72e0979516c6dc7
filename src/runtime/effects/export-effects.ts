// EXPORT_BUNDLE: what an export run performs.

import Type from 'typebox';
import type { Effect, EffectResult } from '../../contract/effect.js';
import { ExportBundle } from '../../contract/export-bundle.js';
import { Label } from '../../contract/labels.js';
import { closed, Identifier, OneOf, PolicyVersions, Timestamp } from '../../contract/shapes.js';
import { conforms } from '../../contract/validators.js';
import { BagError, LedgerError } from '../../errors.js';
import { join, labelOf } from '../../policy/labels.js';
import type { LedgerStore, LogHead } from '../../ports/ledger-store.js';
import type { Log } from '../../ports/log.js';
import { CaseHistory } from '../case/case-history.js';
import { exportAudience } from '../content/audience.js';
import { withheldLanes } from '../evidence/withheld-lanes.js';
import { assembleBundle, settleBundle, type BundleRequest, type BundleSummary } from '../export/bundle.js';
import { labelOfCase } from '../high-risk/case-label.js';
import { rootOf } from '../ledger-reader.js';

export const EXPORT_BUNDLE = 'EXPORT_BUNDLE';

const BundleArgs = Type.Object(
  {
    bundle_id: Identifier,
    bundle_kind: ExportBundle.properties.bundle_kind,
    export_reason: Type.String({ maxLength: 400 }),
    created_at_utc: Timestamp,
    created_by: ExportBundle.properties.created_by,
    policy_versions: PolicyVersions,
    format: OneOf(['folder', 'zip']),
    destination: Type.String({ maxLength: 4_096 }),
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

export class ExportEffects {
  readonly #store: LedgerStore;
  readonly #log: Log;
  readonly #head: () => Promise<LogHead>;

  /** @param head gives the head of the log with all that was committed before */
  constructor(store: LedgerStore, log: Log, head: () => Promise<LogHead>) {
    this.#store = store;
    this.#log = log;
    this.#head = head;
  }

  async perform(effect: Effect): Promise<EffectResult> {
    const asked = requestOf(effect);
    if (asked === null) return { status: 'failed', cause: 'INTERNAL' };
    const { request, label, released } = asked;
    try {
      // People may have taken days, and meanwhile runs of the case may have read what was not allowed to go out.
      const { case_id } = request;
      const history = new CaseHistory(this.#store, { case_id, head: await this.#head() });
      const now = await labelOfCase(this.#store, history);
      if (join(label, now) !== label) return REFUSED;
      // The same holds for content that a lane withholds: it leaves only as it was approved.
      const withheld = await withheldLanes(this.#store, history);
      if ([...withheld].some(([lane, exports]) => !exports || !released.has(lane))) return REFUSED;
      const audience = exportAudience(case_id);
      return done(await assembleBundle({ store: this.#store, audience }, request, history));
    } catch (error) {
      // What cannot be assembled leaves nothing behind; anything else nobody can be sure of.
      this.#log.error('a bundle could not be assembled', { run_id: effect.run_id, error });
      if (!(error instanceof BagError || error instanceof LedgerError)) return this.settle(effect);
      return { status: 'failed', cause: error.code === 'BAG_EXISTS' ? 'ALREADY_EXISTS' : 'IO_ERROR' };
    }
  }

  /** Is the bundle there, whole? */
  async settle(effect: Effect): Promise<EffectResult> {
    const asked = requestOf(effect);
    if (asked === null) return { status: 'unknown' };
    try {
      const summary = await settleBundle(asked.request);
      return summary === null ? { status: 'failed', cause: 'INTERRUPTED' } : done(summary);
    } catch (error) {
      this.#log.error('it cannot be told whether a bundle was assembled', { run_id: effect.run_id, error });
      return { status: 'unknown' };
    }
  }
}

const done = (summary: BundleSummary): EffectResult => ({ status: 'done', result: { ...summary } });

/** What was read since then, is not what was allowed to go out: it has to be asked for anew. */
const REFUSED: EffectResult = { status: 'failed', cause: 'REFUSED' };

interface Asked {
  readonly request: BundleRequest;
  /** The most that the bundle may come from; its own case always is in it. */
  readonly label: Label;
  /** The lanes whose withheld content people have approved to go out; none where nobody has approved anything. */
  readonly released: ReadonlySet<string>;
}

function requestOf({ args, case_id, run_id }: Effect): Asked | null {
  if (case_id === null || !conforms(BundleArgs, args)) return null;
  const { approvals = [], label, withheld_lanes = [], ...asked } = args as unknown as Type.Static<typeof BundleArgs>;
  const request: BundleRequest = {
    ...asked,
    case_id,
    run_id,
    root_run_id: rootOf(run_id),
    approvals: approvals.map(({ approved_by, role_id, approved_at_utc }) => ({
      approval_type: role_id === 'ATTORNEY_ADMIN' ? 'attorney_admin' : 'delegated_admin',
      approved_by,
      approved_at_utc,
      notes: role_id,
    })),
  };
  const released = new Set(approvals.length === 0 ? [] : withheld_lanes);
  return { request, label: join(label, labelOf(case_id, [])), released };
}
