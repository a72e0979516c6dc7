// How a feature takes part in an open Turnpike. The host names here what it needs of features, and the registry says
// which feature has it, so the host imports none. `TreeFeature` is the same for trees.

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
}

/**
 * The parts of a Turnpike that features create. The host knows a part by its name, and not which feature has it. A
 * feature merges a part here if only its own folder has the type.
 */
export interface HostParts {
  /** Asks the decision points of policies. */
  readonly decisionPoints: Required<Pick<Effects, 'ask'>>;
  readonly agentLoops: AgentLoops;
  /** Decides actions that the caller executes itself. */
  readonly decisions: { decide(request: DecisionRequest): Promise<ActionDecision> };
  readonly highRiskRuns: HighRiskStarts;
  readonly ballots: Ballots;
}

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
  readonly ids: Ids;
  readonly clock: Clock;
  readonly pace: Pace;
  readonly log: Log;
}
