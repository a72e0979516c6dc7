import { compareNames, type Person } from '../../core/contract/person.js';
import { personOf } from '../../names/person-name.js';
import type { Tree } from '../../kernel/tree.js';

/**
 * The person that a voter counts as. An actor stands for the person of its run: a voter who votes under the name of an
 * agent of the tree, or of the actor that has made the request, or under a name that looks like one of them, counts as
 * the requester, and policy refuses the vote (`approval.by_requester`).
 * @param names the names under which the vote is given
 */
export function countedPerson(
  tree: Pick<Tree, 'approvals' | 'runs'> | null,
  {
    run,
    digests,
    names,
  }: { readonly run: string; readonly digests: readonly string[]; readonly names: readonly string[] },
  person: Person,
): Person {
  const requests = tree?.approvals(run)?.entries.filter(({ digest }) => digests.includes(digest)) ?? [];
  const [requester] = requests.flatMap((entry) => (entry.requester === undefined ? [] : [entry.requester]));
  // Whom policy refuses anyway, it refuses with its own rule.
  if (tree === null || requester === undefined || compareNames(requester, person) !== 'other') return person;
  const agents = tree.runs.filter(({ context }) => context.run_kind === 'agent');
  const actors = [
    ...requests.map(({ requested_by }) => requested_by),
    ...agents.map(({ context }) => context.actor.actor_id),
  ];
  const isActor = names.some((name) => actors.some((actor) => isAlike(actor, name)));
  return isActor ? requester : person;
}

/** Names that cannot be compared are no names of voters. */
function isAlike(actor: string, name: string): boolean {
  const [a, b] = [personOf(actor), personOf(name)];
  return typeof a !== 'string' && typeof b !== 'string' && compareNames(a, b) !== 'other';
}
