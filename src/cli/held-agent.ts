// An agent run of this command: in this process where it gets the writer lock, else through the process that has it
// (D13).

import { setTimeout as delay } from 'node:timers/promises';
import { LedgerError, RunError } from '../errors.js';
import type { AgentRun } from '../runtime/agent-run.js';
import { connectControl } from '../runtime/control-client.js';
import type { ControlAgentOptions } from '../runtime/control-protocol.js';
import { isVacant, type HomePaths } from '../runtime/home.js';
import { contractFolder } from '../runtime/shipped-contract.js';
import { openTurnpike, type Turnpike } from '../runtime/turnpike.js';
import type { ContractFolder } from './folders.js';
import { usage, type Io } from './io.js';
import { counted } from './terminal.js';

/** How often, and how long apart, a home is tried whose holder cannot be reached: it may be starting, or ending. */
const TRIES = 50;
const RETRY_MS = 100;

export interface HeldAgent {
  readonly agent: AgentRun;
  /** Interrupts the run if it has not ended, and lets go of the home. */
  close(): Promise<void>;
}

export interface AgentPlace {
  readonly home: HomePaths;
  readonly contract: ContractFolder;
  readonly options: ControlAgentOptions;
}

/**
 * Starts an agent run in a home that is there.
 * @throws UsageError where there is no home; LedgerError LEDGER_LOCKED when the process that has it cannot be reached
 */
export async function holdAgent(place: AgentPlace, io: Io): Promise<HeldAgent> {
  const { home } = place.home;
  if (isVacant(home)) throw usage(`${home} is no home: make one with \`turnpike init\``);
  for (let tries = 1; ; tries += 1) {
    try {
      return await holdHere(place, io);
    } catch (error) {
      if (!isLocked(error)) throw error;
      const held = await holdThere(place);
      if (held !== null) return held;
      if (tries === TRIES) throw error;
    }
    await delay(RETRY_MS);
  }
}

async function holdHere({ home, contract, options }: AgentPlace, io: Io): Promise<HeldAgent> {
  const turnpike = await openTurnpike({ home: home.home, contract: contract.path, log: io.log });
  const close = async (): Promise<void> => {
    await othersDone(turnpike, io);
    await turnpike.close();
  };
  try {
    const { trees, interrupted, settled } = turnpike.recovery;
    if (trees > 0) {
      const done = `${counted(interrupted, 'agent run')} interrupted, ${counted(settled, 'action')} settled`;
      await io.stderr.say(`recovered ${counted(trees, 'run tree')} that an earlier process left unfinished: ${done}`);
    }
    return { agent: await turnpike.startAgent(options), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @returns null when nobody is there: the holder has no socket yet, or no more */
async function holdThere({ home, contract, options }: AgentPlace): Promise<HeldAgent | null> {
  const client = await connectControl(home.control);
  if (client === null) return null;
  try {
    const agent = await client.startAgent(options, contract.chosen ? contractFolder(contract.path) : null);
    return { agent, close: () => client.close() };
  } catch (error) {
    await client.close();
    if (error instanceof RunError && error.code === 'CLOSED') return null;
    throw error;
  }
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

const isLocked = (error: unknown): boolean => error instanceof LedgerError && error.code === 'LEDGER_LOCKED';
