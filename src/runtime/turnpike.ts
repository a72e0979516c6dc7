// The composition root: ports are wired to adapters here, and nowhere else.

import { resolve } from 'node:path';
import { headInMemory } from '../adapters/head-in-memory.js';
import { nanoidIds } from '../adapters/nanoid-ids.js';
import { overlayFile, overlayFiles } from '../adapters/overlay-file.js';
import { policySource } from '../adapters/policy-source.js';
import { openSandbox } from '../adapters/sandbox.js';
import { systemClock } from '../adapters/system-clock.js';
import { winstonLog } from '../adapters/winston-log.js';
import type { StepResponse } from '../contract/response.js';
import { DRAIN_MS, EmbeddedEngine } from '../engine/embedded-engine.js';
import { within } from '../engine/timers.js';
import type { EngineListener } from '../engine/tree-engine.js';
import { UsageError } from '../errors.js';
import { checkAnchor } from '../ledger/check-anchor.js';
import type { Clock } from '../ports/clock.js';
import type { Sandbox } from '../ports/executor.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Ids } from '../ports/ids.js';
import type { LedgerStore } from '../ports/ledger-store.js';
import type { Log } from '../ports/log.js';
import type { PolicySource } from '../ports/policy-source.js';
import type { ReplayReport } from '../replay/replay.js';
import type { AgentOptions, AgentRun, SubmitOptions } from './agent-run.js';
import { Agents } from './agents.js';
import { tryServeControl, type ControlServer } from './control-server.js';
import { BoundedCalls } from './effects/bounded-call.js';
import { catalogueFrom, type Registered } from './effects/define.js';
import { Gateway } from './effects/gateway.js';
import { ExportEffects } from './effects/export-effects.js';
import { RecordEffects } from './effects/record-effects.js';
import { HighRiskRuns } from './high-risk/high-risk-runs.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from './high-risk/options.js';
import { createHome, homePaths, isVacant, makeFolder, openHome, type HomePaths, type HomeStores } from './home.js';
import { LedgerReader } from './ledger-reader.js';
import { PolicyShelf } from './pinned-policy.js';
import { recover, type Recovery } from './recover.js';
import { contractFolder, shippedContract } from './shipped-contract.js';

export interface TurnpikeOptions extends Registered {
  /** Folder of the ledger, artifacts and sandbox; made when it is missing or empty. Either this or `store`. */
  readonly home?: string;
  /** A ledger store of your own, e.g. `memoryStore()`. Needs `sandbox` as well. */
  readonly store?: LedgerStore;
  /** Folder with policy/{lanes,roles,actions}.yaml. Default: the policy that this package ships. */
  readonly contract?: string;
  /** Folder of the case sandboxes, or a sandbox of your own. Default: `<home>/sandbox`. */
  readonly sandbox?: string | Sandbox;
  /** Accept a platform on which the file sandbox cannot be kept free of races. */
  readonly unsafe?: boolean;
  readonly policies?: PolicySource;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log?: Log;
  /** Run trees kept in memory at the same time; others are folded again when they are needed. */
  readonly liveTreesMax?: number;
  /** Serve the control socket of the home, through which the `turnpike` command acts meanwhile. Default: true. */
  readonly control?: boolean;
  /** The emergency overlay of a ledger that is no home; a home has its own (`turnpike policy deny`). */
  readonly overlay?: OverlaySource;
}

export interface Turnpike {
  /** Null where the ledger is a store of the caller's. */
  readonly home: HomePaths | null;
  /** What the opening had to bring to an end. */
  readonly recovery: Recovery;
  /** Which other processes act on the home through this one (D13); null where they cannot. */
  readonly control: Pick<ControlServer, 'connections' | 'retire'> | null;
  /** Opens a run tree with one agent run in it. A run that policy denies is returned too: it has ended as `denied`. */
  startAgent(options?: AgentOptions): Promise<AgentRun>;
  /** Hands a proposal to a running agent run by its id. */
  submit(run_id: string, raw: string | Uint8Array, options?: SubmitOptions): Promise<StepResponse>;
  /** The agent run of this id, if it is live. */
  agent(run_id: string): Promise<AgentRun | null>;
  /** Starts a promotion run (S4 §10.1), in a tree of its own. One that policy denies is returned too. */
  promote(options: PromoteOptions): Promise<HighRiskRun>;
  /** Starts an export run (S4 §10.2): a BagIt bag of everything that the ledger holds of a case. */
  export(options: ExportOptions): Promise<HighRiskRun>;
  /** The promotion or export run of this id, if it has not ended. */
  highRiskRun(run_id: string): Promise<HighRiskRun | null>;
  /** Somebody's answer to what a run has asked (D7). `ledger.approvals` lists what is open. */
  approve(ballot: Ballot): Promise<readonly BallotResult[]>;
  /** Says what became of an action whose outcome was unknown (D8). */
  resolve(resolution: Resolution): Promise<void>;
  /** Runs, entries and their verification, as a reader sees them. */
  readonly ledger: LedgerReader;
  /** Folds the ledger, or one run tree, through the machines. */
  replay(run_id?: string): Promise<ReplayReport>;
  /** Ends attached agent runs as interrupted, waits for what is under way, and lets go of the home. */
  close(): Promise<void>;
}

/**
 * Opens a ledger as its one writer, settles what an earlier process left unfinished, and is ready for agents.
 * @throws LedgerError LEDGER_LOCKED, LEDGER_BELOW_HEAD, LEDGER_TAMPERED; SandboxError UNSUPPORTED_PLATFORM; UsageError
 */
export const openTurnpike = async (options: TurnpikeOptions): Promise<Turnpike> =>
  openTurnpikeOn(await groundOf(options), options);

/** What a Turnpike stands on. Campaigns put faults, or another order of ticks, under it. */
export interface Ground extends HomeStores {
  /** Null where the ledger is a store of the caller's. */
  readonly home: HomePaths | null;
  /** Runs a task after the present tick. Default: setImmediate. */
  readonly defer?: (task: () => void) => void;
  /** How many entries of a tree lie between two of its snapshots (D16). */
  readonly snapshotEntries?: number;
}

/** `openTurnpike` on a ground that is laid already; it is closed with the rest. */
export async function openTurnpikeOn(ground: Ground, options: TurnpikeOptions): Promise<Turnpike> {
  const { home, store, anchor } = ground;
  // What has been opened, to be closed the other way round, in the end as well as when the opening fails.
  const opened: Closing[] = [() => store.close(), () => anchor.close()];
  const close = async (): Promise<void> => {
    for (const closing of opened.splice(0).reverse()) await closing();
  };
  try {
    const wired = wire(ground, options, opened);
    const { engine, agents, highRisk, records, effects, clock, log } = wired;
    await engine.start();
    await checkAnchor(store, anchor);
    await records.open();
    // A making that was cut short leaves none.
    if ((await anchor.read()) === null) await anchor.write(await store.head());
    const recovery = await recover(engine, store, effects, log);
    opened.push(() => within(clock, DRAIN_MS, agents.close()));
    opened.push(() => highRisk.close());
    const reader = new LedgerReader(store, anchor);
    const acts = actsOf(wired);
    const contract = options.policies === undefined ? contractFolder(options.contract ?? shippedContract()) : null;
    const served = home !== null && options.control !== false;
    const control = served ? await tryServeControl(home.control, { ...acts, contract, log }) : null;
    opened.push(() => control?.close());
    return {
      home,
      recovery,
      control,
      ...acts,
      submit: (run_id, raw, submitOptions) => agents.submit(run_id, raw, submitOptions),
      agent: (run_id) => agents.find(run_id),
      highRiskRun: (run_id) => highRisk.find(run_id),
      ledger: reader,
      replay: (run_id) => reader.replay(run_id),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Closing = () => unknown;

interface Wired {
  readonly engine: EmbeddedEngine;
  readonly agents: Agents;
  readonly highRisk: HighRiskRuns;
  readonly records: RecordEffects;
  readonly effects: Gateway;
  readonly clock: Clock;
  readonly log: Log;
}

/** Every part, with the others that it needs; nothing has begun yet. */
function wire(ground: Ground, options: TurnpikeOptions, opened: Closing[]): Wired {
  const { home, store, anchor, defer = nextTurn, snapshotEntries } = ground;
  const { log = winstonLog('warn'), clock = systemClock(), ids = nanoidIds() } = options;
  const sandbox = sandboxOf(options, home);
  if (typeof options.sandbox !== 'object') opened.push(() => (sandbox as Partial<{ close(): void }>).close?.());
  const catalogue = catalogueFrom(options);
  const records = new RecordEffects(store.records, options.targets ?? []);
  opened.push(() => records.close());
  const calls = new BoundedCalls(clock, log);
  const exports = new ExportEffects(store, log);
  const effects = new Gateway({ sandbox, records, exports, calls, registered: options });
  const source = options.policies ?? policySource(options.contract ?? shippedContract());
  const shelf = new PolicyShelf(source, clock, catalogue);
  const agents = new Agents({ shelf, store, ids, log });
  const highRisk = new HighRiskRuns({ shelf, store, ids, clock, catalogue });
  const overlay = home === null ? options.overlay : overlayFile(overlayFiles(home.overlay, home.keys));
  const listener = listeners(agents, highRisk);
  const engine = new EmbeddedEngine({
    ...{ store, anchor, clock, effects, listener, defer },
    ...(overlay === undefined ? {} : { overlay }),
    ...(options.liveTreesMax === undefined ? {} : { liveTreesMax: options.liveTreesMax }),
    ...(snapshotEntries === undefined ? {} : { snapshotEntries }),
  });
  opened.push(() => calls.abort());
  opened.push(() => engine.stop());
  agents.attach(engine);
  highRisk.attach(engine);
  return { engine, agents, highRisk, records, effects, clock, log };
}

/** What may also be asked for over the control socket. */
const actsOf = ({
  agents,
  highRisk,
}: Wired): Pick<Turnpike, 'startAgent' | 'promote' | 'export' | 'approve' | 'resolve'> => ({
  startAgent: (agentOptions = {}) => agents.start(agentOptions),
  promote: (promotion) => highRisk.promote(promotion),
  export: (bundle) => highRisk.export(bundle),
  approve: (ballot) => highRisk.vote(ballot),
  resolve: (resolution) => highRisk.resolve(resolution),
});

const listeners = (agents: Agents, highRisk: HighRiskRuns): EngineListener => ({
  reply: (tree_id, reply) => agents.reply(tree_id, reply),
  ended: (tree_id, ending) => {
    agents.ended(tree_id, ending);
    highRisk.ended(ending);
  },
  failed: (error) => {
    agents.failed(error);
    highRisk.failed();
  },
});

const nextTurn = (task: () => void): void => void setImmediate(task);

async function groundOf(options: TurnpikeOptions): Promise<Ground> {
  if ((options.home === undefined) === (options.store === undefined)) {
    throw new UsageError({ code: 'USAGE', message: 'openTurnpike takes either `home` or `store`' });
  }
  if (options.store !== undefined) {
    return { home: null, store: options.store, anchor: headInMemory(await options.store.head()) };
  }
  const home = resolve(options.home ?? '');
  const paths = isVacant(home) ? await createHome(home) : homePaths(home);
  return { home: paths, ...openHome(paths, { readOnly: false }) };
}

function sandboxOf(options: TurnpikeOptions, home: HomePaths | null): Sandbox {
  if (typeof options.sandbox === 'object') return options.sandbox;
  const root = options.sandbox ?? home?.sandbox;
  if (root === undefined) throw new UsageError({ code: 'USAGE', message: '`store` needs `sandbox` as well' });
  makeFolder(root);
  return openSandbox({ root: resolve(root), unsafe: options.unsafe ?? false });
}
