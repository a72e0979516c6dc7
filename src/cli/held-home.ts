// A home as a command acts on it: in this process where it gets the writer lock, else through the process that has it
// (D13). Nothing that a command does knows which of the two it is.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UPSTREAMS_FILE } from '../contract/upstreams.js';
import { LedgerError } from '../errors.js';
import type { AgentRun } from '../runtime/agent-run.js';
import { connectControl } from '../runtime/control-client.js';
import type { ControlAgentOptions } from '../runtime/control-protocol.js';
import { isVacant, type HomePaths } from '../runtime/home.js';
import { contractFolder } from '../runtime/shipped-contract.js';
import { openTurnpike, type Turnpike } from '../runtime/turnpike.js';
import type { Args } from './command.js';
import { contractOf, homeOf, type ContractFolder } from './folders.js';
import { usage, type Io } from './io.js';
import { counted } from './terminal.js';

/** How often, and how long apart, a home is tried whose holder cannot be reached: it may be starting, or ending. */
const TRIES = 50;
const RETRY_MS = 100;

/** What can be done to a home, here or there. */
export interface HeldHome extends Pick<
  Turnpike,
  'promote' | 'export' | 'approve' | 'readRequest' | 'resolve' | 'erase' | 'sessions' | 'remoteAgents'
> {
  /** Starts an agent run, attached to this command. */
  startAgent(options: ControlAgentOptions): Promise<AgentRun>;
  /** Null where another process has the home: what has been set going there, goes on there. */
  readonly here: Turnpike | null;
  /** Lets go of the home; agent runs of this command that have not ended are interrupted. */
  close(): Promise<void>;
}

interface Place {
  readonly home: HomePaths;
  readonly contract: ContractFolder;
  readonly upstreams: boolean;
}

export interface Holding {
  /** Connect the upstream servers of the contract folder, for agents that may call their tools. Default false. */
  readonly upstreams?: boolean;
  /** Only in this process: what is served from here cannot go through another one. Default false. */
  readonly own?: boolean;
}

/** Holds the home that the arguments name, for as long as `work` takes. @throws like `holdHome` */
export async function withHome<T>(
  args: Args,
  io: Io,
  work: (home: HeldHome) => Promise<T>,
  holding: Holding = {},
): Promise<T> {
  const home = await holdHome(args, io, holding);
  try {
    return await work(home);
  } finally {
    await home.close();
  }
}

/**
 * Takes hold of the home that the arguments name.
 * @throws UsageError where there is none; LedgerError LEDGER_LOCKED when the process that has it cannot be reached
 */
export async function holdHome(
  args: Args,
  io: Io,
  { upstreams = false, own = false }: Holding = {},
): Promise<HeldHome> {
  const place = { home: homeOf(args, io), contract: contractOf(args, io), upstreams };
  const { home } = place.home;
  if (isVacant(home)) throw usage(`${home} is no home: make one with \`turnpike init\``);
  for (let tries = 1; ; tries += 1) {
    try {
      return await holdHere(place, io);
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (own) throw heldElsewhere(home, error);
      const held = await holdThere(place);
      if (held !== null) return held;
      if (tries === TRIES) throw error;
    }
    await delay(RETRY_MS);
  }
}

async function holdHere({ home, contract, upstreams }: Place, io: Io): Promise<HeldHome> {
  const listed = upstreams && existsSync(join(contract.path, UPSTREAMS_FILE));
  const turnpike = await openTurnpike({ home: home.home, contract: contract.path, upstreams: listed, log: io.log });
  const { trees, interrupted, settled } = turnpike.recovery;
  // Sessions, and what waits for people, live from one process to the next: they were not left.
  if (interrupted + settled > 0) {
    const done = `${counted(interrupted, 'agent run')} interrupted, ${counted(settled, 'action')} settled`;
    await io.stderr.say(`recovered ${counted(trees, 'run tree')} that an earlier process left unfinished: ${done}`);
  }
  return {
    here: turnpike,
    startAgent: (options) => turnpike.startAgent(options),
    promote: (options) => turnpike.promote(options),
    export: (options) => turnpike.export(options),
    approve: (ballot) => turnpike.approve(ballot),
    readRequest: (reading) => turnpike.readRequest(reading),
    resolve: (resolution) => turnpike.resolve(resolution),
    erase: (erasure) => turnpike.erase(erasure),
    sessions: turnpike.sessions,
    remoteAgents: turnpike.remoteAgents,
    close: async () => {
      await othersDone(turnpike, io);
      await turnpike.close();
    },
  };
}

/**
 * @returns null when nobody is there who takes on work: the holder has no socket yet, or no more. What is asked of one
 * who is there is asked once, since a second time might do it twice
 */
async function holdThere({ home, contract }: Place): Promise<HeldHome | null> {
  const client = await connectControl(home.control);
  if (client === null) return null;
  const ready = await client.ready().catch(async (error: unknown) => {
    await client.close();
    throw error;
  });
  if (!ready) {
    await client.close();
    return null;
  }
  const chosen = contract.chosen ? contractFolder(contract.path) : null;
  return {
    here: null,
    startAgent: (options) => client.startAgent(options, chosen),
    promote: (options) => client.promote(options, chosen),
    export: (options) => client.export(options, chosen),
    approve: (ballot) => client.approve(ballot),
    readRequest: (reading) => client.readRequest(reading),
    resolve: (resolution) => client.resolve(resolution),
    erase: (erasure) => client.erase(erasure),
    sessions: client.sessions(chosen),
    remoteAgents: client.remoteAgents(chosen),
    close: () => client.close(),
  };
}

/** Other commands may be at work through this process. To end now would interrupt their runs, so it waits for them. */
async function othersDone({ control }: Turnpike, io: Io): Promise<void> {
  const stop = io.stop();
  if (control === null || stop.aborted) return;
  if (control.connections > 0)
    await io.stderr.say(`waiting for ${counted(control.connections, 'other command')} at work through this one`);
  const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
  await Promise.race([control.retire(), stopped]);
}

const heldElsewhere = (home: string, cause: unknown): LedgerError =>
  new LedgerError({
    code: 'LEDGER_LOCKED',
    message: `another process has ${home}, and what is served must be served by it: stop that one first`,
    cause,
  });

const isLocked = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_LOCKED';
