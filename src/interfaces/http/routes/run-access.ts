// Decides which runs a token may see and use. An agent has its own runs: those of the same actor and role, and of its
// case if the token is bound to one. Knowing the id of a run is not enough, and a token that may not see a run does not
// learn that it exists.

import type { RunRecord } from '../../../core/contract/run/run-record.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import { createLruMap } from '../../../system/lru-map.js';
import type { RemoteAgents } from '../../../runtime/agents/remote-agents.js';
import { RefusalError } from '../../service/problems.js';

/** Limit of the cache of run owners. */
const OWNERS_REMEMBERED_MAX = 4_096;

interface RunOwner {
  readonly actor: string;
  readonly role: string;
  readonly case: string | null;
}

export class RunAccess {
  readonly #agents: RemoteAgents;
  readonly #owners = createLruMap<RunOwner>(OWNERS_REMEMBERED_MAX);

  constructor(agents: RemoteAgents) {
    this.#agents = agents;
  }

  /** Whether the caller may propose in a run and end it: the run is remote and its own. The owner never changes. */
  async isOwn(principal: Principal, run_id: string): Promise<boolean> {
    const owner = this.#owners.get(run_id) ?? (await this.#find(run_id));
    return owner !== null && isOwner(principal, owner);
  }

  /** Whether the caller may see a run. A token for one case never sees a run of another case, whatever its rights. */
  canSee(principal: Principal, { actor, case_id }: RunRecord): boolean {
    if (principal.case !== null && principal.case !== case_id) return false;
    if (principal.rights.has('observe') || principal.rights.has('govern')) return true;
    return isOwner(principal, { actor: actor.actor_id, role: actor.role_id ?? '', case: case_id ?? null });
  }

  async #find(run_id: string): Promise<RunOwner | null> {
    const found = await this.#agents.find(run_id);
    if (found === null) return null;
    const { actor, role, case: case_id } = found;
    const owner = { actor, role, case: case_id };
    this.#owners.set(run_id, owner);
    return owner;
  }
}

/** @throws RefusalError RIGHT_MISSING if the token is bound to another case */
export function checkTokenCase({ case: bound }: Principal, case_id: string | null | undefined): void {
  if (bound !== null && bound !== case_id) throw new RefusalError('RIGHT_MISSING');
}

const isOwner = (principal: Principal, owner: RunOwner): boolean =>
  principal.actor === owner.actor &&
  principal.role === owner.role &&
  (principal.case === null || principal.case === owner.case);
