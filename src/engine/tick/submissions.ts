import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import type { Effect, SandboxAmount, SandboxFacts } from '../../core/contract/run/effect.js';
import type { DecisionFact, DecisionQuery } from '../../core/contract/policy/decision-points.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import type { FactsInput, RecordedInput, ResultInput } from '../../core/contract/run/entry.js';
import { InvariantError } from '../../core/errors.js';
import type { Command, TreeInput } from '../../kernel/decision.js';
import { findFactsRequest } from '../../kernel/tree.js';
import { toUnanswered, type EffectOutcome } from '../effect-runner.js';
import type { Submission } from '../tree-engine.js';

/** Adds the timestamp to a submission that needs nothing else; proposals need more (`completeInput`). */
export function withTimestamp(
  { input, materials, checked = false }: Submission,
  time: string,
  overlay: OverlayFact | null,
): TreeInput {
  switch (input.kind) {
    case 'proposal':
      throw new InvariantError(`an input of kind ${input.kind} needs more than a timestamp`);
    case 'facts':
      return { recorded: factsInput(input, time), materials, checked };
    case 'result':
      return { recorded: resultInput(input, time), materials, checked };
    case 'start_agent':
    case 'start_run':
    case 'vote':
    case 'wake':
      return { recorded: { ...input, time, overlay }, materials, checked };
    default:
      return { recorded: { ...input, time } as RecordedInput, materials, checked };
  }
}

// Spelled out because it is hot: a spread object gets its own hidden class.

function factsInput(input: UntimedInput<FactsInput>, time: string): FactsInput {
  const { run_id, input_id, facts, reserved, counters, decisions } = input;
  if (counters !== undefined || decisions !== undefined) return { ...input, time };
  return reserved === undefined
    ? { kind: 'facts', run_id, input_id, facts, time }
    : { kind: 'facts', run_id, input_id, facts, reserved, time };
}

function resultInput(input: UntimedInput<ResultInput>, time: string): ResultInput {
  const { run_id, input_id, status, cause, result, explanation, settled } = input;
  return explanation === undefined
    ? { kind: 'result', run_id, input_id, status, cause, result, settled, time }
    : { kind: 'result', run_id, input_id, status, cause, result, explanation, settled, time };
}

type UntimedInput<Input> = Omit<Input, 'time'>;

/** The input of a timer that fires. */
export const wakeSubmission = (run_id: string, at: string): Submission => ({
  input: { kind: 'wake', run_id, input_id: `${run_id}/wake@${at}` },
  materials: [],
  rememberInputId: false,
});

/** The same, unless another worker has fired the timer or moved it. */
export const sharedWakeSubmission = (run_id: string, at: string): Submission => ({
  ...wakeSubmission(run_id, at),
  isObsolete: ({ timers }) => !timers.some((timer) => timer.run_id === run_id && timer.at === at),
});

/** The result of a gather command. */
export const factsSubmission = (command: GatherCommand, facts: SandboxFacts): Submission => ({
  input: { kind: 'facts', run_id: command.run_id, input_id: `${command.run_id}/facts`, facts },
  materials: [],
  rememberInputId: false,
  checked: true,
});

/** Local reads. Effects, and questions to decision points, wait until the decision is durable. */
export const isAnsweredInTick = (command: Command): boolean =>
  command.kind === 'gather' ? command.request.decisions === undefined : command.in_commit;

type GatherCommand = Extract<Command, { kind: 'gather' }>;

/** The id of the input with the answers of decision points: each step has its own. */
export const answersId = ({ request }: GatherCommand): string => `${request.mediated_run_id ?? ''}/facts`;

/** The answers of decision points. The facts of the sandbox are gathered when the input is decided. */
export const decisionsSubmission = (command: GatherCommand, decisions: readonly DecisionFact[]): Submission => ({
  input: {
    kind: 'facts',
    run_id: command.run_id,
    input_id: answersId(command),
    facts: { paths: [], usage: null },
    decisions: [...decisions],
  },
  materials: [],
  rememberInputId: false,
  checked: true,
  // Another worker may have taken this one for gone, and the run may already ask about its next step.
  isObsolete: (tree) => {
    const request = findFactsRequest(tree, command.run_id);
    const isSameStep = request?.mediated_run_id === command.request.mediated_run_id;
    return !isSameStep || !areAnswersTo(request?.decisions ?? [], decisions);
  },
});

const areAnswersTo = (queries: readonly DecisionQuery[], decisions: readonly DecisionFact[]): boolean =>
  queries.length === decisions.length && queries.every(({ body }, at) => decisions[at]?.request_hash === sha256(body));

/** The same facts, with the growth that earlier decisions may still add to the usage. */
export function withReserved(submission: Submission, reserved: SandboxAmount): Submission {
  const { input } = submission;
  if (input.kind !== 'facts' || (reserved.bytes === 0 && reserved.files === 0)) return submission;
  return { ...submission, input: { ...input, reserved } };
}

/** Decision points that are not asked, because the process that had to ask them is gone: the step is denied. */
export const unansweredSubmission = (command: GatherCommand): Submission =>
  decisionsSubmission(command, (command.request.decisions ?? []).map(toUnanswered));

/** The result of a perform command. The result and the words of the tool become artifacts that the input refers to. */
export function resultSubmission(effect: Effect, outcome: EffectOutcome, settled: boolean): Submission {
  const { run_id } = effect;
  const json = resultJson(outcome, effect);
  const artifact = json === null ? null : toArtifact('result', effect, json);
  const words = explanationOf(outcome, effect);
  const explanation = words === null ? null : toArtifact('explanation', effect, words);
  return {
    input: {
      kind: 'result',
      run_id,
      input_id: `${run_id}/result`,
      status: outcome.status,
      cause: outcome.status === 'failed' ? outcome.cause : null,
      result: artifact === null ? null : artifactRef(artifact),
      ...(explanation === null ? {} : { explanation: artifactRef(explanation) }),
      settled,
    },
    materials: [artifact, explanation].filter((material) => material !== null),
    rememberInputId: false,
    checked: true,
  };
}

/** S4-65: partial outputs of a failure are recorded only if the lane permits it. */
function resultJson(outcome: EffectOutcome, { partial_outputs }: Effect): string | null {
  if (outcome.status === 'done') return outcome.json;
  return outcome.status === 'failed' && partial_outputs ? outcome.partial : null;
}

/** C94: the words of a tool are recorded only if its agent sees them. */
const explanationOf = (outcome: EffectOutcome, { explained }: Effect): string | null =>
  outcome.status === 'failed' && explained === true ? (outcome.explanation ?? null) : null;

const toArtifact = (kind: 'result' | 'explanation', { case_id }: Effect, text: string): Artifact => ({
  kind,
  case_id,
  bytes: Buffer.from(text),
});
