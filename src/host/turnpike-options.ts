// The options of `openTurnpike`, and the environment that it builds from them.

import { type WallMode } from '../sandbox/commands/walled-command-runner.js';
import type { EngineFactory } from '../engine/tree-engine.js';
import type { Inspector } from '../kernel/interpreter/inert-inspector.js';
import type { Interpreter } from '../kernel/interpreter/interpreter.js';
import type { Clock } from '../engine/ports/clock.js';
import type { Sandbox } from '../engine/ports/effects/sandbox.js';
import type { OverlaySource, PolicySource } from '../engine/ports/policy-sources.js';
import type { Ids } from '../engine/ports/ids.js';
import type { LedgerStore } from '../engine/ports/ledger/ledger-store.js';
import type { DiskSpace } from '../engine/ports/disk-space.js';
import type { Log } from '../engine/ports/log.js';
import type { KeepAlive, Pace } from '../engine/ports/pace.js';
import type { Registrations } from '../core/contract/policy/catalogue.js';
import type { Secrets } from '../core/contract/secrets.js';
import type { Telemetry } from '../engine/ports/telemetry.js';
import { type RegistrationOptions } from '../runtime/effects/define-effects.js';
import type { HomeStores } from '../home/home.js';
import type { HomePaths, KeyFolder, LocalState } from '../home/home-paths.js';
import type { StorageOptions } from '../runtime/storage/storage-guard.js';
import type { AddedOptions } from '../runtime/host-feature.js';

/** Options of `openTurnpike`. Exactly one of `home` and `store` is required. */
export interface TurnpikeOptions extends RegistrationOptions, AddedOptions {
  /**
   * The home directory of ledger, artifacts and sandbox; created if it is missing. Exactly one of `home` and `store` is
   * required.
   */
  readonly home?: string;
  /**
   * A ledger store of the caller, e.g. `memoryStore()`. Requires `sandbox`; `keys` and `state` are optional.
   * `openTurnpike` takes ownership: `close` closes the store, and so does an opening that fails for any reason.
   */
  readonly store?: LedgerStore;
  /**
   * The key folder of `store`; created if missing. With it, heads and erasures are signed, and step proofs and gate
   * evidence survive a restart. It belongs to one ledger: set it from the first opening on.
   */
  readonly keys?: string;
  /**
   * The local state of `store` on this machine, used by this process only; created if missing. With it, a store that
   * was rolled back is refused, the control socket is served, replay points are cached, and commands of specs run in
   * it. With `keys` too, it contains the emergency overlay.
   */
  readonly state?: string;
  /** Folder with policy/{lanes,roles,actions}.yaml. Default: the policy that this package ships. */
  readonly contract?: string;
  /**
   * Folder of the case sandboxes, or a `Sandbox` of the caller. Commands of specs need a folder: with a `Sandbox`, they
   * do not start (`CWD_REFUSED`). Default: `<home>/sandbox`.
   */
  readonly sandbox?: string | Sandbox;
  /** Accepts a platform on which the file sandbox cannot exclude races. */
  readonly unsafe?: boolean;
  /**
   * The folder of exports: bags are written below it, and the ledger names them by relative paths. Default: the folder
   * `exports` of the home, or of `state`; without either, exports are refused.
   */
  readonly exports?: string;
  readonly policies?: PolicySource;
  /**
   * What other services of this ledger register, so that a policy may name it; this process executes none of it.
   * `ledger`: what the newest run trees have pinned. Default: nothing.
   */
  readonly registrations?: Registrations | 'ledger';
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log?: Log;
  /** Maximum number of run trees in memory; others are folded again on demand. */
  readonly liveTreesMax?: number;
  /**
   * Whether to serve the control socket of the home, or of `state`, through which other processes act. Default: true.
   */
  readonly control?: boolean;
  /**
   * MCP servers whose pinned tools agents may call if a lane lists them: `true` for the upstreams.json of the contract
   * folder, or the path of another folder that has one. Default: none.
   */
  readonly upstreams?: boolean | string;
  /** Whether coding agents may ask about the calls of their own tools (`Turnpike.hooks`). Default: no. */
  readonly hooks?: boolean;
  /** Whether the commands of specs run inside bubblewrap. Default: if it is installed and works. */
  readonly wall?: WallMode;
  /**
   * The reaction to a temporary failure of the ledger, such as a full disk: `manual` waits for `Turnpike.restart`;
   * `automatic` also restarts by itself, after a second and then at growing intervals of at most a minute. Default:
   * manual.
   */
  readonly restarts?: 'manual' | 'automatic';
  /**
   * Called once for each failure of the ledger: nothing is recorded or executed until a restart. Every caller is
   * rejected. A service that does not restart can end its process then.
   */
  readonly onLedgerFailed?: (error: unknown) => void;
  /**
   * The emergency overlay of a `store`. Default: the file in `state`. A home always uses its own (`turnpike policy
   * deny`).
   */
  readonly overlay?: OverlaySource;
  /** The ledger's share of the disk, and the space that stays free. */
  readonly storage?: StorageOptions;
  /** What runs the machines: the table-driven interpreter or XState actors. Default: `table-driven`. */
  readonly interpreter?: Interpreter;
  /** An XState inspector that receives the inspection events of live runs. Needs `interpreter: 'xstate'`. */
  readonly inspect?: Inspector;
  /** Where traces and metrics go, e.g. `otelTelemetry()` of `turnpike/telemetry`. Default: none. */
  readonly telemetry?: Telemetry;
}

/** The stores and ports that a Turnpike runs on. Campaign tests inject faults or another order of ticks here. */
export interface StorageEnvironment extends HomeStores {
  /** Null if the caller supplied the ledger store. */
  readonly home: HomePaths | null;
  /** Default: that of the home. */
  readonly keys?: KeyFolder | null;
  /** Default: that of the home. */
  readonly state?: LocalState | null;
  /** Accepts the store's head if the head file is empty, because the local state may be newer than the ledger. */
  readonly acceptMissingHead?: boolean;
  /** Releases the exclusive use of the local state; called last. */
  readonly release?: () => void;
  /** Creates the engine. Default: the shared one if several workers can write to `store`, else the embedded one. */
  readonly engine?: EngineFactory;
  /** Runs a task after the current tick. Default: setImmediate. */
  readonly defer?: (task: () => void) => void;
  /** Divides long work into slices. Default: by the system clock. */
  readonly pace?: Pace;
  /** Keeps the process alive while a response or a close is outstanding. Default: by a timer. */
  readonly keepAlive?: KeepAlive;
  /** Measures the disk of the store. Default: the disk of the home; none for a store of the caller. */
  readonly space?: DiskSpace;
  /** Default: the secrets of the home, or of this process. */
  readonly secrets?: Secrets;
  /** Number of entries between two snapshots of a tree (D16). */
  readonly snapshotEntries?: number;
  /** Number of log entries between two replay points (decision 0008). */
  readonly pointEntries?: number;
}
