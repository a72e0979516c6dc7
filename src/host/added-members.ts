// The members that features add to the public object, in this process and through the owner of the ledger.

import { InvariantError } from '../core/errors.js';
import type { Feature } from '../features/declare-features.js';
import type { AddedMember, AddedMembers, RequestSender } from '../runtime/host-feature.js';
import { type FeatureParts } from './feature-parts.js';
import { LazyPart } from './lazy-part.js';
import type { TurnpikeOptions } from './turnpike-options.js';

type WithHost = Pick<Feature, 'inHost'>;
type AnyMember = AddedMember<unknown>;
type Operations = Readonly<Record<string, (...call: readonly unknown[]) => unknown>>;

/** The members of a Turnpike with these parts. @throws what the creation of a part throws */
export async function openMembers(
  features: readonly WithHost[],
  parts: FeatureParts,
  options: Pick<TurnpikeOptions, 'hooks'>,
): Promise<AddedMembers> {
  const opened: [string, unknown][] = [];
  for (const [name, member] of membersOf(features)) opened.push([name, await openMember(member, parts, options)]);
  return toMembers(opened);
}

async function openMember(
  member: AnyMember,
  parts: FeatureParts,
  options: Pick<TurnpikeOptions, 'hooks'>,
): Promise<unknown> {
  if ('operations' in member) return forwardCalls(member.operations, () => parts.get(member.part));
  return options[member.option] === true ? parts.get(member.part) : null;
}

/**
 * The same members of the process that owns the ledger.
 * @param contract the contract folder that it must use, or null for any
 */
export const remoteMembers = (
  features: readonly WithHost[],
  owner: RequestSender,
  contract: string | null,
): AddedMembers =>
  toMembers(
    membersOf(features).map(([name, member]) => {
      if ('option' in member) return [name, null];
      const remote = new LazyPart(() => member.remote(owner, contract));
      return [name, forwardCalls(member.operations, () => remote.get())];
    }),
  );

/** The members that features add, without the other members of the object. */
export const pickMembers = (features: readonly WithHost[], object: AddedMembers): AddedMembers =>
  toMembers(membersOf(features).map(([name]) => [name, Reflect.get(object, name)]));

const membersOf = (features: readonly WithHost[]): readonly (readonly [name: string, member: AnyMember])[] =>
  features.flatMap(({ inHost }) => Object.entries((inHost?.members ?? {}) as Readonly<Record<string, AnyMember>>));

/** The registry gives each member the type of its name. */
const toMembers = (members: readonly (readonly [name: string, member: unknown])[]): AddedMembers =>
  Object.fromEntries(members) as unknown as AddedMembers;

/** Each operation creates its object when it is first called. It rejects if the object does not have it. */
const forwardCalls = (names: Readonly<Record<string, true>>, create: () => Promise<unknown>): Operations =>
  Object.fromEntries(
    Object.keys(names).map((name) => [
      name,
      async (...call: readonly unknown[]) => {
        const object = (await create()) as Operations;
        const operation = object[name];
        if (operation === undefined) throw new InvariantError(`a part lacks its operation ${name}`);
        return operation.call(object, ...call);
      },
    ]),
  );
