// Who was given content, in the ledger itself (`turnpike.readContent`). Of entries, which hold hashes and no content,
// nothing is written down: whoever follows the ledger would make it grow by following.

import { InvariantError } from '../../errors.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import type { InspectorSource } from '../inspector/source.js';
import type { AccessAudit } from './service.js';

/** @returns an audit that writes to the ledger that is served; of an export its own run tells */
export function ledgerAudit(turnpike: Pick<Turnpike, 'readContent'>, inspector: InspectorSource): AccessAudit {
  return async ({ actor, role, route, subject: { log_index, sha256, run_id, step } }) => {
    if (route.endsWith('/artifacts/{sha256}')) {
      await turnpike.readContent({ actor, role, log_index: Number(log_index), sha256: String(sha256) });
    } else if (route.endsWith('/steps/{run_id}/{step}')) {
      const story = await inspector.step(String(run_id), Number(step));
      const payload = story === null ? undefined : (await inspector.event(story.proposal))?.artifacts[0];
      if (story === null || payload === undefined) return;
      if (payload.withheld === null)
        await turnpike.readContent({ actor, role, log_index: story.proposal, sha256: payload.sha256 });
    } else if (!WITHOUT_CONTENT.has(route)) {
      throw new InvariantError(`nobody has said whether ${route} shows content`);
    }
  };
}

const WITHOUT_CONTENT: ReadonlySet<string> = new Set([
  '/api/v1/events',
  '/api/v1/events/{log_index}',
  '/api/v1/inspector/entries',
  '/api/v1/stream',
  // Its own run is its record.
  '/api/v1/exports',
]);
