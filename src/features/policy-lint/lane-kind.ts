// Infers the purpose of a lane from what it lists; its name is chosen by the operator and shows nothing.

import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import { NATIVE_TOOL_NAMES, partKindOf } from '../../core/contract/policy/native-tool-names.js';
import type { Lane } from '../../core/contract/policy/lanes.js';

export interface LaneKind {
  /** Its runs can create a bundle for export. */
  readonly exports: boolean;
  /** It is meant to write data that all cases share. */
  readonly promotes: boolean;
  /** It verifies or reviews the work of a session. */
  readonly checks: boolean;
  /** It uses files of a sandbox. */
  readonly files: boolean;
  /** It calls a tool that sends its input out of the platform. */
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
  // A work lane that lists a shared table besides tools is denied that write, so it is not a promotion lane.
  const isWorkLane = tools.length > 0 || writes.some(({ table }) => catalogue.target(table)?.plane === 'case');
  return {
    exports: hasToolPrefix('export_bundle.'),
    promotes: isMeantForPromotion || (shared && !isWorkLane),
    checks: hasToolPrefix('session.'),
    files: hasToolPrefix('sandbox.'),
    sends: tools.some((tool) => catalogue.tool(tool)?.outside === true || isOutsideNatively(tool)),
    calls: tools.length > 0,
    writes: writes.length > 0,
  };
}

/** The tools of coding agents reach beyond the machine, except those that only touch files. */
const isOutsideNatively = (tool: string): boolean => NATIVE_TOOL_NAMES.includes(tool) && partKindOf(tool) !== 'path';
