// The composition root: ports are wired to adapters here, and nowhere else.

import { resolve } from 'node:path';
import { headInMemory } from '../adapters/head-in-memory.js';
import { nanoidIds } from '../adapters/nanoid-ids.js';
import { policySource } from '../adapters/policy-source.js';
import { openSandbox } from '../adapters/sandbox.js';
import { systemClock } from '../adapters/system-clock.js';
import { winstonLog } from '../adapters/winston-log.js';
import type { StepResponse } from '../contract/response.js';
import { DRAIN_MS, EmbeddedEngine } from '../engine/embedded-engine.js';
import { within } from '../engine/timers.js';
import type { Effects } from '../engine/tree-engine.js';
import { UsageError } from '../errors.js';
import { checkAnchor } from '../ledger/check-anchor.js';
import type { Clock } from '../ports/clock.js';
import type { Sandbox } from '../ports/executor.js';
import type { Ids } from '../ports/ids.js';
import type { LedgerStore } from '../ports/ledger-store.js';
import type { Log } from '../ports/log.js';
import type { PolicySource } from '../ports/policy-source.js';
import type { ReplayReport } from '../replay/replay.js';
import type { AgentOptions, AgentRun, SubmitOptions } from './agent-run.js';
import { Agents } from './agents.js';
import { tryServeControl, type ControlServer } from './control-server.js';
import { createHome, homePaths, isVacant, makeFolder, openHome, type HomePaths, type HomeStores } from './home.js';
import { LedgerReader } from './ledger-reader.js';
import { PolicyShelf } from './pinned-policy.js';
import { recover, type Recovery } from './recover.js';
import { contractFolder, shippedContract } from './shipped-contract.js';

export interface TurnpikeOptions {
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
  const { home, store, anchor, defer = nextTurn, snapshotEntries } = ground;
  const log = options.log ?? winstonLog('warn');
  const clock = options.clock ?? systemClock();
  // What has been opened, to be closed the other way round, in the end as well as when the opening fails.
  const opened: (() => unknown)[] = [() => store.close(), () => anchor.close()];
  const close = async (): Promise<void> => {
    for (const closing of opened.splice(0).reverse()) await closing();
  };
  try {
    const sandbox = sandboxOf(options, home);
    if (typeof options.sandbox !== 'object') opened.push(() => (sandbox as Partial<{ close(): void }>).close?.());
    const effects = handsOf(sandbox);
    const shelf = new PolicyShelf(options.policies ?? policySource(options.contract ?? shippedContract()), clock);
    const agents = new Agents({ shelf, store, ids: options.ids ?? nanoidIds(), log });
    const engine = new EmbeddedEngine({
      store,
      anchor,
      clock,
      effects,
      listener: agents,
      defer,
      ...(options.liveTreesMax === undefined ? {} : { liveTreesMax: options.liveTreesMax }),
      ...(snapshotEntries === undefined ? {} : { snapshotEntries }),
    });
    opened.push(() => engine.stop());
    agents.attach(engine);
    await engine.start();
    await checkAnchor(store, anchor);
    // A making that was cut short leaves none.
    if ((await anchor.read()) === null) await anchor.write(await store.head());
    const recovery = await recover(engine, store, effects, log);
    opened.push(() => within(clock, DRAIN_MS, agents.close()));
    const reader = new LedgerReader(store, anchor);
    const startAgent = (agentOptions: AgentOptions = {}): Promise<AgentRun> => agents.start(agentOptions);
    const contract = options.policies === undefined ? contractFolder(options.contract ?? shippedContract()) : null;
    const served = home !== null && options.control !== false;
    const control = served ? await tryServeControl(home.control, { startAgent, contract, log }) : null;
    opened.push(() => control?.close());
    return {
      home,
      recovery,
      control,
      startAgent,
      submit: (run_id, raw, submitOptions) => agents.submit(run_id, raw, submitOptions),
      agent: (run_id) => agents.find(run_id),
      ledger: reader,
      replay: (run_id) => reader.replay(run_id),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const handsOf = (sandbox: Sandbox): Effects => ({
  gather: (request) => sandbox.gather(request),
  perform: (effect) => sandbox.perform(effect),
  settle: (effect) => sandbox.settle(effect),
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
