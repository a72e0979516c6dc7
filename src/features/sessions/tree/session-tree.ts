// Sessions in trees: a session is the root of its own tree, decides its commands, and keeps some inputs for itself.

import { configurationOf } from '../../../../machines/run.js';
import type { Artifact, ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { Effect } from '../../../core/contract/run/effect.js';
import type { RecordedInput } from '../../../core/contract/run/entry.js';
import type { RunContext } from '../../../core/contract/run/run-context.js';
import type { KnownAtSubmission, TreeAccess, TreeFeature, TreePart, TreeState } from '../../../kernel/tree-feature.js';
import type { KnownRun } from '../../../kernel/tree-snapshot.js';
import type { SessionCommand } from '../contract/session-command.js';
import { SessionEvent } from '../contract/session-event.js';
import { OpenSessionInput, SessionInput } from '../contract/session-input.js';
import { createSessionMachine, type SessionMachineInput } from '../machine/session-machine.js';
import { IssuedSteps } from '../issued-steps.js';
import { CHECK_TOOLS } from '../rules/checks.js';
import { createSessionVouch } from '../rules/step-proof.js';
import { commandEvent, parseSpecArtifact } from './command-event.js';
import { isReservedForSession } from './reserved-inputs.js';
import { sessionOf, summarizeSession } from './session-of.js';
import { collectStepWork } from './step-work.js';
import { TouchedFiles } from './touched-files.js';

export const SESSIONS: TreeFeature = {
  feature: 'sessions',
  inputs: {
    open_session: {
      schema: OpenSessionInput,
      references: ({ spec }: OpenSessionInput) => [spec],
      actorId: ({ agent }: OpenSessionInput) => agent.actor.actor_id,
      laneId: ({ agent }: OpenSessionInput) => agent.lane_id,
    },
    session: {
      schema: SessionInput,
      references: ({ command }: SessionInput) => commandReferences(command),
      actorId: () => null,
    },
  },
  entries: { session_event: SessionEvent },
  startedTools: CHECK_TOOLS,
  root: {
    name: 'session',
    create: ({ orchestrator }) => createSessionMachine(orchestrator),
    inputOf: (open: OpenSessionInput, base: RunContext, [spec]: readonly Artifact[]): SessionMachineInput => ({
      base,
      open,
      spec: parseSpecArtifact(spec),
      inputs: configurationOf(open),
    }),
    follow: () => new IssuedSteps(),
    summary: { member: 'sessions', of: summarizeSession },
  },
  createPart: (tree) => new SessionPart(tree),
  complete: (input: OpenSessionInput | SessionInput, tree: TreeState, { overlay, secrets }: KnownAtSubmission) =>
    input.kind === 'open_session'
      ? {}
      : { overlay, vouch: createSessionVouch(tree.tree_id, sessionOf(tree), input.command.name, secrets) },
};

/** The part of sessions in one tree. In a run tree it refuses every command. */
class SessionPart implements TreePart {
  readonly #tree: TreeAccess;
  readonly #touched = new TouchedFiles();

  constructor(tree: TreeAccess) {
    this.#tree = tree;
  }

  decide(recorded: SessionInput, materials: readonly Artifact[]): boolean {
    const { tree_id, policy } = this.#tree;
    const session = sessionOf(this.#tree);
    if (session === null || recorded.run_id !== tree_id || policy === null) return false;
    const isLive = (run_id: string): boolean => this.#tree.isLive(run_id);
    const work = collectStepWork(session, { policy, touched: this.#touched, isLive });
    const isAccepted = this.#tree.send(tree_id, commandEvent(recorded, materials, work));
    // Once a step is reported, no query asks for the changes of its runs.
    this.#touched.retainRuns(sessionOf(this.#tree)?.outstanding?.run_ids ?? []);
    return isAccepted;
  }

  isReserved(recorded: RecordedInput, run: KnownRun | null): boolean {
    return isReservedForSession(recorded, run);
  }

  onEffectDone(effect: Effect): void {
    if (this.#tree.opening?.kind === 'open_session') this.#touched.addChanges(effect);
  }

  snapshot(): object | null {
    return this.#tree.opening?.kind === 'open_session' ? { touched: this.#touched.toSnapshot() } : null;
  }

  restore({ touched }: { readonly touched: ReturnType<TouchedFiles['toSnapshot']> }): void {
    this.#touched.restore(touched);
  }
}

function commandReferences(command: SessionCommand): readonly ArtifactRef[] {
  switch (command.name) {
    case 'rebase':
      return [command.spec];
    case 'next':
      return command.report === null ? [] : [command.report];
    case 'pause':
    case 'end':
    case 'waive':
      return command.note_ref === undefined ? [] : [command.note_ref];
    default:
      return [];
  }
}
