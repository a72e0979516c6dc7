import type { DecisionFact } from '../core/contract/policy/decision-points.js';
import type { Effect } from '../core/contract/run/effect.js';
import type { EffectOutcome, EffectRunner } from './effect-runner.js';
import type { IssuedCommand } from './tick/input-outcome.js';

interface EffectStarterParts {
  readonly runner: EffectRunner;
  /** See `LedgerWriter.permitEffect`. */
  readonly permit: (sentAt: number) => Promise<void> | null;
  /** Identifies the epoch of the engine; null while it has failed. */
  readonly epoch: () => object | null;
  readonly onOutcome: (tree_id: string, effect: Effect, outcome: EffectOutcome) => void;
  readonly onDecisions: (tree_id: string, command: GatherCommand, decisions: readonly DecisionFact[]) => void;
  readonly onFailed: (error: unknown) => void;
}

type GatherCommand = Extract<IssuedCommand['command'], { kind: 'gather' }>;

/** Runs effects, and asks decision points, once they are permitted. */
export class EffectStarter {
  readonly #parts: EffectStarterParts;

  constructor(parts: EffectStarterParts) {
    this.#parts = parts;
  }

  /** @param sentAt when the commit of its decision was sent */
  start(issued: IssuedCommand, sentAt = -Infinity): void {
    const { permit, epoch, onFailed } = this.#parts;
    const permission = permit(sentAt);
    if (permission === null) {
      this.#perform(issued);
      return;
    }
    const before = epoch();
    // The permission may come after the engine has failed, when a restart settles the effect.
    const isOver = (): boolean => before === null || before !== epoch();
    permission.then(
      () => (isOver() ? undefined : this.#perform(issued)),
      // Without permission another worker may settle the effect. A restart settles it if no other worker does.
      (error: unknown) => (isOver() ? undefined : onFailed(error)),
    );
  }

  #perform({ tree_id, command }: IssuedCommand): void {
    const { runner, onOutcome, onDecisions } = this.#parts;
    if (command.kind === 'gather') {
      void runner.ask(command.request).then((decisions) => onDecisions(tree_id, command, decisions));
      return;
    }
    const { effect } = command;
    const result = runner.run(effect);
    if (result instanceof Promise) void result.then((outcome) => onOutcome(tree_id, effect, outcome));
    else onOutcome(tree_id, effect, result);
  }
}
