// Sessions in trees: a session is the root of its own tree, decides its commands, and keeps some inputs for itself.

import { configurationOf } from '../../../../machines/run.js';
import type { Artifact, ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { Effect } from '../../../core/contract/run/effect.js';
import type { RecordedInput } from '../../../core/contract/run/entry.js';
import type { RunContext } from '../../../core/contract/run/run-context.js';
import type { KnownAtSubmission, TreeAccess, TreeFeature, TreePart, TreeState } from '../../../kernel/tree-feature.js';
import type { KnownRun } from '../../../kernel/tree-snapshot.js';
import { type SessionCommand, OpenSessionInput, SessionInput, SessionEvent } from '../contract/session-records.js';
import { createSessionMachine, type SessionMachineInput, type CommandEvent } from '../machine/session-machine.js';
import { IssuedSteps } from '../issued-steps.js';
import { CHECK_TOOLS } from '../rules/checks.js';
import { createSessionVouch } from '../rules/step-proof.js';
import { sessionOf, summarizeSession } from './session-of.js';
import { TouchedFiles } from './touched-files.js';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { isConforming } from '../../../core/contract/validators.js';
import { InvariantError } from '../../../core/errors.js';
import { SessionSpec } from '../contract/session-spec.js';
import type { StepWork } from '../rules/turn-builder.js';
import { stepId } from '../../../../machines/agent.js';
import type { Policy } from '../../../core/policy/policy.js';
import type { SessionState } from '../rules/session-state.js';

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
    const isAccepted = this.#tree.send(tree_id, commandEvent(recorded, materials, this.#collectWork(session, policy)));
    // Once a step is reported, no query asks for the changes of its runs.
    this.#touched.retainRuns(sessionOf(this.#tree)?.outstanding?.run_ids ?? []);
    return isAccepted;
  }

  /**
   * Whether only the session itself may submit this input to its tree. The session starts the runs of an activation,
   * counts them and waits for them by id. It also ends an activation: to cancel one, pause it (C93).
   */
  isReserved({ kind }: RecordedInput, run: KnownRun | null): boolean {
    return START_KINDS.has(kind) || (kind === 'cancel' && run?.context.run_kind !== 'agent');
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

  /** What the runs of the outstanding step have changed, and whether they are still live. */
  #collectWork({ outstanding, agent }: SessionState, { lanes }: Policy): StepWork {
    if (outstanding === null) return { touched: [], busy: false, refuses_unmediated: false };
    const { run_ids, step } = outstanding;
    return {
      touched: this.#touched.pathsOf(run_ids),
      busy: run_ids.some((run_id) => this.#tree.isLive(stepId(run_id))),
      refuses_unmediated: lanes.get(step.lane_id ?? agent.lane_id)?.refuses_unmediated === true,
    };
  }
}

const START_KINDS: ReadonlySet<string> = new Set(['start_agent', 'start_run']);

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

/** @throws InvariantError if the artifact is not a valid spec; the caller must have checked it */
function parseSpecArtifact(artifact: Artifact | undefined): SessionSpec {
  const value: unknown = artifact === undefined ? null : JSON.parse(decoder.decode(artifact.bytes));
  if (isConforming(SessionSpec, value)) return value as SessionSpec;
  throw new InvariantError('a session without a spec');
}

/** The event for a session command, with the state of the tree that the session rules need. */
function commandEvent(
  { command, time, input_id, by, vouch, overlay }: SessionInput,
  [material]: readonly Artifact[],
  work: StepWork,
): CommandEvent {
  const report = command.name === 'next' && command.report !== null ? parseReportArtifact(material) : null;
  const new_spec = command.name === 'rebase' ? parseSpecArtifact(material) : null;
  const { actor, role } = by;
  return {
    type: 'COMMAND',
    command,
    context: { time, input_id, actor, role, vouch, report, new_spec, work },
    overlay,
  };
}

function parseReportArtifact(material: Artifact | undefined): JsonObject {
  const value: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  if (!isJsonObject(value)) throw new InvariantError('a report must be a JSON object');
  return value;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
