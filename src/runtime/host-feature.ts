// How a feature takes part in an open Turnpike. The host names here what it needs of features, and the registry says
// which feature has it, so the host imports none. `TreeFeature` is the same for trees.

import type { Static, TSchema } from 'typebox';
import type { JsonObject } from '../core/contract/json.js';
import type { Catalogue } from '../core/contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../core/contract/run/effect.js';
import type { Secrets } from '../core/contract/secrets.js';
import type { NoteSigner } from '../core/ledger/proof/signed-note.js';
import type { Clock } from '../engine/ports/clock.js';
import type { CommandRunner } from '../engine/ports/effects/command-runner.js';
import type { DecisionService } from '../engine/ports/effects/decision-service.js';
import type { Ids } from '../engine/ports/ids.js';
import type { LedgerStore } from '../engine/ports/ledger/ledger-store.js';
import type { Log } from '../engine/ports/log.js';
import type { Pace } from '../engine/ports/pace.js';
import type { Effects, TreeEngine } from '../engine/tree-engine.js';
import type { RunTermination } from '../kernel/decision.js';
import type { AgentLoops } from './agents/agent-loop.js';
import type { Agents, RunTracing } from './agents/agents.js';
import type { ActionDecision, DecisionRequest } from './agents/decision-request.js';
import type { BoundedCalls } from './effects/bounded-calls.js';
import type { AddedTools, FeatureToolOptions } from './effects/tools-of-features.js';
import type { Ballots, HighRiskStarts } from './high-risk-options.js';
import type { LedgerReader } from './ledger/ledger-reader.js';
import type { PolicyCache } from './policy-cache.js';

/** What a feature adds to an open Turnpike. Each member loads the feature when it is first used. */
export interface HostFeature {
  /** Executes effects of runs that features start themselves. */
  readonly effects?: EffectsOfFeature;
  /** The tools that it adds if this option of `openTurnpike` is set. They are opened with the Turnpike. */
  readonly tools?: {
    readonly option: 'upstreams' | 'hooks';
    readonly open: (options: FeatureToolOptions) => Promise<AddedTools>;
  };
  readonly parts?: { readonly [Name in keyof HostParts]?: CreatePart<HostParts[Name]> };
  /** Its members of the public object. */
  readonly members?: { readonly [Name in keyof AddedMembers]?: AddedMember<AddedMembers[Name]> };
  /** Functions that read the requests of the control socket that it answers, by `op`. */
  readonly requests?: Readonly<Record<string, () => Promise<RequestReader>>>;
}

/**
 * The parts of a Turnpike that features create. The host knows a part by its name, and not which feature has it. A
 * feature merges a part here if only its own folder has the type.
 */
export interface HostParts {
  /** Asks the decision points of policies. */
  readonly decisionPoints: Pick<Effects, 'ask'>;
  readonly agentLoops: AgentLoops;
  /** Decides actions that the caller executes itself. */
  readonly decisions: { decide(request: DecisionRequest): Promise<ActionDecision> };
  readonly highRiskRuns: HighRiskStarts;
  readonly ballots: Ballots;
}

/** What features add to the public object `Turnpike`. A feature merges its member here. */
export interface AddedMembers {}

/** The options of `openTurnpike` that only a feature reads. The feature merges them here. */
export interface AddedOptions {}

/** How a feature adds a member to the public object. */
export type AddedMember<Member> = MemberOnCall<Member> | MemberWithOption<Member>;

/** A member whose part is created with the first call of an operation. */
export interface MemberOnCall<Member> {
  readonly part: PartOf<Member>;
  readonly operations: Readonly<Record<keyof Member, true>>;
  /**
   * Creates the same member for a process that works through the owner of the ledger.
   * @param contract the contract folder that the owner must use, or null for any
   */
  readonly remote: (owner: RequestSender, contract: string | null) => Promise<Member>;
}

/** A member whose part is created with the Turnpike if this option is set. Without it, and in other processes: null. */
export interface MemberWithOption<Member> {
  readonly part: PartOf<Member>;
  readonly option: 'hooks';
}

/** The names of the parts that can be this member. */
type PartOf<Member> = {
  [Name in keyof HostParts]: HostParts[Name] extends NonNullable<Member> ? Name : never;
}[keyof HostParts];

/**
 * Reads a request of another process, without its `id` and `op`.
 * @returns what answers it; null if it does not conform to its schema
 */
export type RequestReader = (request: JsonObject) => RequestAnswer | null;
type RequestAnswer = (host: RequestHost) => Promise<unknown>;

/** What an answer to a request of another process is made with. */
export interface RequestHost {
  readonly members: AddedMembers;
  /** @throws UsageError if this process uses another contract folder; null requests none */
  readonly checkContract: (requested: string | null) => void;
}

/** The members of a request besides its `id`. */
export interface RequestMembers {
  readonly op: string;
  readonly [name: string]: unknown;
}

/** Sends requests to the process that owns the ledger. */
export interface RequestSender {
  /** @returns an answer that conforms to the schema. @throws what the owner answers */
  request<T extends TSchema>(body: RequestMembers, schema: T): Promise<Static<T>>;
}

/** The members of a Turnpike with which the tools of features work in an MCP server. A feature merges its own here. */
export interface AddedToolMembers {}

/** Options of an MCP server that only the tools of features read. A feature merges its own here. */
export interface AddedToolOptions {}

/** Imports the module of a part and creates the part. */
export type CreatePart<Part> = (host: HostAccess) => Promise<Part & PartEvents>;

/** What a part may react to. It gets no event from before its creation. */
export interface PartEvents {
  onRunEnded?(ending: RunTermination): void;
  /** Nothing is recorded any more until a restart. */
  onEngineFailed?(): void;
  /** The Turnpike closes, and the engine still accepts inputs. */
  close?(): unknown;
}

/** The effects that a feature executes. */
export interface EffectsOfFeature {
  /** Whether it executes this effect. Must not load the feature. */
  readonly has: (effect: Effect) => boolean;
  /** Whether an effect may change files of its case that no quota of this effect limits. */
  readonly changesSandbox: boolean;
  readonly create: (host: HostAccess) => Promise<EffectExecutor>;
}

/** Executes effects. */
export interface EffectExecutor {
  run(effect: Effect): Promise<EffectResult>;
  /** Finds out the outcome of an effect after a crash. */
  settle(effect: Effect): EffectResult | Promise<EffectResult>;
  /** Aborts the running effects, because the process is about to end. */
  abort?(): void;
}

/** What the host offers to features. */
export interface HostAccess {
  readonly engine: TreeEngine;
  readonly agents: Agents;
  readonly store: LedgerStore;
  readonly ledger: LedgerReader;
  readonly policyCache: PolicyCache;
  readonly catalogue: Catalogue;
  readonly calls: BoundedCalls;
  /** Runs programs in the sandbox. */
  readonly commands: CommandRunner;
  readonly decisionService: DecisionService;
  readonly secrets: Secrets;
  readonly telemetry: RunTracing;
  /** Returns the key of the ledger; null if it has none. */
  readonly signer: () => NoteSigner | null;
  /** The folder of exports, or null. */
  readonly exports: string | null;
  readonly options: AddedOptions;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly pace: Pace;
  readonly log: Log;
}
