// The transitions of every run and step of one tree. It folds the tree as recorded, and notes each transition with the
// entry that caused it. It retains no content of a case.

import { stepId } from '../../../machines/agent.js';
import { isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { Entry } from '../../core/contract/run/entry.js';
import type { Course, Move } from '../../core/contract/inspection/inspection.js';
import type { RunKind } from '../../core/contract/run/run-context.js';
import type { TransitionObserver } from '../interpreter/actors.js';
import { Fold } from '../fold.js';
import { Tree } from '../tree.js';
import { featureOf, type RootFollower, type RootMachine } from '../tree-feature.js';
import { chartsOf } from './machine-chart.js';
import { isDefinitions } from './walk-machine.js';
import type { ReplayEntry } from './replay.js';

/** Each transition takes this many numbers in one array, which avoids an object per transition. */
const MOVE = 4;

/** The transitions of one run. */
interface RunTransitions {
  readonly edges: Map<string, number>;
  readonly states: Map<string, number>;
  readonly moves: number[];
  readonly steps: number[];
}

/** The hashes of the charts of the machines that a tree was recorded with, by their names. */
type Charts = ReadonlyMap<string, string>;

/** One tree, to which its entries are applied in order. */
export class TreeCourse {
  readonly tree_id: string;
  readonly #transitions = new Map<string, RunTransitions>();
  readonly #runs = new Map<string, { readonly kind: RunKind; readonly created: number }>();
  readonly #tree: Tree;
  /** Null if no further transition is possible: the tree has ended, or could not be folded further. */
  #fold: Fold | null;
  #charts: Charts = new Map();
  /** The difference between the log index and the seq of an entry, within the current input. */
  #offset = 0;
  #next = 0;
  #moves = 0;
  #cut: Course['cut'] = null;
  /** The root machine of a tree that a feature has opened, and what the feature collects of it. */
  #root: RootMachine | null = null;
  #follower: RootFollower | null = null;

  constructor(tree_id: string) {
    this.tree_id = tree_id;
    const observer: TransitionObserver = {
      onEvent: () => undefined,
      onSpawn: (_parent, { src, id }) => {
        if (src === 'step') this.#transitionsOf(runOf(id)).steps.push(this.#offset + this.#tree.head.seq - 1);
      },
      onTransition: (actor, edge, states) => {
        this.#recordTransition(actor, edge, states);
      },
    };
    this.#tree = new Tree(tree_id, { interpreter: 'table-driven', observer });
    this.#fold = new Fold(this.#tree);
  }

  /** The seq of the next entry. */
  get next(): number {
    return this.#next;
  }

  /** Memory use, in entries and transitions. */
  get weight(): number {
    return this.#moves + (this.#follower?.weight ?? 0) + (this.#fold === null ? 0 : this.#next);
  }

  get cut(): Course['cut'] {
    return this.#cut;
  }

  /** The context of the root machine after the last entry, or its output once it has ended. */
  get rootMemory(): unknown {
    return this.#tree.rootMemory;
  }

  /** What the feature that opened the tree has collected of it; null for a run tree. */
  get follower(): RootFollower | null {
    return this.#follower;
  }

  /** The entry that created a run; null if the tree has no such run. */
  createdAt(run_id: string): number | null {
    return this.#runs.get(run_id)?.created ?? null;
  }

  /** The entry that began a step of an agent run, in the folded part of the tree. */
  stepAt(run_id: string, step: number): number | null {
    return this.#transitions.get(run_id)?.steps[step - 1] ?? null;
  }

  /** Whether folding this entry needs its content. */
  shouldReadContent({ type }: Pick<ReplayEntry, 'type'>): boolean {
    return type === 'input' && this.#fold !== null;
  }

  /** Applies the next entry, with its content. */
  take(entry: ReplayEntry, artifacts: readonly StoredArtifact[]): void {
    this.#next = entry.seq + 1;
    if (entry.seq === 0) {
      this.#charts = chartsIn(artifacts);
      this.#root = rootMachineIn(entry.text);
      this.#follower = this.#root?.follow?.() ?? null;
    }
    if (entry.type === 'run_created') this.#recordCreated(entry);
    const fold = this.#fold;
    if (fold === null) return;
    this.#offset = entry.log_index - entry.seq;
    const outcome = fold.apply(entry, artifacts);
    if ('difference' in outcome) this.#stop({ log_index: entry.log_index, why: 'differs' });
    else if ('withheld' in outcome) this.#stop({ log_index: entry.log_index, why: 'withheld' });
    else if ('unsupported' in outcome)
      this.#stop({ log_index: entry.log_index, why: 'unsupported', needs: outcome.unsupported.message });
    else this.#follower?.take(entry, artifacts, () => this.rootMemory);
    // The last state of a root can still be requested, so it stays.
    if (fold.isComplete && this.#tree.hasEnded) this.#fold = null;
  }

  /** @returns null if the tree has no such run */
  course(run_id: string, after: number, through: number): Course | null {
    const machine = this.#machineOf(run_id);
    if (machine === null) return null;
    const transitions = this.#transitions.get(run_id) ?? createRunTransitions();
    return {
      run_id,
      tree_id: this.tree_id,
      through,
      chart: this.#charts.get(machine) ?? '',
      step_chart: machine === 'agent' ? (this.#charts.get('step') ?? '') : null,
      edges: [...transitions.edges.keys()],
      states: [...transitions.states.keys()],
      moves: movesFrom(transitions.moves, after),
      steps: transitions.steps,
      cut: this.#cut,
    };
  }

  #machineOf(run_id: string): string | null {
    const kind = this.#runs.get(run_id)?.kind;
    if (kind !== undefined) return kind === 'orchestrator' || kind === 'agent' ? kind : 'mediated';
    return run_id === this.tree_id ? (this.#root?.name ?? null) : null;
  }

  #recordCreated({ text, log_index }: ReplayEntry): void {
    const { body } = JSON.parse(text) as Extract<Entry, { type: 'run_created' }>;
    this.#runs.set(body.run_id, { kind: body.run_kind, created: log_index });
  }

  /** Of an input that was recorded differently, only the transitions that match the recorded entries count. */
  #stop(cut: NonNullable<Course['cut']>): void {
    this.#cut = cut;
    this.#fold = null;
    for (const { moves } of this.#transitions.values())
      while ((moves.at(-MOVE) ?? -1) >= cut.log_index) moves.length -= MOVE;
  }

  #transitionsOf(run_id: string): RunTransitions {
    const known = this.#transitions.get(run_id) ?? createRunTransitions();
    this.#transitions.set(run_id, known);
    return known;
  }

  #recordTransition(actor: string, edge: string, states: readonly string[]): void {
    const transitions = this.#transitionsOf(runOf(actor));
    const step = actor.endsWith(STEP) ? transitions.steps.length : 0;
    transitions.moves.push(
      this.#offset + this.#tree.head.seq - 1,
      step,
      internText(transitions.edges, edge),
      internText(transitions.states, states.join('.')),
    );
    this.#moves += 1;
  }
}

/** The root machine of the feature that recorded the opening; null for the opening of a run tree. */
function rootMachineIn(text: string): RootMachine | null {
  const { body } = JSON.parse(text) as { readonly body: object };
  return featureOf(body)?.root ?? null;
}

const STEP = stepId('');
const runOf = (actor: string): string => (actor.endsWith(STEP) ? actor.slice(0, -STEP.length) : actor);

const createRunTransitions = (): RunTransitions => ({ edges: new Map(), states: new Map(), moves: [], steps: [] });

function internText(texts: Map<string, number>, text: string): number {
  const known = texts.get(text) ?? texts.size;
  if (known === texts.size) texts.set(text, known);
  return known;
}

/** The transitions after entry `after`, which are in entry order. */
function movesFrom(numbers: readonly number[], after: number): Move[] {
  let [low, high] = [0, numbers.length / MOVE];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle * MOVE] ?? 0) < after) low = middle + 1;
    else high = middle;
  }
  const moves: Move[] = [];
  for (let at = low * MOVE; at < numbers.length; at += MOVE)
    moves.push([numbers[at] ?? 0, numbers[at + 1] ?? 0, numbers[at + 2] ?? 0, numbers[at + 3] ?? 0]);
  return moves;
}

/** Ledgers have few versions of machines, and each text is large. */
const CHARTS_MAX = 16;
const chartsByText = new Map<string, Charts>();

/** The charts of the definitions that an opening input has pinned. */
function chartsIn(artifacts: readonly StoredArtifact[]): Charts {
  const machines = artifacts.find(({ kind }) => kind === 'machines');
  if (machines === undefined || isWithheld(machines)) return new Map();
  const hash = sha256(machines.bytes);
  const known = chartsByText.get(hash);
  if (known !== undefined) return known;
  const charts = new Map(readDefinitionCharts(machines.bytes).map((chart) => [chart.machine, chart.hash]));
  if (chartsByText.size >= CHARTS_MAX) chartsByText.clear();
  chartsByText.set(hash, charts);
  return charts;
}

/** The charts of recorded definitions; empty if the text is malformed. */
export function readDefinitionCharts(bytes: Uint8Array): ReturnType<typeof chartsOf> {
  try {
    const found: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return isDefinitions(found) ? chartsOf(found) : [];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
