// The parts of features in one open Turnpike. Each is created when it is first used (`LazyPart`).

import type { Effect, EffectResult } from '../core/contract/run/effect.js';
import { usageError } from '../core/errors.js';
import type { Feature } from '../features/declare-features.js';
import type {
  CreatePart,
  EffectExecutor,
  EffectsOfFeature,
  HostAccess,
  HostParts,
  PartEvents,
  RequestReader,
} from '../runtime/host-feature.js';
import type { AddedTools, FeatureToolOptions } from '../runtime/effects/tools-of-features.js';
import { LazyPart } from './lazy-part.js';

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
    features: readonly Pick<Feature, 'inHost'>[],
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
export const requestsOf = (features: readonly Pick<Feature, 'inHost'>[]): RequestReaders =>
  new Map(features.flatMap(({ inHost }) => Object.entries(inHost?.requests ?? {})));

/** The options with which features add tools, in the order of the tools. */
const TOOL_OPTIONS = ['upstreams', 'hooks'] as const;

/**
 * Opens the tools that these options request of features. Adds a close step to `opened` for each feature.
 * @throws UsageError if no feature has the option; what the feature throws
 */
export async function openAddedTools(
  features: readonly Pick<Feature, 'inHost'>[],
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
