// The registry: every feature with what it adds outside its folder. Nothing here loads a feature before it is needed.
// The files `feature-*.ts` list what services, the page and entries of the package import at once, and
// `early-commands.ts` the commands that start alone. To remove an optional feature, remove its folder, its entry here
// and there, and the exports that name it.

import { EXPORT_BUNDLE } from '../core/contract/evidence/export-bundle.js';
import type {
  CallerOptions,
  CommandGroup,
  StateTable,
  TelemetryOptions,
  ToolCommandOptions,
} from '../interfaces/cli/command.js';
import type { DemoStep } from '../interfaces/cli/demo.js';
import type { AddedViews } from '../interfaces/inspector/added-views.js';
import { declareFeature, installVocabulary, type DeclaredFeature } from '../core/contract/run/feature-vocabulary.js';
import {
  CONDITIONS,
  installConditionLanguage,
  type ConditionLanguage,
  HOOKS,
  installCallDecider,
  type CallDecider,
  DECISION_POINTS,
  installDecisionPoints,
  type DecisionPointRules,
  APPROVALS,
  installApprovalDecider,
  type ApprovalDecider,
} from '../core/policy/policy-features.js';
import type { PolicyLinter } from '../home/policy/policy-linter.js';
import { mayHaveKey } from '../core/policy/files/may-have-key.js';
import { installLedgerFacts, type LedgerFactsSource } from '../engine/ledger-facts.js';
import type { StartReporter } from '../engine/ports/ledger/cluster.js';
import { installedFeature, installTreeFeature, type TreeFeature } from '../kernel/tree-feature.js';
import type { ObserveEngine } from '../runtime/engine-observation.js';
import type { HostFeature } from '../runtime/host-feature.js';

const install = async (loading: Promise<TreeFeature>): Promise<void> => {
  installTreeFeature(await loading);
};

/** Installs a feature that decides by a policy and records nothing of its own. */
const installWithoutRecords = (feature: string): void => {
  installVocabulary({ feature, inputs: {}, entries: {} });
};
/** Only conditions read facts of the ledger, so one feature has both. */
const installConditions = async (
  language: Promise<ConditionLanguage>,
  ledgerFacts: Promise<LedgerFactsSource>,
): Promise<void> => {
  const loaded = await Promise.all([language, ledgerFacts]);
  installConditionLanguage(loaded[0]);
  installLedgerFacts(loaded[1]);
  installWithoutRecords(CONDITIONS);
};
const installCallRules = async (loading: Promise<CallDecider>): Promise<void> => {
  installCallDecider(await loading);
  installWithoutRecords(HOOKS);
};
const installApprovals = async (loading: Promise<ApprovalDecider>): Promise<void> => {
  installApprovalDecider(await loading);
  installWithoutRecords(APPROVALS);
};
const installPoints = async (loading: Promise<DecisionPointRules>): Promise<void> => {
  installDecisionPoints(await loading);
  installWithoutRecords(DECISION_POINTS);
};

/** A feature, and what it adds. Each member is absent if the feature adds nothing there. */
export interface Feature {
  /** The name of its folder. */
  readonly name: string;
  /** Its part in trees or policies, which is loaded when an entry that needs it is first read or decided. */
  readonly inTrees?: Omit<DeclaredFeature, 'feature'>;
  /** What it adds to an open Turnpike. Each member loads it when it is first used. */
  readonly inHost?: HostFeature;
  /** Its commands, under the titles of the help. Loaded with the command line. */
  readonly commands?: () => Promise<readonly CommandGroup[]>;
  /** Its options of `turnpike serve`. Loaded with the command line. */
  readonly callerOptions?: () => Promise<CallerOptions>;
  /** Its options of the commands that serve. Loaded with the command line. */
  readonly telemetryOptions?: () => Promise<TelemetryOptions>;
  /** Its options of `turnpike mcp` and `turnpike serve` for its tools. Loaded with the command line. */
  readonly toolOptions?: () => Promise<ToolCommandOptions>;
  /** Adds what it shows in the demonstration of `turnpike serve --demo`. */
  readonly demonstrate?: () => Promise<DemoStep>;
  /** What traces and measures an engine. Loaded when a Turnpike is opened with telemetry. */
  readonly observeEngine?: () => Promise<ObserveEngine>;
  /** The past states of what it has opened. Loaded when a command prints the state of the ledger. */
  readonly stateTable?: () => Promise<StateTable>;
  /** Its linter of policies. Loaded when a command loads a policy. */
  readonly linter?: () => Promise<PolicyLinter>;
  /** Its views in the inspector. */
  readonly views?: AddedViews;
  /** What reports a worker of a shared ledger to the others. Loaded when a worker opens the ledger. */
  readonly workerReporter?: () => Promise<StartReporter>;
}

export const FEATURES: readonly Feature[] = [
  {
    name: 'decisions',
    inHost: {
      parts: { decisions: async (host) => new (await import('./decisions/decisions.js')).Decisions(host) },
    },
    commands: async () => (await import('./decisions/commands/decision-commands.js')).DECISION_COMMANDS,
  },
  {
    name: 'promotions',
    inHost: {
      parts: {
        highRiskRuns: async (host) => new (await import('./promotions/high-risk-runs.js')).HighRiskRuns(host),
        ballots: async (host) => (await import('./promotions/ballots.js')).openBallots(host),
      },
    },
    commands: async () => (await import('./promotions/commands/promotion-commands.js')).PROMOTION_COMMANDS,
  },
  {
    name: 'exports',
    inHost: {
      effects: {
        has: ({ action }) => action === EXPORT_BUNDLE,
        changesSandbox: false,
        create: async (host) => new (await import('./exports/export-effects.js')).ExportEffects(host),
      },
    },
    commands: async () => (await import('./exports/commands/export-commands.js')).EXPORT_COMMANDS,
  },
  {
    name: HOOKS,
    inTrees: {
      isNeededBy: ({ lanes }) => lanes !== undefined && mayHaveKey(lanes.bytes, 'calls'),
      load: () => installCallRules(import('./hooks/calls/call-decision.js').then(({ CALL_DECIDER }) => CALL_DECIDER)),
    },
    inHost: {
      tools: {
        option: 'hooks',
        open: async () => (await import('./hooks/gate/hook-gate.js')).openNativeTools(),
      },
      parts: { hookGate: async (host) => new (await import('./hooks/gate/hook-gate.js')).HookGate(host) },
      members: { hooks: { part: 'hookGate', option: 'hooks' } },
      requests: {
        hook: async () => (await import('./hooks/gate/hook-requests.js')).readHookRequest,
        reopen_hooks: async () => (await import('./hooks/gate/hook-requests.js')).readReopenRequest,
      },
    },
    commands: async () => (await import('./hooks/commands/hook-commands.js')).HOOK_COMMANDS,
  },
  {
    name: 'sessions',
    inTrees: {
      stateMember: 'sessions',
      load: () => install(import('./sessions/tree/session-tree.js').then(({ SESSIONS }) => SESSIONS)),
    },
    views: { sessions: async () => (await import('./sessions/views/past-sessions.js')).openSessionViews },
    inHost: {
      effects: {
        has: ({ action }) => Object.hasOwn(installedFeature('sessions')?.startedTools ?? {}, action),
        changesSandbox: true,
        create: async ({ options: { reviewer: review = null }, ...host }) =>
          new (await import('./sessions/checks/check-effects.js')).CheckEffects({ ...host, review }),
      },
      parts: {
        sessions: async (host) => new (await import('./sessions/session-runs.js')).SessionRuns(host),
      },
      members: {
        sessions: {
          part: 'sessions',
          operations: {
            ...{ start: true, next: true, replay: true, heartbeat: true, verify: true, review: true, pause: true },
            ...{ resume: true, end: true, rebase: true, waive: true, status: true, prepare: true, list: true },
          },
          remote: async (owner, contract) =>
            (await import('./sessions/control-sessions.js')).remoteSessions(owner, contract),
        },
      },
      requests: {
        session: async () => (await import('./sessions/control-sessions.js')).readSessionRequest,
      },
    },
    commands: async () => (await import('./sessions/commands/session-command-list.js')).SESSION_COMMANDS,
    stateTable: async () => (await import('./sessions/commands/session-text.js')).SESSION_TABLE,
    toolOptions: async () => (await import('./sessions/commands/session-options.js')).SESSION_TOOL_OPTIONS,
    demonstrate: async () => (await import('./sessions/commands/demo-session.js')).startDemoSession,
  },
  {
    name: 'policy-lint',
    linter: async () => (await import('./policy-lint/lint-policy.js')).POLICY_LINTER,
    commands: async () => (await import('./policy-lint/commands/lint-commands.js')).LINT_COMMANDS,
  },
  {
    name: CONDITIONS,
    inTrees: {
      isNeededBy: ({ conditions, counters }) => conditions !== undefined || counters !== undefined,
      load: () =>
        installConditions(
          import('./conditions/condition-language.js').then(({ CEDAR_CONDITIONS }) => CEDAR_CONDITIONS),
          import('./conditions/counters/shared-counters.js').then(({ COUNTER_FACTS }) => COUNTER_FACTS),
        ),
    },
    commands: async () => (await import('./conditions/commands/condition-commands.js')).CONDITION_COMMANDS,
  },
  {
    name: APPROVALS,
    inTrees: {
      isNeededBy: ({ actions, conditions }) =>
        conditions !== undefined || (actions !== undefined && mayHaveKey(actions.bytes, 'approvals')),
      inputKinds: ['vote'],
      load: () =>
        installApprovals(import('./approvals/approval-decision.js').then(({ APPROVAL_DECIDER }) => APPROVAL_DECIDER)),
    },
  },
  {
    name: DECISION_POINTS,
    inTrees: {
      isNeededBy: ({ actions }) => actions !== undefined && mayHaveKey(actions.bytes, 'decision_points'),
      load: () =>
        installPoints(import('./decision-points/decision-point-rules.js').then(({ POINT_RULES }) => POINT_RULES)),
    },
    inHost: {
      parts: {
        decisionPoints: async ({ decisionService, clock, log }) =>
          new (await import('./decision-points/ask-decision-points.js')).DecisionPoints(decisionService, clock, log),
      },
    },
  },
  {
    name: 'models',
    inHost: {
      parts: { agentLoops: async (host) => (await import('./models/run-agent.js')).openAgentLoops(host) },
    },
  },
  {
    name: 'simulation',
    views: {
      decisions: async () => (await import('./simulation/views/explain-decision.js')).DECISION_VIEWS,
    },
    commands: async () => (await import('./simulation/commands/simulation-commands.js')).SIMULATION_COMMANDS,
  },
  {
    name: 'upstreams',
    inHost: {
      tools: {
        option: 'upstreams',
        open: async (options) => (await import('./upstreams/connect-upstreams.js')).openUpstreams(options),
      },
    },
    commands: async () => (await import('./upstreams/commands/upstream-commands.js')).UPSTREAM_COMMANDS,
  },
  {
    name: 'identity',
    callerOptions: async () => (await import('./identity/commands/identity-options.js')).IDENTITY_OPTIONS,
  },
  {
    name: 'telemetry',
    telemetryOptions: async () => (await import('./telemetry/commands/telemetry-options.js')).TELEMETRY_OPTIONS,
    observeEngine: async () => (await import('./telemetry/observe-engine.js')).observeEngine,
  },
  {
    name: 'cluster',
    workerReporter: async () => (await import('./cluster/worker-reporter.js')).startReporter,
    commands: async () => (await import('./cluster/commands/cluster-commands.js')).CLUSTER_COMMANDS,
  },
  { name: 'backup', commands: async () => (await import('./backup/commands/backup-commands.js')).BACKUP_COMMANDS },
  { name: 'doctor', commands: async () => (await import('./doctor/commands/doctor-commands.js')).DOCTOR_COMMANDS },
  {
    name: 'evidence',
    commands: async () => (await import('./evidence/commands/evidence-commands.js')).EVIDENCE_COMMANDS,
  },
];

/** What the first feature with this member adds there; undefined if none has it. */
export const findMember = <Name extends keyof Feature>(name: Name): Feature[Name] | undefined =>
  FEATURES.find((feature) => feature[name] !== undefined)?.[name];

/** Declares the features that take part in trees or policies. Calling it again changes nothing. */
export function declareFeatures(): void {
  for (const { name, inTrees } of FEATURES) if (inTrees !== undefined) declareFeature({ feature: name, ...inTrees });
}
