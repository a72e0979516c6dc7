// The key of an agent run is bound to what the run was started with: each option that a repeated start gives must be
// the recorded one. Options that it does not give are those of the run.

import { artifactRef } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { canonicalJson } from '../../core/contract/json.js';
import type { OpenInput, StartAgentInput } from '../../core/contract/run/input.js';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { Identifier } from '../../core/contract/shapes.js';
import type { Policy } from '../../core/policy/policy.js';
import type { AgentOptions } from './agent-run.js';
import {
  narrowExposure,
  requireOneOf,
  validateBudget,
  validateField,
  validateIdle,
  validateScope,
  validateTaxonomy,
  createScopeNotes,
  createStartPrompts,
} from './caller-input.js';

/** What the ledger has of a start; `agent` is null if policy denied the tree. */
export interface RecordedStart {
  readonly open: OpenInput;
  readonly agent: StartAgentInput | null;
  readonly policy: Policy | null;
}

/** Members of a start, as the ledger has them and as a repeated start would have them. */
interface ComparedOption {
  readonly recorded: unknown;
  readonly given: unknown;
}

type Compare<Name extends keyof AgentOptions> = (
  given: Exclude<AgentOptions[Name], undefined>,
  start: RecordedStart,
) => ComparedOption | null;

const agentMember = (start: RecordedStart, name: 'exposure' | 'idle_ms' | 'budget', given: unknown) =>
  start.agent === null ? null : { recorded: start.agent[name], given };

/** The owner of the run: `keyed-runs.ts` compares it, with its defaults. */
const OF_OWNER = null;
/** The key itself, or what no entry records and no decision depends on. */
const UNRECORDED = null;

/** Each option is here: a new one does not compile without its line. */
const COMPARED: { readonly [Name in keyof Required<AgentOptions>]: Compare<Name> | null } = {
  actor: OF_OWNER,
  person: OF_OWNER,
  role: OF_OWNER,
  lane: OF_OWNER,
  case: OF_OWNER,
  key: UNRECORDED,
  link: UNRECORDED,
  trace: UNRECORDED,
  scope: (given, { open }) => ({
    recorded: open.scope,
    given: createScopeNotes(validateScope(given), open.case_id).scope,
  }),
  correlation: (given, { open }) => ({
    recorded: open.correlation_id,
    given: validateField('correlation', Identifier, given),
  }),
  taxonomy: (given, { open }) => ({ recorded: open.taxonomy_versions, given: validateTaxonomy(given) }),
  // What policy narrows to the recorded exposure starts the same.
  exposure(given, start) {
    const known = requireOneOf('exposure', EXPOSURES, given);
    return agentMember(start, 'exposure', narrowExposure(start.policy?.exposure ?? known, known));
  },
  idleMs: (given, start) => agentMember(start, 'idle_ms', validateIdle(given)),
  budget: (given, start) => agentMember(start, 'budget', validateBudget(given)),
  prompts: (given, { open, agent }) =>
    agent === null
      ? null
      : { recorded: agent.given ?? [], given: createStartPrompts(given, open.case_id).prompts.map(artifactRef) },
};

/** How a repeated start differs. */
export interface StartDifference {
  /** The options, sorted. */
  readonly names: readonly string[];
  /** The canonical text of their given values, with prompts as references. */
  readonly text: string;
}

/**
 * @returns null if the start gives nothing that differs from what is recorded
 * @throws UsageError for an invalid option
 */
export function findStartDifference(options: AgentOptions, start: RecordedStart): StartDifference | null {
  const given = options as Readonly<Record<string, unknown>>;
  const differing = Object.entries(COMPARED).flatMap(([name, compare]): readonly (readonly [string, unknown])[] => {
    if (compare === null || given[name] === undefined) return [];
    const found = (compare as Compare<keyof AgentOptions>)(given[name] as never, start);
    if (found === null || canonicalJson(found.recorded) === canonicalJson(found.given)) return [];
    return [[name, name === 'scope' ? sha256(canonicalJson(found.given)) : found.given]];
  });
  if (differing.length === 0) return null;
  return { names: differing.map(([name]) => name).toSorted(), text: canonicalJson(Object.fromEntries(differing)) };
}
