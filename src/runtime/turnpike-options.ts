// What a Turnpike is opened with, and what it stands on.

import { type WallMode } from '../adapters/command-runner.js';
import type { Inspector } from '../kernel/inert-inspection.js';
import type { Interpreter } from '../kernel/interpreter.js';
import type { Clock } from '../ports/clock.js';
import type { Sandbox } from '../ports/executor.js';
import type { OverlaySource } from '../ports/overlay-source.js';
import type { Ids } from '../ports/ids.js';
import type { LedgerStore } from '../ports/ledger-store.js';
import type { Log } from '../ports/log.js';
import type { PolicySource } from '../ports/policy-source.js';
import { type Registered } from './effects/define.js';
import { type HomePaths, type HomeStores } from './home.js';
import type { ReviewCallback } from './sessions/callback-reviewer.js';

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
  /**
   * MCP servers whose pinned tools agents may call where a lane lists them: `true` for the upstreams.json of the
   * contract folder, or the path of another folder that has one. Default: none.
   */
  readonly upstreams?: boolean | string;
  /** Reviews what the phases of a session have made, for gates whose reviewer is `callback`. */
  readonly reviewer?: ReviewCallback;
  /** Whether the commands of specs run behind bubblewrap. Default: where it is installed and works. */
  readonly wall?: WallMode;
  /** The emergency overlay of a ledger that is no home; a home has its own (`turnpike policy deny`). */
  readonly overlay?: OverlaySource;
  /** What runs the machines: the table-driven interpreter, or XState's own actors. Default: `table-driven`. */
  readonly interpreter?: Interpreter;
  /** An inspector of XState that receives the inspection events of live runs. Needs `interpreter: 'xstate'`. */
  readonly inspect?: Inspector;
}

/** What a Turnpike stands on. Campaigns put faults, or another order of ticks, under it. */
export interface Ground extends HomeStores {
  /** Null where the ledger is a store of the caller's. */
  readonly home: HomePaths | null;
  /** Runs a task after the present tick. Default: setImmediate. */
  readonly defer?: (task: () => void) => void;
  /** How many entries of a tree lie between two of its snapshots (D16). */
  readonly snapshotEntries?: number;
  /** How many entries of the log lie between two points of the past (decision 0019). */
  readonly pointEntries?: number;
}
