// The sandbox port of one process over the files of the world. It obeys, or fails in every way in which a sandbox can
// fail. The model knows the real results, which are compared with the ledger.

import type {
  Effect,
  EffectResult,
  SandboxRequest,
  PathFact,
  SandboxFacts,
} from '../../src/core/contract/run/effect.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../../src/core/contract/fault.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { Process } from './process.js';
import type { World } from './world.js';

// Only the code of a registered tool or action is repeated after an error.
const CAUSES = (Object.keys(EXECUTION_CAUSES) as readonly ExecutionCause[]).filter((cause) => cause !== 'REPEATABLE');
const LOCAL_READS = ['READ_FILE', 'LIST_FILES'];

const GATHER_ODDS = { throws: 0.004, garbage: 0.004, error: 0.01, refused: 0.01, 'then changed': 0.03, crash: 0.0005 };
const READ_ODDS = { fails: 0.01, throws: 0.004, garbage: 0.006, promise: 0.002, crash: 0.0005 };
const PERFORM_ODDS = {
  fails: 0.04,
  'throws before': 0.008,
  'throws after': 0.008,
  'garbage before': 0.008,
  'garbage after': 0.008,
  'unknown before': 0.008,
  'unknown after': 0.008,
  late: 0.08,
  'done, late answer': 0.04,
  'late rejection': 0.01,
  'crash before': 0.004,
  'crash after': 0.006,
};
const SETTLE_ODDS = { throws: 0.03, garbage: 0.03, unknown: 0.05, late: 0.1, crash: 0.02 };

export const isLocalRead = (action: string): boolean => LOCAL_READS.includes(action);

/** The port, as this process uses it. A dead process changes nothing. */
export function simSandbox(world: World, process: Process): Sandbox {
  return {
    gather: (request) => gather(world, process, request) as SandboxFacts,
    perform: (effect) => {
      if (!process.alive) return UNKNOWN;
      world.ledger.performing(effect, process.id);
      return (
        isLocalRead(effect.action) ? read(world, process, effect) : change(world, process, effect)
      ) as EffectResult;
    },
    settle: (effect) => (process.alive ? (settle(world, process, effect) as EffectResult) : UNKNOWN),
  };
}

const UNKNOWN: EffectResult = { status: 'unknown' };

function gather(world: World, process: Process, { case_id, paths, usage }: SandboxRequest): unknown {
  const { files, faults, random } = world;
  const fault = faults.draw('sandbox.gather', GATHER_ODDS);
  if (fault === 'crash') world.crash(process, 'sandbox.gather');
  if (fault === 'throws') throw new Error('the simulation broke this gather');
  if (fault === 'garbage') return garbage(world);
  const spoilt: PathFact | null =
    fault === 'error'
      ? { status: 'error', cause: random.pick(CAUSES) }
      : fault === 'refused'
        ? { status: 'refused', kind: 'symlink' }
        : null;
  const facts = {
    paths: paths.map((path) => spoilt ?? files.fact(case_id, path)),
    usage: usage ? files.usage(case_id) : null,
  };
  if (fault === 'then changed' && world.quota === null)
    world.history.note(`outside: ${files.interfere(case_id, random)}`);
  return facts;
}

function read(world: World, process: Process, effect: Effect): unknown {
  const fault = world.faults.draw('sandbox.read', READ_ODDS);
  if (fault === 'crash') world.crash(process, 'sandbox.read');
  if (fault === 'throws') throw new Error('the simulation broke this read');
  if (fault === 'garbage') return garbage(world);
  if (fault === 'fails') return { status: 'failed', cause: world.random.pick(CAUSES) };
  if (fault !== 'promise') return world.files.act(effect);
  process.promisedReads += 1;
  return Promise.resolve(world.files.act(effect));
}

function change(world: World, process: Process, effect: Effect): unknown {
  const fault = world.faults.draw('sandbox.perform', PERFORM_ODDS);
  switch (fault) {
    case 'none':
      return act(world, effect);
    case 'fails':
      return { status: 'failed', cause: world.random.pick(CAUSES) };
    case 'late':
      return world.agenda.hold(process, 'late effect').then(() => lateEffect(world, process, effect));
    case 'done, late answer': {
      const result = act(world, effect);
      return world.agenda.hold(process, 'late answer').then(() => result);
    }
    case 'late rejection':
      return world.agenda.hold(process, 'late rejection').then(() => {
        if (world.random.chance(0.5)) lateEffect(world, process, effect);
        throw new Error('the simulation broke this effect');
      });
    default:
      return around(world, process, effect, fault);
  }
}

/** Fails before the effect, or after it: from outside the two cases look the same. */
function around(world: World, process: Process, effect: Effect, fault: string): unknown {
  if (fault.endsWith(' after')) act(world, effect);
  if (fault.startsWith('crash')) world.crash(process, 'sandbox.perform');
  if (fault.startsWith('throws')) throw new Error('the simulation broke this effect');
  return fault.startsWith('garbage') ? garbage(world) : UNKNOWN;
}

/** A released or dead port does nothing any more. */
const lateEffect = (world: World, process: Process, effect: Effect): EffectResult =>
  process.alive && process.phase !== 'closed' ? act(world, effect) : { status: 'failed', cause: 'INTERRUPTED' };

function act(world: World, effect: Effect): EffectResult {
  const result = world.files.act(effect);
  if (result.status === 'done') world.ledger.performed(effect, result);
  holdsQuota(world, effect);
  return result;
}

/** After each change of an agent. No other program writes in such a world. */
function holdsQuota({ quota, files, history }: World, { case_id, action }: Effect): void {
  if (quota === null || case_id === null) return;
  const usage = files.usage(case_id);
  if (usage.bytes <= quota.bytes && usage.files <= quota.files) return;
  history.report('quota.held', `after ${action} ${case_id} has ${usage.bytes} bytes in ${usage.files} files`);
}

function settle(world: World, process: Process, effect: Effect): unknown {
  const fault = world.faults.draw('sandbox.settle', SETTLE_ODDS);
  if (fault === 'crash') world.crash(process, 'sandbox.settle');
  if (fault === 'throws') throw new Error('the simulation broke this settlement');
  if (fault === 'garbage') return garbage(world);
  if (fault === 'unknown') return UNKNOWN;
  const truth = (): EffectResult =>
    world.ledger.effectResult(effect.idempotency_key) ?? { status: 'failed', cause: 'INTERRUPTED' };
  return fault === 'late' ? world.agenda.hold(process, 'late settlement').then(truth) : truth();
}

/** Malformed answers. */
const trap = {
  get status(): never {
    throw new Error('a trap');
  },
  get paths(): never {
    throw new Error('a trap');
  },
};

function garbage(world: World): unknown {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  return world.random.pick<unknown>([
    null,
    undefined,
    42,
    'done',
    [],
    {},
    { status: 'done' },
    { status: 'done', result: null },
    { status: 'done', result: circular },
    { status: 'done', result: { toJSON: () => 'text' } },
    trap,
    { status: 'failed' },
    { status: 'failed', cause: 'constructor' },
    { paths: [], usage: null },
    { paths: [{ status: 'file' }, null], usage: { bytes: -1, files: 0 } },
  ]);
}
