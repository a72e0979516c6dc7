import { isOpeningInput } from '../../core/contract/run/entry.js';
import { featureActorId, featureInputKind, loadFeatureOf } from '../../core/contract/run/feature-vocabulary.js';
import type { SubmissionResult, NewInput, Submission, TreeEngine } from '../../engine/tree-engine.js';
import type { StorageAccountIds } from './storage-accounts.js';
import type { StorageGuard } from './storage-guard.js';

/**
 * The engine as callers use it. The storage guard must first admit starts of trees, content of agents, and readings of
 * people. Ends of runs, decisions of people, and what the engine itself records always pass.
 */
export const admittedEngine = (engine: TreeEngine, guard: StorageGuard): TreeEngine => ({
  submit: (tree_id, submission) => {
    // The accounts of an input depend on its feature.
    const loading = loadFeatureOf(submission.input);
    const submit = (): Promise<SubmissionResult> => submitAdmitted(engine, guard, { tree_id, submission });
    return loading === null ? submit() : loading.then(submit);
  },
  peek: (tree_id) => engine.peek(tree_id),
  inspect: (tree_id, work) => engine.inspect(tree_id, work),
  findStep: (tree_id, run_id, seq) => engine.findStep(tree_id, run_id, seq),
  awaitStep: (tree_id, run_id, seq) => engine.awaitStep(tree_id, run_id, seq),
  erase: (case_id, by, forget) => engine.erase(case_id, by, forget),
  exclusively: (work) => engine.exclusively(work),
  head: () => engine.head(),
  waitUntilIntegrated: (tree_id, timeoutMs) => engine.waitUntilIntegrated(tree_id, timeoutMs),
  labelVersion: (case_id) => engine.labelVersion(case_id),
  get hasFailed() {
    return engine.hasFailed;
  },
  get condition() {
    return engine.condition;
  },
  start: () => engine.start(),
  stop: () => engine.stop(),
  restart: () => engine.restart(),
});

interface TreeSubmission {
  readonly tree_id: string;
  readonly submission: Submission;
}

function submitAdmitted(
  engine: TreeEngine,
  guard: StorageGuard,
  { tree_id, submission }: TreeSubmission,
): Promise<SubmissionResult> {
  const { input, materials } = submission;
  if (isOpeningInput(input))
    return guard.admitStart(accountIdsOf(null, input), () => engine.submit(tree_id, submission));
  const work = (): Promise<SubmissionResult> => engine.submit(tree_id, submission);
  switch (input.kind) {
    case 'proposal':
    case 'start_run':
      return guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), work);
    case 'start_agent':
      // Its own entries were reserved together with those of the tree that is opened for it.
      return materials.length === 0
        ? work()
        : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), work);
    case 'access':
      return guard.admitContent({ tree_id: null, case_id: null, actor_id: input.actor.actor_id }, 0, work);
    default:
      return featureInputKind(input.kind) === null
        ? work()
        : guard.admitContent(accountIdsOf(tree_id, input), bytesOf(materials), work);
  }
}

const bytesOf = (materials: Submission['materials']): number =>
  materials.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);

/**
 * The accounts that content counts for, according to its input. The accounts know the rest for trees of this process.
 */
function accountIdsOf(tree_id: string | null, input: NewInput): StorageAccountIds {
  const namedCase = 'case_id' in input ? input.case_id : 'payload' in input ? (input.payload.case_id ?? null) : null;
  const actor_id = 'actor' in input ? input.actor.actor_id : (featureActorId(input) ?? '');
  return { tree_id, case_id: namedCase, actor_id };
}
