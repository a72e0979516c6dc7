// The charts that trees without a behaviour flag have pinned: the current ones without the parts that came with it.

import { createMachine, type AnyStateMachine } from 'xstate';

/** Names of the parts that a flag has brought. */
interface ChartParts {
  readonly states?: readonly string[];
  readonly events?: readonly string[];
  /** Transitions with these guards go too. */
  readonly guards?: readonly string[];
  readonly actions?: readonly string[];
  readonly actors?: readonly string[];
}

/** Flag 16: a FINISH that waits until people have decided about the pending requests of its run. */
export const FINISH_WAIT_PARTS: ChartParts = {
  states: ['waiting', 'counted'],
  guards: ['mustWait', 'votesPending', 'approvedMeanwhile'],
  actions: ['noteAwaited', 'sayVoteDeadline', 'denyFinish'],
};

/** Flag 20: actions that the caller of the agent executes, in the machine of each name. */
export const EXTERNAL_ACT_PARTS = {
  step: {
    states: ['delegating'],
    guards: ['judgedExternal', 'external'],
    actions: ['delegate', 'noteDelegated', 'noteRefused', 'noteAuthorized'],
  },
  agent: {
    states: ['closing'],
    events: ['DELEGATE', 'STARTED'],
    guards: ['hasExternal', 'mustClose', 'externalDenied', 'externalEnded', 'noneExternal'],
    actions: ['startExternal', 'sendRefusal', 'noteExternalEnd', 'stopExternal', 'endExternal'],
    actors: ['external'],
  },
  mediated: {
    states: ['reporting'],
    guards: ['reports', 'overdue', 'reportedDone'],
    actions: ['sayReportDue', 'noteReport', 'noteNoReport', 'sayUnknown'],
  },
} as const satisfies Readonly<Record<string, ChartParts>>;

/** The machine without these parts. Every remaining part has the text that it had before the flag. */
export function withoutParts<Machine extends AnyStateMachine>(machine: Machine, parts: ChartParts): Machine {
  const { guards, actions, actors, ...implementations } = machine.implementations;
  const made = createMachine(
    withoutPartsOf(machine.config as StateChart, parts) as Parameters<typeof createMachine>[0],
    {
      ...implementations,
      guards: omit(guards, parts.guards),
      actions: omit(actions, parts.actions),
      actors: omit(actors, parts.actors),
    } as Parameters<typeof createMachine>[1],
  );
  return made as unknown as Machine;
}

interface StateChart {
  readonly states?: Readonly<Record<string, StateChart>>;
  readonly on?: Readonly<Record<string, unknown>>;
  readonly always?: unknown;
}

function withoutPartsOf(state: StateChart, parts: ChartParts): StateChart {
  const { states, on, always } = state;
  // Spread first, so that the members keep their order.
  return {
    ...state,
    ...(always === undefined ? {} : { always: withoutGuards(always, parts) }),
    ...(on === undefined
      ? {}
      : { on: withoutEmpty(mapValues(omit(on, parts.events), (transition) => withoutGuards(transition, parts))) }),
    ...(states === undefined
      ? {}
      : { states: mapValues(omit(states, parts.states), (child) => withoutPartsOf(child, parts)) }),
  };
}

/** A list of which one transition remains was that transition before. */
function withoutGuards(transitions: unknown, { guards = [] }: ChartParts): unknown {
  if (!Array.isArray(transitions)) return transitions;
  const kept: unknown[] = transitions.filter(({ guard }: { guard?: unknown }) => !guards.includes(guard as string));
  return kept.length === 1 && transitions.length > 1 ? kept[0] : kept;
}

/** An event whose every transition came with the flag. */
const withoutEmpty = (members: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => !Array.isArray(value) || value.length > 0));

const mapValues = <T, U>(members: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value)]));

const omit = <T>(members: Readonly<Record<string, T>>, names: readonly string[] = []): Record<string, T> =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));
