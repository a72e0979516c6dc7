// What a Turnpike is opened with, and what it stands on.

import { type WallMode } from '../adapters/commands/command-runner.js';
import type { EngineFactory } from '../engine/tree-engine.js';
import type { Inspector } from '../kernel/interpreter/inert-inspection.js';
import type { Interpreter } from '../kernel/interpreter/interpreter.js';
import type { Clock } from '../ports/clock.js';
import type { Sandbox } from '../ports/effects/sandbox.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Ids } from '../ports/ids.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';
import type { DiskSpace } from '../ports/disk-space.js';
import type { KeepAlive } from '../ports/keep-alive.js';
import type { Log } from '../ports/log.js';
import type { Pace } from '../ports/pace.js';
import type { PolicySource } from '../ports/policy-source.js';
import type { Secrets } from '../ports/secrets.js';
import { type RegistrationOptions } from './effects/define-effects.js';
import type { HomeStores } from './home/home.js';
import type { HomePaths, KeyFolder, LocalState } from './home/home-paths.js';
import type { StorageOptions } from './storage/storage-options.js';
import type { ReviewCallback } from './sessions/checks/callback-reviewer.js';

export interface TurnpikeOptions extends RegistrationOptions {
  /** Folder of the ledger, artifacts and sandbox; made when it is missing or empty. Either this or `store`. */
  readonly home?: string;
  /**
   * A ledger store of your own, e.g. `memoryStore()`. Needs `sandbox` as well; `keys` and `state` are optional.
   * `openTurnpike` takes it over: `close` closes it, and so does an opening that fails, for whatever reason.
   */
  readonly store?: LedgerStore;
  /**
   * The key folder of `store`; made where it is missing. With it, heads and erasures are signed, and step proofs and
   * gate evidence survive a restart. It belongs to one ledger: give it from the first opening on.
   */
  readonly keys?: string;
  /**
   * The local state of `store` on this machine, for this process alone; made where it is missing. With it, a store that
   * falls back is refused, the control socket is served, replay points are cached, and commands of specs run in it.
   * With `keys` too, the emergency overlay is read from it.
   */
  readonly state?: string;
  /** Folder with policy/{lanes,roles,actions}.yaml. Default: the policy that this package ships. */
  readonly contract?: string;
  /** Folder of the case sandboxes, or a sandbox of your own. Default: `<home>/sandbox`. */
  readonly sandbox?: string | Sandbox;
  /** Accept a platform on which the file sandbox cannot be kept free of races. */
  readonly unsafe?: boolean;
  /**
   * The folder of exports: bundles are written below it, and the ledger names them by their paths from it. Default: the
   * folder `exports` of the home, or of `state`; without either, nothing can be exported.
   */
  readonly exports?: string;
  readonly policies?: PolicySource;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log?: Log;
  /** Run trees kept in memory at the same time; others are folded again when they are needed. */
  readonly liveTreesMax?: number;
  /** Serve the control socket of the home, or of `state`: other processes act through it. Default: true. */
  readonly control?: boolean;
  /**
   * MCP servers whose pinned tools agents may call where a lane lists them: `true` for the upstreams.json of the
   * contract folder, or the path of another folder that has one. Default: none.
   */
  readonly upstreams?: boolean | string;
  /** Reviews what the phases of a session have made, for gates whose reviewer is `callback`. */
  readonly reviewer?: ReviewCallback;
  /** Whether the commands of specs run behind bubblewrap. Default: where it is installed and works. */
  readonly wall?: WallMode;
  /**
   * What follows a failure of the ledger that can pass, like a full disk: `manual` waits for `Turnpike.restart`,
   * `automatic` also restarts by itself, after a second and then at growing intervals of a minute at most.
   * Default: manual.
   */
  readonly restarts?: 'manual' | 'automatic';
  /** The emergency overlay of a `store`. Default: the file in `state`. A home has its own (`turnpike policy deny`). */
  readonly overlay?: OverlaySource;
  /** How much of the disk the ledger may take, and how much stays free. */
  readonly storage?: StorageOptions;
  /** What runs the machines: the table-driven interpreter, or XState's own actors. Default: `table-driven`. */
  readonly interpreter?: Interpreter;
  /** An inspector of XState that receives the inspection events of live runs. Needs `interpreter: 'xstate'`. */
  readonly inspect?: Inspector;
}

/** What a Turnpike stands on. Campaigns put faults, or another order of ticks, under it. */
export interface StorageEnvironment extends HomeStores {
  /** Null where the ledger is a store of the caller's. */
  readonly home: HomePaths | null;
  /** Default: that of the home. */
  readonly keys?: KeyFolder | null;
  /** Default: that of the home. */
  readonly state?: LocalState | null;
  /** Takes the store's head where the anchor has none yet: the local state may be new where the ledger is not. */
  readonly acceptMissingHead?: boolean;
  /** Ends the exclusive use of the local state; called last. */
  readonly release?: () => void;
  /** Makes the engine. Default: the embedded one, over `store`. */
  readonly engine?: EngineFactory;
  /** Runs a task after the present tick. Default: setImmediate. */
  readonly defer?: (task: () => void) => void;
  /** How long work is divided. Default: by the machine's clock. */
  readonly pace?: Pace;
  /** What waits for a response or a close keeps the process alive. Default: by a timer. */
  readonly keepAlive?: KeepAlive;
  /** The disk of the store. Default: that of the home; none for a store of the caller's. */
  readonly space?: DiskSpace;
  /** Default: those of the home, or of this process. */
  readonly secrets?: Secrets;
  /** How many entries of a tree lie between two of its snapshots (D16). */
  readonly snapshotEntries?: number;
  /** How many entries of the log lie between two points of the past (decision 0019). */
  readonly pointEntries?: number;
}
