// What a lane is for, as far as that can be seen from what it lists: names are the operator's.

import type { Catalogue } from '../../contract/policy/catalogue.js';
import type { Lane } from '../../contract/policy/lanes.js';

export interface LaneKind {
  /** Runs in it can make a bundle that leaves. */
  readonly exports: boolean;
  /** It is meant to write what all cases share. */
  readonly promotes: boolean;
  /** It verifies or reviews the work of a session. */
  readonly checks: boolean;
  /** It works on files of a sandbox. */
  readonly files: boolean;
  /** It calls a tool that sends what it is given out of the platform. */
  readonly sends: boolean;
  readonly calls: boolean;
  readonly writes: boolean;
}

const PROMOTION_FIELD = 'promotion_ticket_id';
/** Prohibitions that only promotions need. */
export const PROMOTION_PROHIBITS = ['raw_case_text', 'client_identity', 'privileged_notes'] as const;

export function laneKindOf({ allowed_actions, scope }: Lane, catalogue: Catalogue): LaneKind {
  const { tools = [], writes = [] } = allowed_actions;
  const hasToolPrefix = (prefix: string): boolean => tools.some((tool) => tool.startsWith(prefix));
  const shared = writes.some(({ table }) => table.startsWith('shared_') || catalogue.target(table)?.plane === 'shared');
  const isMeantForPromotion =
    scope.requires.includes(PROMOTION_FIELD) || PROMOTION_PROHIBITS.some((name) => scope.prohibits.includes(name));
  // A lane for work that lists a shared table beside tools is denied the write; it is none for promotions.
  const isWorkLane = tools.length > 0 || writes.some(({ table }) => catalogue.target(table)?.plane === 'case');
  return {
    exports: hasToolPrefix('export_bundle.'),
    promotes: isMeantForPromotion || (shared && !isWorkLane),
    checks: hasToolPrefix('session.'),
    files: hasToolPrefix('sandbox.'),
    sends: tools.some((tool) => catalogue.tool(tool)?.outside === true),
    calls: tools.length > 0,
    writes: writes.length > 0,
  };
}
