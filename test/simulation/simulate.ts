// One seed: a world, its callers, and a number of steps, each of which is one random action. After each step the world
// rests, and everything that has become durable is checked against the invariants.

import type { Interpreter } from '../../src/kernel/interpreter/interpreter.js';
import { Agents } from './agents.js';
import type { Violation } from './history.js';
import type { Yields } from './pace.js';
import type { Process } from './process.js';
import { World, type Plant, type Quota } from './world.js';

export interface Options {
  readonly seed: number;
  readonly steps: number;
  readonly plant?: Plant;
  /** Where paced work yields. Default: at random. */
  readonly yields?: Yields;
  readonly interpreter?: Interpreter;
  /** The quota of all cases; then only agents write. Default: the quotas of the policies. */
  readonly quota?: Quota | null;
}

export interface Report {
  readonly seed: number;
  /** The number of steps taken: fewer than requested after a violation. */
  readonly steps: number;
  readonly violation: Violation | null;
  /** The last lines of the history. */
  readonly tail: readonly string[];
  /** SHA-256 of the whole history: every action, answer and entry. */
  readonly digest: string;
  readonly entries: number;
  readonly trees: number;
  readonly proposals: number;
  readonly processes: number;
  readonly crashes: number;
  readonly closes: number;
  readonly restarts: number;
  readonly calls: ReadonlyMap<string, number>;
  readonly faults: ReadonlyMap<string, number>;
  readonly outcomes: ReadonlyMap<string, number>;
}

/** How often the whole ledger is read again, besides once at the end. */
const AUDIT_EVERY = 2_500;
const HELD_MAX = 6;

/** Weights of the next action while the system is open. */
const ACTIONS = {
  happen: 60,
  submit: 28,
  repeat: 4,
  'submit by id': 2.5,
  burst: 0.03,
  together: 0,
  start: 4,
  finish: 0.8,
  find: 1,
  look: 0.3,
  time: 3,
  outside: 2,
  policy: 0.5,
  rest: 0.8,
  crash: 0.15,
  close: 0.1,
  restart: 0,
};
type Action = keyof typeof ACTIONS;
const NEED_AN_AGENT: readonly Action[] = ['submit', 'repeat', 'burst', 'together', 'finish'];
/** While no process has the ledger open, or one is opening or closing it. */
const SHUT = { happen: 60, open: 25, time: 3, outside: 3, policy: 2, crash: 1 };
const LONG_MS = 60_000;

export async function simulate({
  seed,
  steps,
  plant,
  yields = 'drawn',
  interpreter,
  quota = null,
}: Options): Promise<Report> {
  const world = new World({ seed: `${seed}`, plant: plant ?? null, yields, interpreter, quota });
  const agents = new Agents(world);
  let made = 0;
  while (made < steps && world.history.isClean()) {
    made += 1;
    await step(world, agents);
    if (made % AUDIT_EVERY === 0 && world.history.isClean()) await world.audit();
  }
  if (world.history.isClean()) await toRest(world, agents);
  if (world.history.isClean()) await world.audit();
  return reportOf(world, agents, { seed, steps: made });
}

async function step(world: World, agents: Agents): Promise<void> {
  const { history, ledger } = world;
  const before = ledger.size;
  history.note(await act(world, agents));
  await world.settle();
  ledger.sync();
  for (let at = before; at < ledger.size; at += 1) history.note(world.seen.entry(at)?.text ?? '');
}

async function act(world: World, agents: Agents): Promise<string> {
  const { process } = world;
  if (process?.phase !== 'open') return actShut(world, agents);
  const action = world.random.weighted<Action>(weightsFor(world, agents, process));
  switch (action) {
    case 'submit':
      return agents.submit(process);
    case 'repeat':
      return agents.repeat(process);
    case 'submit by id':
      return agents.submitById(process);
    case 'burst':
      return agents.burst(process);
    case 'together':
      return agents.writeTogether(process);
    case 'start':
      return agents.start(process);
    case 'finish':
      return agents.finish(process);
    case 'find':
      return agents.find(process);
    case 'look':
      return agents.look(process);
    case 'rest':
      await toRest(world, agents);
      return 'rest';
    case 'close':
      world.close(process);
      return 'close';
    case 'restart':
      world.restart(process, () => {
        agents.forget();
      });
      return 'restart';
    default:
      return actOutside(world, process, action);
  }
}

function weightsFor(world: World, agents: Agents, process: Process): Partial<Record<Action, number>> {
  const weights: Partial<Record<Action, number>> = { ...ACTIONS };
  if (world.quota !== null) weights.together = 6;
  if (world.agenda.size === 0) weights.happen = 0;
  if (agents.held === 0) for (const action of NEED_AN_AGENT) weights[action] = 0;
  if (agents.held < 2) weights.start = 20;
  if (world.ledger.lives.agents.size > HELD_MAX) weights.start = 1;
  // A failed process returns nothing: callers query it for a while, and then it restarts, or the ledger is opened
  // again.
  if (process.broken) Object.assign(weights, { crash: 5, close: 5, restart: 12 });
  return weights;
}

function actShut(world: World, agents: Agents): string {
  const { process, random, agenda } = world;
  const weights: Partial<Record<keyof typeof SHUT, number>> = { ...SHUT };
  if (agenda.size === 0) weights.happen = 0;
  if (process !== null && process.phase !== 'closed') weights.open = 0;
  const action = random.weighted<keyof typeof SHUT>(weights);
  if (action !== 'open') return actOutside(world, process, action);
  world.open();
  agents.forget();
  return 'open';
}

/** Events that happen whether or not a process has the ledger open. */
function actOutside(world: World, process: Process | null, action: Action): string {
  const { random, agenda, clock, files, policies } = world;
  switch (action) {
    case 'happen':
      return agenda.next(random);
    case 'time': {
      const ms = random.chance(0.1) ? random.below(LONG_MS) : random.below(600);
      return `${ms} ms pass, ${clock.advance(ms)} timers ring`;
    }
    case 'outside':
      if (world.quota !== null) return 'outside: no other writer';
      return `outside: ${files.interfere(random.pick(['case-a', 'case-b', 'case-c']), random)}`;
    case 'policy':
      policies.edit();
      return 'the policy is edited';
    default:
      if (process !== null) world.crash(process, 'nothing');
      return 'crash';
  }
}

/** Runs everything to its end: after that no call may be pending. */
async function toRest(world: World, agents: Agents): Promise<void> {
  await world.rest();
  agents.calls.forgetDead();
  if (world.history.isClean()) agents.calls.checkAllEnded();
}

function reportOf(world: World, agents: Agents, made: { seed: number; steps: number }): Report {
  const { history, ledger, faults, crashes, closes, restarts } = world;
  return {
    ...made,
    violation: history.violation,
    tail: history.tail,
    digest: history.digest(),
    entries: ledger.size,
    trees: ledger.trees,
    proposals: ledger.steps.count,
    processes: world.process?.id ?? 0,
    crashes,
    closes,
    restarts,
    calls: faults.calls,
    faults: faults.injected,
    outcomes: agents.calls.outcomes,
  };
}
