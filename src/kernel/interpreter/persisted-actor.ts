/** The context of an actor: plain JSON. */
export type ActorMemory = Record<string, unknown>;

/** An actor in XState's persisted format. */
export interface PersistedActor {
  readonly status: 'active' | 'done' | 'stopped' | 'error';
  readonly output?: unknown;
  readonly value: StateValue;
  readonly context: ActorMemory;
  readonly children: Readonly<Record<string, { readonly src: string; readonly snapshot: PersistedActor }>>;
}
export type StateValue = string | { readonly [key: string]: StateValue };

/** Converts a state path to XState's state value: `['running', 'ready']` becomes `{ running: 'ready' }`. */
export const toStateValue = (path: readonly string[]): StateValue =>
  path.slice(0, -1).reduceRight<StateValue>((value, key) => ({ [key]: value }), path.at(-1) ?? '');

export function toStatePath(value: StateValue): readonly string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value).flatMap(([key, rest]) => [key, ...toStatePath(rest)]);
}
