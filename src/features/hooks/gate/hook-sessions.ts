// The run trees of sessions of coding agents. A session has one live tree at a time: its main agent is the first agent
// run of that tree, and each subagent is another one. The id of a tree follows from the session and from the number of
// trees before it, so that every process finds it without a memory of its own.

import { canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { toRecordedScopeValue } from '../../../core/contract/free-text.js';
import { createLruMap } from '../../../system/lru-map.js';
import { CLIENTS, type Client, type HookOrigin } from '../hook-event.js';
import { givenCaseOf } from '../../../runtime/agents/choose-case.js';
import { keyedRoot, startKeyedRun } from '../../../runtime/agents/keyed-runs.js';
import type { HostAccess } from '../../../runtime/host-feature.js';

/** Who runs a coding agent, and under which policy. The caller is authenticated; the event only says the rest. */
export interface HookCaller {
  readonly actor: string;
  /** The person behind the actor, who cannot approve what the agent requests. */
  readonly person?: string;
  readonly role: string;
  readonly lane: string;
  /** Absent: the trees of the session have no case if the lane requires one, else a case of their own. */
  readonly case?: string;
  /** The folder of the project, an absolute path. */
  readonly project: string;
}

/** What a check of the client has found before its session begins (`turnpike agents doctor`). */
export interface ClientCheck {
  /** The version of the client; null if it could not be found out. */
  readonly version: string | null;
  /** The ids of the findings by which the client could act without asking. Empty: it is safe. */
  readonly findings: readonly string[];
  /** The SHA-256 of the hook program; absent if none was seen. */
  readonly hook_sha256?: string;
  /** What the repository has that runs without a hook. */
  readonly repository?: readonly string[];
  /** What the user has that runs without a hook. */
  readonly user?: readonly string[];
  /** What its session cannot be compared with (`call-coverage.ts`); absent if nothing was looked at. */
  readonly uncompared?: string;
}

/** The state of a session. */
export type HookSessionState =
  /** Its tree is live; `root` is its id. */
  | { readonly state: 'open'; readonly root: string }
  /** It has no tree yet, or its last tree has ended: the client must be checked first. */
  | { readonly state: 'unchecked' }
  /** The client could act without asking. */
  | { readonly state: 'unsafe' }
  /** Policy has ended it; a person may reopen it. */
  | { readonly state: 'closed'; readonly run_id: string }
  /** It belongs to another project. */
  | { readonly state: 'other_project' };

type HookSessionsParts = Pick<HostAccess, 'agents' | 'engine' | 'ledger'>;

/** How many trees one session may have. */
const TREES_MAX = 4_096;
/** How many sessions have their present tree in memory. */
const REMEMBERED_MAX = 4_096;
/** Thirty days: a session may rest before it is resumed. */
const IDLE_MS = 2_592_000_000;

/** The budgets of a tree are those of the session: without a part for each, the main agent would have them all. */
const MAIN_BUDGET = { budgetShare: 1 / 2 } as const;
const SUBAGENT_BUDGET = { budgetShare: 1 / 32 } as const;

type Origin = Pick<HookOrigin, 'session'>;

export class HookSessions {
  readonly #parts: HookSessionsParts;
  /** The number of the newest known tree of each session. It only saves lookups. */
  readonly #newest = createLruMap<number>(REMEMBERED_MAX);

  constructor(parts: HookSessionsParts) {
    this.#parts = parts;
  }

  async find(client: Client, { session }: Origin, caller: HookCaller): Promise<HookSessionState> {
    const name = nameOf(client, session, caller);
    const known = this.#newest.get(name);
    // While its newest known tree is live there is no newer one.
    const live = known === undefined ? null : await this.#findLive(name, known, caller);
    if (live !== null) return live;
    const number = await this.#newestTree(name);
    if (number < 0) return { state: 'unchecked' };
    return (await this.#findLive(name, number, caller)) ?? this.#endedState(keyedRoot(keyOf(name, number)));
  }

  async #findLive(name: string, number: number, { project }: HookCaller): Promise<HookSessionState | null> {
    if (number < 0) return null;
    const root = keyedRoot(keyOf(name, number));
    const tree = await this.#parts.engine.peek(root);
    if (tree?.isLive(mainAgentOf(root)) !== true) return null;
    const isSame = tree.run(mainAgentOf(root))?.context.scope['project'] === toRecordedScopeValue(project);
    return isSame ? { state: 'open', root } : { state: 'other_project' };
  }

  async #endedState(root: string): Promise<HookSessionState> {
    const main = (await this.#parts.engine.peek(root))?.run(mainAgentOf(root)) ?? null;
    const record = await this.#parts.ledger.run(main === null ? root : mainAgentOf(root));
    if (record?.status === 'denied') return { state: 'closed', run_id: record.run_id };
    return record?.outcome === 'cancelled:unsafe_client' ? { state: 'unsafe' } : { state: 'unchecked' };
  }

  /**
   * Opens the next tree of a session after its client was checked, unless it has a live one.
   * @param safe false if the client could act without asking: the tree ends at once, as a record of that
   * @param reopened_by the person who reopens a session that policy has ended
   */
  async open(
    client: Client,
    origin: Origin,
    {
      caller,
      safe,
      check,
      reopened_by = null,
    }: {
      readonly caller: HookCaller;
      readonly safe: boolean;
      readonly check: ClientCheck | null;
      readonly reopened_by?: string | null;
    },
  ): Promise<HookSessionState> {
    const found = await this.find(client, origin, caller);
    if (found.state === 'open' || found.state === 'other_project') return found;
    if (found.state === 'closed' && reopened_by === null) return found;
    const name = nameOf(client, origin.session, caller);
    const key = keyOf(name, (await this.#newestTree(name)) + 1);
    const { actor, person, role, lane, case: case_id, project } = caller;
    const scope = omitUndefined({
      ...{ client, client_session: origin.session, project },
      client_version: check?.version ?? undefined,
      client_hook: check?.hook_sha256,
      client_uncompared: check?.uncompared,
      reopened_by: reopened_by ?? undefined,
    });
    const run = await startKeyedRun(this.#parts, {
      ...{ actor, role, lane, ...omitUndefined({ case: case_id, person }), ...MAIN_BUDGET },
      ...{ key, scope, correlation: `cor_${name.slice(0, 32)}`, idleMs: IDLE_MS },
    });
    if (!safe) await run.cancel('unsafe_client');
    return this.find(client, origin, caller);
  }

  /**
   * Opens the next tree of a session that policy has ended. What identifies the session is in the scope of its trees.
   * @returns the state of the session before
   */
  async reopen(root: string, reopened_by: string): Promise<HookSessionState | null> {
    const main = (await this.#parts.engine.peek(root))?.run(mainAgentOf(root))?.context;
    const client = CLIENTS.find((one) => one === main?.scope['client']);
    const { client_session: session, project } = main?.scope ?? {};
    if (main?.lane_id == null || client === undefined) return null;
    if (session === undefined || project === undefined) return null;
    const { actor, role_id: role, lane_id: lane } = main;
    const case_id = givenCaseOf(main);
    const caller = { actor: actor.actor_id, role, lane, project, ...omitUndefined({ case: case_id }) };
    const found = await this.find(client, { session }, caller);
    if (found.state === 'closed' && found.run_id.startsWith(root))
      await this.open(client, { session }, { caller, safe: true, check: null, reopened_by });
    return found;
  }

  /** The agent run of an event, which is started for a new subagent; null if policy denies it. */
  async agentOf(root: string, origin: Pick<HookOrigin, 'agent'>, caller: HookCaller): Promise<string | null> {
    const known = await this.knownAgentOf(root, origin, caller);
    if (known !== null || origin.agent === null) return known;
    const actor = subagentOf(caller, origin.agent);
    const { person = caller.actor, role, lane } = caller;
    const options = { actor, person, role, lane, link: 'remote', idleMs: IDLE_MS, ...SUBAGENT_BUDGET } as const;
    return this.#parts.agents.startIn(root, sha256(origin.agent).slice(0, 16), options);
  }

  /** The agent run of an event; null for a subagent that has none. */
  async knownAgentOf(root: string, { agent }: Pick<HookOrigin, 'agent'>, caller: HookCaller): Promise<string | null> {
    if (agent === null) return mainAgentOf(root);
    const actor = subagentOf(caller, agent);
    const tree = await this.#parts.engine.peek(root);
    return tree?.runs.find(({ context }) => context.actor.actor_id === actor)?.context.run_id ?? null;
  }

  /** Ends every agent run of a tree: the subagents first. Calls that wait for a report have an unknown outcome then. */
  async end(root: string): Promise<void> {
    const tree = await this.#parts.engine.peek(root);
    const agents = (tree?.runs ?? []).filter(({ context }) => context.run_kind === 'agent').reverse();
    for (const { context } of agents) await this.endAgent(context.run_id);
  }

  async endAgent(run_id: string): Promise<void> {
    await (await this.#parts.agents.find(run_id))?.end();
  }

  /** The number of the newest tree of a session, or -1. Trees are numbered without a gap. */
  async #newestTree(name: string): Promise<number> {
    let number = this.#newest.get(name) ?? -1;
    while (number + 1 < TREES_MAX && (await this.#parts.engine.peek(keyedRoot(keyOf(name, number + 1)))) !== null)
      number += 1;
    this.#newest.set(name, number);
    return number;
  }
}

/** The first agent run of a tree. */
export const mainAgentOf = (root: string): string => `${root}.1`;

/** The actor of a subagent: that of its session, with the hash of the client's id. */
const subagentOf = ({ actor }: HookCaller, agent: string): string =>
  `${actor.slice(0, 80)}/${sha256(agent).slice(0, 16)}`;

/** Two callers never share a session, even if their clients use the same id. */
const nameOf = (client: Client, session: string, { actor, role, lane, case: case_id }: HookCaller): string =>
  sha256(canonicalJson([client, toRecordedScopeValue(session), actor, role, lane, case_id ?? null]));

const keyOf = (name: string, number: number): string => `hook:${name}:${number}`;
