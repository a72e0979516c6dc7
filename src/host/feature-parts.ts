// What features add to one open Turnpike: their parts, effects and tools, and their members of the public object, in
// this process and through the owner of the ledger. What only some services use is created when it is first used, so
// that its modules are not loaded before.
//
// Invariants of each such part:
//   L1. It is created at most once. If its creation fails, the call that needed it rejects, and the next call tries
//       again.
//   L2. `close` creates nothing. It waits for a creation in flight and closes that part too. A part that is created
//       after it is closed at once.

import type { Effect, EffectResult } from '../core/contract/run/effect.js';
import { InvariantError, usageError } from '../core/errors.js';
import type { Feature } from '../features/declare-features.js';
import type {
  AddedMember,
  AddedMembers,
  CreatePart,
  EffectExecutor,
  EffectsOfFeature,
  HostAccess,
  HostParts,
  PartEvents,
  RequestReader,
  RequestSender,
} from '../runtime/host-feature.js';
import type { AddedTools, FeatureToolOptions } from '../runtime/effects/tools-of-features.js';
import type { TurnpikeOptions } from './turnpike-options.js';

type WithHost = Pick<Feature, 'inHost'>;
type Part = HostParts[keyof HostParts] & PartEvents;

/** Functions that load what reads a request, by `op`. */
export type RequestReaders = ReadonlyMap<string, () => Promise<RequestReader>>;

/** Closes or aborts one part. */
type PartStep = () => Promise<void>;

export class FeatureParts {
  /** The executors of features, in the order of the registry. */
  readonly effects: readonly FeatureEffects[];
  /** By name. A part has the type of its name. */
  readonly #parts: ReadonlyMap<string, LazyPart<Part>>;

  /**
   * @param access what the host offers. It is called when a part is created, and not before.
   * @param onCreated takes each part when it is created: no caller can wait for an event before
   */
  constructor(
    features: readonly WithHost[],
    access: () => HostAccess,
    onCreated: (part: PartEvents) => void = () => undefined,
  ) {
    const added = features.flatMap(({ inHost }) => inHost ?? []);
    this.effects = added.flatMap(({ effects }) => (effects === undefined ? [] : new FeatureEffects(effects, access)));
    const createPart = async (create: CreatePart<Part>): Promise<Part> => {
      const part = await create(access());
      onCreated(part);
      return part;
    };
    const parts = added.flatMap(({ parts: creators = {} }) => Object.entries(creators));
    this.#parts = new Map(parts.map(([name, create]) => [name, new LazyPart(() => createPart(create))]));
  }

  /**
   * The part of this name, which the first call creates.
   * @throws UsageError if no feature has it; what its creation throws
   */
  async get<Name extends keyof HostParts>(name: Name): Promise<HostParts[Name]> {
    const part = await this.find(name);
    if (part === null) throw usageError(`this installation has no feature with the part ${name}`);
    return part;
  }

  /** The same part; null if no feature has it. @throws what its creation throws */
  async find<Name extends keyof HostParts>(name: Name): Promise<HostParts[Name] | null> {
    return ((await this.#parts.get(name)?.get()) ?? null) as HostParts[Name] | null;
  }

  /** A step for each part, which closes it if it was created. */
  get closeSteps(): readonly PartStep[] {
    return [...this.#parts.values()].map((part) => () => part.close((created) => created.close?.()));
  }

  /** A step for each executor, which aborts its running effects. */
  get abortSteps(): readonly PartStep[] {
    return this.effects.map((effects) => () => effects.abort());
  }
}

/** What reads the requests of the control socket that features answer, by their `op`. */
export const requestsOf = (features: readonly WithHost[]): RequestReaders =>
  new Map(features.flatMap(({ inHost }) => Object.entries(inHost?.requests ?? {})));

/** The options with which features add tools, in the order of the tools. */
const TOOL_OPTIONS = ['upstreams', 'hooks'] as const;

/**
 * Opens the tools that these options request of features. Adds a close step to `opened` for each feature.
 * @throws UsageError if no feature has the option; what the feature throws
 */
export async function openAddedTools(
  features: readonly WithHost[],
  options: FeatureToolOptions,
  opened: (() => unknown)[],
): Promise<Pick<AddedTools, 'tools' | 'problems'>> {
  const all: AddedTools[] = [];
  for (const option of TOOL_OPTIONS) {
    if (!isRequested(options, option)) continue;
    const tools = features.find(({ inHost }) => inHost?.tools?.option === option)?.inHost?.tools;
    if (tools === undefined) throw usageError(`this installation has no feature for the option ${option}`);
    const added = await tools.open(options);
    opened.push(() => added.close());
    all.push(added);
  }
  return { tools: all.flatMap(({ tools }) => tools), problems: all.flatMap(({ problems }) => problems) };
}

/** Values of other types come from JavaScript. */
const isRequested = ({ upstreams, hooks }: FeatureToolOptions, option: (typeof TOOL_OPTIONS)[number]): boolean =>
  option === 'hooks' ? hooks === true : upstreams !== undefined && upstreams !== false;

/** The effects of one feature. The first effect creates their executor. */
class FeatureEffects {
  readonly has: EffectsOfFeature['has'];
  readonly changesSandbox: boolean;
  readonly #executor: LazyPart<EffectExecutor>;

  constructor({ has, changesSandbox, create }: EffectsOfFeature, access: () => HostAccess) {
    this.has = has;
    this.changesSandbox = changesSandbox;
    this.#executor = new LazyPart(() => create(access()));
  }

  async run(effect: Effect): Promise<EffectResult> {
    return (await this.#executor.get()).run(effect);
  }

  async settle(effect: Effect): Promise<EffectResult> {
    return (await this.#executor.get()).settle(effect);
  }

  abort(): Promise<void> {
    return this.#executor.close((executor) => executor.abort?.());
  }
}

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

/** Creates a part when it is first used (L1, L2). */
class LazyPart<Part> {
  readonly #create: () => Promise<Part>;
  #creation: Promise<Part> | null = null;
  #current: Part | null = null;
  /** Set by `close`. */
  #closePart: ((part: Part) => unknown) | null = null;

  /** @param create imports the module of the part and creates it */
  constructor(create: () => Promise<Part>) {
    this.#create = create;
  }

  /** The part, which the first call creates. @throws what its creation throws (L1) */
  get(): Promise<Part> {
    this.#creation ??= this.#create().then(
      async (part) => {
        this.#current = part;
        await this.#closePart?.(part);
        return part;
      },
      (error: unknown) => {
        this.#creation = null;
        throw error;
      },
    );
    return this.#creation;
  }

  /** Closes the part if it was used (L2). */
  async close(closePart: (part: Part) => unknown): Promise<void> {
    const part = this.#current;
    this.#closePart = closePart;
    if (part !== null) await closePart(part);
    // The call that needed the part reports the error of its creation.
    else await this.#creation?.catch(() => undefined);
  }
}
